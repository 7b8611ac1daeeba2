"""A run's folder: settings that people can read, metrics by the line, and checkpoints that survive a crash."""

import json
import math
import os
import subprocess
import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.errors import ModelError, OutputError
from elmo_cli.storage.checkpoints import Checkpoint
from elmo_cli.storage.run_dir import RunDir, find_run, refuse_existing_model, to_toml

plain_text = st.text(st.characters(exclude_categories=["Cs"]))
bare_key = st.from_regex(r"[A-Za-z0-9_-]+", fullmatch=True)
plain_value = (
    plain_text
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.booleans()
    | st.lists(plain_text)
)
tables = st.dictionaries(bare_key, st.dictionaries(bare_key, st.none() | plain_value, max_size=4), max_size=3)


@pytest.fixture
def run(tmp_path: Path) -> RunDir:
    run = RunDir(tmp_path / "model")
    run.create({"training": {"seed": 1}})
    return run


def checkpoint(step: int) -> Checkpoint:
    generator = torch.Generator().manual_seed(step)
    tensors = {"a": torch.randn(3, 4, generator=generator), "b": torch.tensor([step])}
    return Checkpoint(tensors, {"step": step, "best": None, "seconds": 0.1 + step})


def checkpoints_of(run: RunDir) -> list[str]:
    return sorted(path.name for path in run.path.iterdir() if "checkpoint" in path.name)


def step_of(run: RunDir) -> tuple[int, list[str]]:
    found = run.load_newest()
    assert found is not None
    return found[0].values["step"], found[1]


@given(tables)
def test_tomllib_reads_what_is_written(settings: dict[str, dict[str, object]]) -> None:
    without_none = {
        name: {key: value for key, value in table.items() if value is not None} for name, table in settings.items()
    }
    assert tomllib.loads(to_toml(settings)) == without_none


def test_the_settings_are_lines_that_a_person_can_read() -> None:
    settings = {"training": {"epochs": 2, "rate": 1e-05, "max_steps": None}, "text": {"files": ["/a b/é.txt"]}}
    assert to_toml(settings) == '[training]\nepochs = 2\nrate = 1e-05\n\n[text]\nfiles = ["/a b/é.txt"]\n'


def test_the_settings_read_back_also_with_a_file_name_that_is_not_utf_8(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    settings = {"text": {"corpora": [os.fsdecode(b"/caf\xe9.txt"), "/\x7f", "/é"]}}
    run.create(settings)
    assert run.settings() == settings


def test_a_folder_without_a_run_says_so(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        RunDir(tmp_path).settings()
    assert str(caught.value) == f"{tmp_path}: holds no run to resume"


def test_damaged_settings_are_told_with_the_file(run: RunDir) -> None:
    path = run.path / "settings.toml"
    path.write_text("[training\n")
    with pytest.raises(ModelError) as caught:
        run.settings()
    assert str(caught.value).startswith(f"{path}: cannot be read: ")


def test_a_folder_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError) as caught:
        RunDir(tmp_path / "file" / "model").create({})
    assert caught.value.message == f"cannot write {tmp_path / 'file/model/run'}: Not a directory"


def test_metrics_are_json_lines(run: RunDir) -> None:
    run.add_metrics({"step": 0, "loss": 1.5})
    run.add_metrics({"step": 1})
    lines = (run.path / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"step": 0, "loss": 1.5}, {"step": 1}]


def test_metrics_that_are_no_numbers_are_null_as_json_has_none(run: RunDir) -> None:
    run.add_metrics({"step": 0, "heldout": {"both": math.inf}, "rates": [math.nan, 1.0]})
    line = (run.path / "metrics.jsonl").read_text()
    assert line == '{"step": 0, "heldout": {"both": null}, "rates": [null, 1.0]}\n'


def test_metrics_of_steps_that_are_made_again_and_torn_lines_are_dropped(run: RunDir) -> None:
    for step in range(4):
        run.add_metrics({"step": step})
    path = run.path / "metrics.jsonl"
    path.write_text(path.read_text() + '{"step": 1, "lo')
    run.keep_metrics(2)
    run.add_metrics({"step": 3})
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n{"step": 2}\n{"step": 3}\n'


def test_a_run_without_metrics_has_none_to_drop(run: RunDir) -> None:
    run.keep_metrics(-1)
    assert not (run.path / "metrics.jsonl").exists()


def test_a_checkpoint_reads_back_exactly(run: RunDir) -> None:
    run.save(checkpoint(7))
    found = run.load_newest()
    assert found is not None
    assert found[0].values == checkpoint(7).values
    assert found[0].tensors.keys() == {"a", "b"}
    assert all(torch.equal(found[0].tensors[name], tensor) for name, tensor in checkpoint(7).tensors.items())


def test_a_new_run_has_no_checkpoint(run: RunDir) -> None:
    assert run.load_newest() is None


def test_the_newest_two_checkpoints_are_kept(run: RunDir) -> None:
    for step in (5, 900, 1_000_000):
        run.save(checkpoint(step))
    assert checkpoints_of(run) == ["checkpoint-000000900", "checkpoint-001000000"]
    assert step_of(run) == (1_000_000, [])


def test_the_same_step_can_be_saved_twice(run: RunDir) -> None:
    run.save(checkpoint(5))
    run.save(checkpoint(5))
    assert checkpoints_of(run) == ["checkpoint-000000005"]


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json"])
@pytest.mark.parametrize("kept", [None, 0, 20], ids=["missing", "empty", "cut"])
def test_a_damaged_newest_checkpoint_gives_way_to_the_one_before(run: RunDir, name: str, kept: int | None) -> None:
    run.save(checkpoint(5))
    run.save(checkpoint(6))
    path = run.path / "checkpoint-000000006" / name
    content = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(content[:kept])
    assert step_of(run) == (5, ["checkpoint-000000006"])


@pytest.mark.parametrize("name", ["tensors.safetensors", "values.json", "SHA256SUMS"])
def test_a_checkpoint_of_which_one_bit_has_changed_is_damaged(run: RunDir, name: str) -> None:
    run.save(checkpoint(5))
    run.save(checkpoint(6))
    path = run.path / "checkpoint-000000006" / name
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    assert step_of(run) == (5, ["checkpoint-000000006"])


def test_the_sums_are_those_of_sha256sum(run: RunDir) -> None:
    run.save(checkpoint(5))
    folder = run.path / "checkpoint-000000005"
    assert subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"], cwd=folder).returncode == 0


def test_a_kill_while_a_checkpoint_takes_the_place_of_another_loses_neither(
    run: RunDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.save(checkpoint(5))
    rename, done = Path.rename, 0

    def once(path: Path, target: Path) -> Path:
        nonlocal done
        done += 1
        if done > 1:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", once)
        with pytest.raises(KeyboardInterrupt):
            run.save(checkpoint(5))
    assert step_of(run) == (5, [])
    run.save(checkpoint(6))
    assert checkpoints_of(run) == ["checkpoint-000000006"]


def test_checkpoints_that_are_asked_for_are_kept_beside_the_newest_two(run: RunDir) -> None:
    for step in (5, 6, 7, 8):
        run.save(checkpoint(step), keep=[5])
    assert checkpoints_of(run) == [f"checkpoint-{step:09d}" for step in (5, 7, 8)]


def test_going_back_drops_what_came_after(run: RunDir) -> None:
    for step in (5, 6, 7):
        run.save(checkpoint(step))
        run.add_metrics({"step": step})
    run.go_back(6)
    assert checkpoints_of(run) == ["checkpoint-000000006"]
    assert [line["step"] for line in run.metrics()] == [5, 6]


def test_where_every_checkpoint_is_damaged_they_are_named(run: RunDir) -> None:
    for step in (5, 6):
        run.save(checkpoint(step))
        (run.path / f"checkpoint-{step:09d}" / "values.json").write_text("{")
    with pytest.raises(ModelError) as caught:
        run.load_newest()
    assert str(caught.value) == (
        f"{run.path}: no checkpoint can be read; damaged: checkpoint-000000006, checkpoint-000000005\n"
        "  fix: start over with --force"
    )


def test_a_checkpoint_that_was_being_written_when_the_machine_stopped_is_not_seen(run: RunDir) -> None:
    run.save(checkpoint(5))
    (run.path / ".checkpoint-000000006.part").mkdir()
    assert step_of(run) == (5, [])
    run.save(checkpoint(6))
    assert checkpoints_of(run) == ["checkpoint-000000005", "checkpoint-000000006"]


def test_a_checkpoint_that_cannot_be_written_leaves_nothing(run: RunDir) -> None:
    (run.path / "checkpoint-000000006").touch()  # a file where the folder should go
    with pytest.raises(OutputError) as caught:
        run.save(checkpoint(6))
    assert caught.value.message == f"cannot write {run.path / 'checkpoint-000000006'}: Not a directory"
    assert checkpoints_of(run) == ["checkpoint-000000006"]


def test_removing_a_run_leaves_the_model(run: RunDir) -> None:
    model = run.path.parent / "config.json"
    model.write_text("{}")
    run.remove()
    run.remove()
    assert not run.path.exists()
    assert model.exists()


@pytest.mark.parametrize("name", ["model", "models/model"])
def test_a_run_is_found_by_path_and_by_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    RunDir(Path(name)).create({})
    assert find_run("model") == Path(name)


def test_where_there_is_no_run_nothing_can_go_on() -> None:
    with pytest.raises(ModelError) as caught:
        find_run("no-such-model")
    assert str(caught.value) == (
        "no-such-model: there is no run to go on with\n  fix: name the folder of a model in training"
    )


def test_a_run_that_has_nothing_yet_is_begun_anew_without_force_unless_it_is_under_way(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.create({})
    with suppress(KeyboardInterrupt), run.under_way():
        with pytest.raises(OutputError):
            refuse_existing_model(tmp_path, force=False)
        raise KeyboardInterrupt
    assert sorted(path.name for path in run.path.iterdir()) == ["lock", "settings.toml"]
    refuse_existing_model(tmp_path, force=False)


@pytest.mark.parametrize("there", ["config.json", "run/metrics.jsonl"])
def test_a_model_or_a_run_is_not_replaced_unless_forced(tmp_path: Path, there: str) -> None:
    refuse_existing_model(tmp_path, force=False)
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / there).touch()
    refuse_existing_model(tmp_path, force=True)
    with pytest.raises(OutputError) as caught:
        refuse_existing_model(tmp_path, force=False)
    assert str(caught.value) == (
        f"{tmp_path}: there is a model or a run already\n"
        f"  fix: go on with --resume {tmp_path}, replace it with --force, or choose another -o"
    )
