"""A run that is killed, again and again and at any moment, loses nothing: in the end it is the run nobody touched."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lives import SETTINGS, start
from outcomes import result_of

from elmo_cli.reporting import SilentReporter

LIVES = Path(__file__).parent / "lives.py"
MODEL_FILES = {"README.md", "config.json", "model.safetensors", "run", "vocab.txt"}


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("untouched") / "model"
    start(folder, SETTINGS, SilentReporter())
    return result_of(folder)


@pytest.mark.parametrize("seed", range(3))
def test_a_run_that_is_killed_at_random_moments_ends_as_if_it_never_was(
    seed: int, untouched: dict[str, object], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    command = [sys.executable, str(LIVES), str(folder), str(seed)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert json.loads(run.stdout)["kills"] >= 3
    assert result_of(folder) == untouched
    # Nothing of what was being written lies about.
    assert {path.name for path in folder.iterdir()} == MODEL_FILES
    assert [path.name for path in (folder / "run").iterdir() if path.name.startswith(".")] == []
