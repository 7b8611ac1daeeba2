"""What tests of the command line share: how an answer looks, and where the installed command is."""

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Answer:
    """What a command left behind.

    Attributes:
        code: the exit code.
        stdout: as bytes, since vectors are no text.
        stderr: as text.
    """

    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()


@dataclass(frozen=True)
class Trained:
    """The tiny model, and what the training that made it said."""

    folder: Path
    answer: Answer


def elmo_program() -> str:
    """Return the installed command, which stands beside the Python that runs the tests."""
    return str(Path(sys.executable).parent / "elmo")


def run_process(*command: object, folder: Path | None = None) -> Answer:
    run = subprocess.run([str(part) for part in command], cwd=folder, capture_output=True)
    return Answer(run.returncode, run.stdout, run.stderr.decode())
