"""Runs on the disk: how far they are, and whether somebody is still at work on them."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from elmo_cli.errors import ModelError, OutputError
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.storage.run_list import find_runs, read_run

HOLD = """
import sys, pathlib
from elmo_cli.storage.run_dir import RunDir
with RunDir(pathlib.Path(sys.argv[1])).under_way():
    print("held", flush=True)
    sys.stdin.read()
"""


def make_run(folder: Path, *perplexities: float) -> RunDir:
    run = RunDir(folder)
    run.create({})
    for number, both in enumerate(perplexities):
        head = {"step": number * 10, "tokens": number * 100, "seconds": number / 2}
        run.add_metrics({**head, "heldout": {"both": both}})
    return run


def test_a_run_tells_how_far_it_is_and_its_best_trained_model(tmp_path: Path) -> None:
    run = make_run(tmp_path / "m", 5.0, 90.0, math.inf, 40.0, 60.0)
    run.add_metrics({"step": 45, "tokens": 450, "seconds": 2.25, "loss_nats": 3.0})
    with (run.path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 46, "tok')  # being written
    found = read_run(tmp_path / "m")
    assert (found.name, found.steps, found.tokens, found.seconds) == ("m", 45, 450, 2.25)
    assert found.curve == ((0, 5.0), (10, 90.0), (30, 40.0), (40, 60.0))
    assert found.best == 40.0


def test_a_run_that_has_measured_nothing_has_no_best(tmp_path: Path) -> None:
    make_run(tmp_path / "m")
    found = read_run(tmp_path / "m")
    assert (found.steps, found.best, found.curve, found.state) == (0, None, (), "interrupted")
    json.dumps(found.to_json(), allow_nan=False)


def test_runs_are_found_in_models_and_in_folders_of_models_the_latest_last(tmp_path: Path) -> None:
    for age, name in enumerate(["new", "old"]):
        run = make_run(tmp_path / "models" / name, 9.0)
        os.utime(run.path / "metrics.jsonl", (1e9 - age, 1e9 - age))
    (tmp_path / "models" / "no-run").mkdir()
    (tmp_path / "models" / "file").touch()
    found = find_runs([tmp_path / "models", tmp_path / "models" / "new"])
    assert [run.name for run in found] == ["old", "new"]
    assert found[0].to_json()["changed"] == "2001-09-09T01:46:39+00:00"


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as caught:
        find_runs([tmp_path / "x"])
    assert caught.value.message == "no such folder"


def test_metrics_that_are_none_are_an_error(tmp_path: Path) -> None:
    run = make_run(tmp_path / "m")
    run.add_metrics({"step": 1})
    with pytest.raises(ModelError) as caught:
        read_run(tmp_path / "m")
    assert str(caught.value) == f"{run.path / 'metrics.jsonl'}: is damaged: KeyError('tokens')"


def test_the_state_follows_the_work(tmp_path: Path) -> None:
    run = make_run(tmp_path / "m", 9.0)
    states = [run.state]
    with pytest.raises(KeyboardInterrupt), run.under_way():
        raise KeyboardInterrupt
    states.append(run.state)
    with run.under_way():
        states.append(RunDir(tmp_path / "m").state)
    states.append(run.state)
    with pytest.raises(KeyboardInterrupt), run.under_way():
        raise KeyboardInterrupt
    assert [*states, run.state] == ["interrupted", "interrupted", "running", "finished", "interrupted"]


def test_a_killed_process_leaves_an_interrupted_run_and_a_living_one_keeps_others_out(tmp_path: Path) -> None:
    run = make_run(tmp_path / "m", 9.0)
    command = [sys.executable, "-c", HOLD, str(tmp_path / "m")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert run.state == "running"
        for refused in (lambda: run.under_way().__enter__(), run.remove):
            with pytest.raises(OutputError) as caught:
                refused()
            assert caught.value.message == "another process has this run under way"
        process.kill()
    assert run.state == "interrupted"
    run.remove()
    assert not run.path.exists()
