"""`elmo train` under torchrun: one process speaks, and one run comes out."""

import os
import subprocess
import sys
from pathlib import Path

from command_line import DATA, Answer

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


def test_two_processes_fine_tune_one_model_and_say_so_once(here: Path) -> None:
    assert torchrun("train", DATA / "twenty.txt", *OPTIONS, "-o", "m", folder=here).code == 0
    answer = torchrun("finetune", DATA / "letters.txt", "-m", "m", *OPTIONS[2:], "-o", "n", folder=here)
    assert (answer.code, answer.text) == (0, "models/n\n")
    assert [answer.stderr.count(part) for part in ("step 0: ", "step 2: ")] == [1, 1]
    assert answer.stderr.count(" after, ") == 1
    assert "processes = 2" in (here / "models" / "n" / "run" / "settings.toml").read_text()
