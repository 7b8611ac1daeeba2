"""`elmo embed` with worker processes: the same bytes, the same errors, and nobody left behind."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command_line import DATA, Answer, elmo_program

Elmo = Callable[..., Answer]


def processes_of(session: int) -> list[int]:
    """Return the running processes that a session started, in whatever group they are."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, of_session = stat.read_text().rpartition(")")[2].split()[:4]
            if int(of_session) == session and state != "Z":
                found.append(int(stat.parent.name))
    return found


@contextmanager
def embedding_without_end(model: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Start a command that gets one sentence after the other from a pipe and has told of the first."""
    command = [elmo_program(), "-q", "embed", "-m", str(model), "-f", "jsonl", "--workers", "2"]
    pipe = subprocess.PIPE
    feeder = subprocess.Popen(["yes", "It isn't so."], stdout=pipe)
    with (
        feeder,
        subprocess.Popen(command, stdin=feeder.stdout, stdout=pipe, stderr=pipe, start_new_session=True) as process,
    ):
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b'{"id": 1, ')
        assert len(processes_of(process.pid)) == 3
        yield process
        feeder.kill()


def assert_nobody_is_left(session: int) -> None:
    end = time.monotonic() + 30
    while processes_of(session) and time.monotonic() < end:
        time.sleep(0.05)
    assert processes_of(session) == []


def test_worker_processes_change_no_byte(elmo: Elmo, model: Path) -> None:
    answers = [elmo("embed", DATA / "world.txt", "-m", model, "-f", "jsonl", "--workers", n) for n in (0, 1, 3)]
    assert answers[0].code == 0
    assert answers[0].stdout == answers[1].stdout == answers[2].stdout


def test_the_installed_command_tokenizes_beside_itself_a_piped_text(model: Path, here: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "ELMO_WORKERS"}
    command = [elmo_program(), "-q", "embed", "-m", str(model), "-f", "jsonl"]
    run = subprocess.run(command, input=b"It isn't so.\n", capture_output=True, env=environment)
    assert (run.returncode, run.stderr) == (0, b"")
    assert json.loads(run.stdout)["tokens"] == ["It", "is", "n't", "so", "."]


def test_an_error_of_a_worker_is_told_as_if_there_were_none(elmo: Elmo, model: Path, here: Path) -> None:
    for workers in (0, 1):
        answer = elmo("embed", "-m", model, "--lang", "english", "--workers", workers, "-o", "x.npy", stdin=b"a\n")
        assert (answer.code, answer.stderr) == (
            2,
            "elmo: error: spaCy has no language 'english'\n  fix: did you mean en?\n",
        )
        assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "code", "stderr"),
    [(signal.SIGINT, 130, b"elmo: interrupted\n"), (signal.SIGTERM, 143, b""), (signal.SIGKILL, -9, b"")],
)
def test_a_signal_ends_the_workers_too(model: Path, number: int, code: int, stderr: bytes) -> None:
    with embedding_without_end(model) as process:
        os.killpg(process.pid, number)  # as a terminal does it
        process.stdout.close()  # type: ignore[union-attr]
        assert process.stderr is not None
        assert process.stderr.read() == stderr
        assert process.wait() == code
        assert_nobody_is_left(process.pid)


def test_a_reader_that_has_enough_ends_the_workers_too(model: Path) -> None:
    with embedding_without_end(model) as process:
        process.stdout.close()  # type: ignore[union-attr]
        assert process.stderr is not None
        assert process.stderr.read() == b""
        assert process.wait() == 0
        assert_nobody_is_left(process.pid)
