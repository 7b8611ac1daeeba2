"""`elmo train` under torchrun: one process speaks, and one run comes out."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer

Elmo = Callable[..., Answer]
OPTIONS = ("--preset", "tiny", "--input", "tokens", "--max-steps", "2", "--threads", "1")


def torchrun(*arguments: object, folder: Path) -> Answer:
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "elmo_cli"]
    command = [*launch, *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    run = subprocess.run(command, cwd=folder, capture_output=True, env=environment)
    return Answer(run.returncode, run.stdout, run.stderr.decode())


def test_two_processes_make_one_model_and_say_so_once(here: Path) -> None:
    answer = torchrun("train", DATA / "twenty.txt", *OPTIONS, "-o", "m", folder=here)
    assert (answer.code, answer.text) == (0, "models/m\n")
    assert [answer.stderr.count(part) for part in ("vocabulary  ", "step 0: ", "step 2: ")] == [1, 1, 1]
    assert "processes = 2" in (here / "models" / "m" / "run" / "settings.toml").read_text()


def test_an_error_of_all_processes_is_told_once(here: Path) -> None:
    (here / "empty.txt").touch()
    answer = torchrun("train", "empty.txt", *OPTIONS, folder=here)
    assert answer.code == 1
    assert answer.stderr.count("elmo: error: ") == 1


@pytest.fixture
def _launched(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("_launched")
def test_fine_tuning_does_not_share_its_work(elmo: Elmo, here: Path) -> None:
    answer = elmo("finetune", DATA / "twenty.txt")
    assert answer.code == 2
    assert answer.stderr == "elmo: error: elmo finetune trains in one process\n  fix: run it without torchrun\n"
