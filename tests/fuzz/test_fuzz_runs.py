"""A run's folder, a mix and a file of settings that others made or a crash has damaged."""

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import Answer
from fuzz_targets import TARGETS, read_metrics
from hypothesis import given
from hypothesis import strategies as st
from strange import examples, mutated, strange_documents

Elmo = Callable[..., Answer]
LINE = {"step": 3, "tokens": 40, "seconds": 0.5, "loss": 3.5, "heldout": {"both": 20.5, "forward": 20, "backward": 21}}
TOML = b"""preset = "tiny"
[training]
seed = 1
ratio = 0.5
corpora = ["a.txt", "b.txt"]
# remark
[mix.learn]
layers = "top"
"""


def test_strange_metrics_are_a_run_or_refused(tmp_path: Path) -> None:
    lines = st.lists(strange_documents(LINE) | st.text(max_size=10), max_size=3).map("\n".join)

    @examples(80)
    @given(text=lines | st.sampled_from(["[" * 100_000, '{"step": 1e999}', '{"step": ' + "9" * 5000 + "}"]))
    def check(text: str) -> None:
        TARGETS["metrics"](text.encode("utf-8", "replace"), tmp_path)

    check()


@pytest.mark.parametrize(
    "name",
    ["checkpoint-²", "checkpoint-٣", "checkpoint-", "checkpoint-1.old.old", "checkpoint--1", "checkpoint-" + "9" * 200],
)
def test_odd_names_beside_the_checkpoints_are_no_checkpoints(tmp_path: Path, name: str) -> None:
    (tmp_path / "run" / name).mkdir(parents=True)
    (tmp_path / "run" / "metrics.jsonl").write_text(json.dumps(LINE) + "\n")
    read_metrics(tmp_path)


def test_mutated_settings_are_settings_or_refused(tmp_path: Path) -> None:
    @examples(80)
    @given(data=mutated(TOML) | st.binary(max_size=60))
    def check(data: bytes) -> None:
        TARGETS["settings"](data, tmp_path)

    check()


@pytest.fixture(scope="session")
def run(elmo: Elmo, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model's folder whose run is not finished, with one checkpoint."""
    folder = tmp_path_factory.mktemp("run")
    text = folder / "t.txt"
    text.write_text("the boat left .\nA boat left the pier .\n" * 6)
    model = folder / "model"
    options = ("--preset", "tiny", "--input", "tokens", "--max-steps", 2, "--device", "cpu")
    answer = elmo("train", text, "-o", model, *options)
    assert answer.code == 0, answer.stderr
    (model / "run" / "finished").unlink(missing_ok=True)
    return model


def with_sums(checkpoint: Path) -> None:
    """Write the sums anew, as whoever changes a checkpoint on purpose does."""
    names = ("tensors.safetensors", "values.json")
    lines = (f"{hashlib.sha256((checkpoint / name).read_bytes()).hexdigest()}  {name}\n" for name in names)
    (checkpoint / "SHA256SUMS").write_text("".join(lines))


def checkpoints(model: Path) -> list[Path]:
    return sorted((model / "run").glob("checkpoint-*"))


def test_strange_values_of_a_checkpoint_are_a_run_or_refused(elmo: Elmo, run: Path, tmp_path: Path) -> None:
    values = json.loads((checkpoints(run)[-1] / "values.json").read_text())

    @examples(8)
    @given(text=strange_documents(values) | st.sampled_from(["[]", "null", "[" * 100_000]))
    def check(text: str) -> None:
        resume(elmo, run, tmp_path, lambda path: (path / "values.json").write_text(text))

    check()


def resume(elmo: Elmo, run: Path, scratch: Path, change: Callable[[Path], Any]) -> None:
    """Go on with a copy of a run whose checkpoints have all been changed; no exception comes through."""
    model = scratch / "copy"
    shutil.rmtree(model, ignore_errors=True)
    shutil.copytree(run, model)
    for checkpoint in checkpoints(model):
        change(checkpoint)
        with_sums(checkpoint)
    answer = elmo("train", "--resume", model, "--max-steps", 3)
    assert answer.code in (0, 1, 2, 3), answer.stderr


def test_tensors_of_another_model_are_refused(elmo: Elmo, run: Path, tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file, save_file

    changes: list[Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]] = [
        lambda tensors: {},
        lambda tensors: dict(list(tensors.items())[1:]),
        lambda tensors: {name: tensor.flatten() for name, tensor in tensors.items()},
        lambda tensors: {name: tensor[:1].clone() if tensor.dim() else tensor for name, tensor in tensors.items()},
        lambda tensors: {**tensors, "model.more": torch.zeros(1)},
        lambda tensors: {name.replace("moment.", "moment.x"): tensor for name, tensor in tensors.items()},
    ]
    for change in changes:

        def write(path: Path, change: Any = change) -> None:  # noqa: ANN401
            file = path / "tensors.safetensors"
            save_file(change(load_file(file)), file)

        resume(elmo, run, tmp_path, write)


def test_strange_settings_of_a_run_are_refused_or_gone_on_with(elmo: Elmo, run: Path, tmp_path: Path) -> None:
    sound = (run / "run" / "settings.toml").read_bytes()

    @examples(8)
    @given(data=mutated(sound))
    def check(data: bytes) -> None:
        model = tmp_path / "copy"
        shutil.rmtree(model, ignore_errors=True)
        shutil.copytree(run, model)
        (model / "run" / "settings.toml").write_bytes(data)
        answer = elmo("train", "--resume", model, "--max-steps", 3)
        assert answer.code in (0, 1, 2, 3), answer.stderr

    check()
