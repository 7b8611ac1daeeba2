"""Two processes that fine-tune together make the model that one makes alone in steps of the same size."""

from pathlib import Path

import pytest
from finetuning import finetune, make_base, provenance_of, result_of, weights_of, without_softmax
from finetuning_member import ALONE, CASES, STOPPED
from launching import launch_two
from torch.testing import assert_close

CLOSE = {"atol": 2e-4, "rtol": 1e-4}  # as in `test_team`


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of all cases of `finetuning_member`, each made by two processes."""
    folder = tmp_path_factory.mktemp("together")
    without_softmax(make_base(folder / "general"), folder / "bare")
    launch_two("finetuning_member.py", folder)
    return folder


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_that_of_one_process_that_accumulates(name: str, together: Path, tmp_path: Path) -> None:
    base, _, adaptation = CASES[name]
    finetune(tmp_path / "alone", together / base, ALONE, adaptation)
    weights, expected = weights_of(together / name), weights_of(tmp_path / "alone")
    assert weights.keys() == expected.keys()
    for part, tensor in expected.items():
        assert_close(weights[part], tensor, **CLOSE, msg=part)
    assert (together / name / "vocab.txt").read_bytes() == (tmp_path / "alone" / "vocab.txt").read_bytes()
    found, wanted = (figures_of(provenance_of(folder)) for folder in (together / name, tmp_path / "alone"))
    assert len(found) > 5
    assert found == pytest.approx(wanted, rel=1e-4)


@pytest.mark.parametrize("name", STOPPED)
def test_a_stopped_run_ends_as_if_never_stopped(name: str, together: Path) -> None:
    assert result_of(together / name) == result_of(together / "two-stages")


def figures_of(value: object, name: str = "finetuning") -> dict[str, float]:
    """Return the numbers in nested dicts by their path."""
    if isinstance(value, dict):
        parts = value.items() if name != "finetuning" else value["finetuning"].items()
        return {path: leaf for key, part in parts for path, leaf in figures_of(part, f"{name}/{key}").items()}
    return {name: value} if isinstance(value, int | float) else {}
