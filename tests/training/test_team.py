"""Two processes that train together make the model that one makes alone in steps of the same size."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from launching import launch_two
from outcomes import result_of
from safetensors.torch import load_file
from team_member import ADAGRAD, SAMPLED, STEPS, STOP, TOGETHER, Stopping, place_of, start
from torch.testing import assert_close

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import ElmoError, Interrupted
from elmo_cli.training.distributed import join_team
from elmo_cli.training.run import resume_training

# A sum of float32 in two halves: 1e-6 a step in the loss. Adam makes a step of full size of the smallest gradient.
CLOSE = {"atol": 2e-4, "rtol": 1e-4}


@pytest.fixture(scope="module")
def together(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the models of all cases of `team_member`, each trained by two processes, or by one and then two."""
    folder = tmp_path_factory.mktemp("together")
    alone = replace(SAMPLED, processes=1, accumulate=2)
    with pytest.raises(Interrupted):
        start(folder / "grown", alone, place_of(folder / "grown", reporter=Stopping(STOP)))
    launch_two("team_member.py", folder)
    return folder


def curve_of(folder: Path) -> list[float]:
    """Return every loss and every held-out perplexity of a run."""
    lines = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return [line["heldout"]["both"] if "heldout" in line else line["loss_nats"] for line in lines]


def assert_same_run(folder: Path, other: Path) -> None:
    assert len(curve_of(folder)) == len(curve_of(other)) == STEPS + 2
    assert curve_of(folder) == pytest.approx(curve_of(other), rel=1e-4)
    weights, expected = load_file(folder / "model.safetensors"), load_file(other / "model.safetensors")
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert_close(weights[name], tensor, **CLOSE, msg=name)


def test_the_curve_is_that_of_one_process_with_batches_twice_as_large(together: Path, tmp_path: Path) -> None:
    start(tmp_path / "alone", replace(TOGETHER, processes=1, batch_tokens=80), place_of(tmp_path / "alone"))
    assert_same_run(together / "full", tmp_path / "alone")


@pytest.mark.parametrize(("name", "settings"), [("full", TOGETHER), ("sampled", SAMPLED), ("adagrad", ADAGRAD)])
def test_the_curve_is_that_of_one_process_that_accumulates_also_with_dropout(
    name: str, settings: TrainingSettings, together: Path, tmp_path: Path
) -> None:
    start(tmp_path / "alone", replace(settings, processes=1, accumulate=2), place_of(tmp_path / "alone"))
    assert_same_run(together / name, tmp_path / "alone")


def test_a_signal_to_any_process_stops_all_at_the_same_step(together: Path) -> None:
    said = {path.read_text() for path in together.glob("stopped-*")}
    assert len(list(together.glob("stopped-*"))) == 2
    assert said == {f"stopped at step {STOP} of {STEPS}; everything is saved"}


def test_one_process_goes_on_where_two_have_stopped(together: Path) -> None:
    folder = together / "stopped"
    resume_training(folder, place_of(folder), Limits())
    assert_same_run(folder, together / "sampled")


def test_two_processes_go_on_where_one_has_stopped(together: Path) -> None:
    assert_same_run(together / "grown", together / "sampled")


def test_a_process_that_knows_no_address_of_the_others_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    with pytest.raises(ElmoError, match=r"^process 0 of 2 cannot meet the others: .* MASTER_ADDR expected"):
        join_team((0, 2, 0), torch.device("cpu"))


@pytest.mark.parametrize("rank", [0, 1])
def test_a_member_ends_without_what_python_does_in_the_end(rank: int) -> None:
    program = (
        "import atexit; from elmo_cli.training.distributed import ALONE, Team, end_member; end_member(ALONE); "
        f"atexit.register(print, 'late'); print('done'); end_member(Team({rank}, 2)); print('never')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, "done\n"), ended.stderr


def test_only_one_process_writes(together: Path) -> None:
    assert result_of(together / "full")["metrics"]
    steps = [line["step"] for line in result_of(together / "full")["metrics"]]  # type: ignore[attr-defined]
    assert steps == sorted(steps)
    assert sorted(path.name for path in (together / "full").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "run",
        "vocab.txt",
    ]
