"""The installed `elmo` between other programs: redirects, pipes, terminals, full disks and signals."""

import io
import os
import pty
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import DATA, Answer, elmo_program

Shell = Callable[..., Answer]
TOKENS = "--input tokens"  # spares the seconds that spaCy takes to load


@pytest.fixture
def text(here: Path) -> Path:
    path = here / "text.txt"
    path.write_text("The ferry left .\n\nNobody waved .\n")
    return path


def test_text_comes_from_a_pipe_and_vectors_go_to_a_file(shell: Shell, model: Path, text: Path, here: Path) -> None:
    answer = shell(f"cat text.txt | elmo embed -m $1 {TOKENS} > x.npy", model, folder=here)
    assert (answer.code, answer.stdout) == (0, b"")
    assert np.load(here / "x.npy").shape == (7, 64)


def test_vectors_go_into_a_pipe(shell: Shell, elmo: Callable[..., Answer], model: Path, text: Path, here: Path) -> None:
    answer = shell(f"elmo -q embed text.txt -m $1 {TOKENS} | cat", model, folder=here)
    assert (answer.code, answer.stderr) == (0, "")
    assert np.load(io.BytesIO(answer.stdout)).shape == (7, 64)
    assert answer.stdout == elmo("embed", "text.txt", "-m", model, "--input", "tokens").stdout


def test_a_reader_that_has_enough_is_no_error(shell: Shell, model: Path, here: Path) -> None:
    line = f'elmo -q embed "$2" -m "$1" {TOKENS} -f jsonl | head -1 | wc -l; echo "${{PIPESTATUS[0]}}"'
    answer = shell(line, model, DATA / "harbour.txt", folder=here)
    assert (answer.text.split(), answer.stderr) == (["1", "0"], "")


def test_three_commands_of_which_the_last_has_enough_end_quietly(shell: Shell, model: Path, here: Path) -> None:
    line = (
        f'for n in 1 2 3 4; do cat "$2"; done | elmo -q embed -m "$1" {TOKENS} -f jsonl | head -2 | wc -l; '
        'echo "${PIPESTATUS[@]}"'
    )
    answer = shell(line, model, DATA / "harbour.txt", folder=here)
    lines, codes = answer.text.splitlines()
    assert (int(lines), codes.split()[1:], answer.stderr) == (2, ["0", "0", "0"], "")


def test_a_full_disk_behind_a_redirect_is_an_error(shell: Shell, model: Path, text: Path, here: Path) -> None:
    answer = shell(f"elmo embed text.txt -m $1 {TOKENS} > /dev/full", model, folder=here)
    assert answer.code == 1
    assert answer.stderr == (
        "elmo: error: cannot write standard output: No space left on device\n"
        "  fix: make room on that disk, or name a file on another one\n"
    )


def test_a_reader_of_messages_that_leaves_stops_no_training(shell: Shell, here: Path) -> None:
    line = '{ elmo train "$1" --preset tiny --max-steps 2 -o m; echo $? > code; } 2>&1 > answer | head -1'
    answer = shell(line, DATA / "twenty.txt", folder=here)
    assert len(answer.text.splitlines()) == 1
    assert ((here / "code").read_text(), (here / "answer").read_text()) == ("0\n", "models/m\n")
    assert (here / "models/m/model.safetensors").is_file()


def test_messages_that_cannot_be_written_change_neither_work_nor_exit_code(
    shell: Shell, model: Path, text: Path, here: Path
) -> None:
    line = f"elmo embed text.txt -m $1 {TOKENS} -o x.npy 2> /dev/full; echo $?; elmo info nothing 2> /dev/full; echo $?"
    assert shell(line, model, folder=here).text.split() == ["0", "1"]
    assert np.load(here / "x.npy").shape == (7, 64)


@pytest.mark.parametrize("options", [(), ("-o", "-"), ("-f", "hdf5")], ids=["npy", "dash", "hdf5"])
def test_binary_vectors_do_not_go_to_a_terminal(model: Path, text: Path, options: tuple[str, ...]) -> None:
    ours, theirs = pty.openpty()
    command = [elmo_program(), "embed", str(text), "-m", str(model), *options]
    try:
        run = subprocess.run(command, stdout=theirs, stderr=subprocess.PIPE)
        os.set_blocking(ours, False)
        with pytest.raises(BlockingIOError):
            os.read(ours, 1)
    finally:
        os.close(ours)
        os.close(theirs)
    assert run.returncode == 2
    assert run.stderr.decode() == (
        "elmo: error: not writing binary vectors to a terminal\n"
        "  fix: add -o vectors.npy or > vectors.npy, or choose -f jsonl\n"
    )


def test_a_name_of_standard_output_is_no_file_to_replace_where_that_is_one(model: Path, here: Path) -> None:
    command = [elmo_program(), "embed", DATA / "twenty.txt", "-m", str(model), "--input", "tokens", "-o"]
    with (here / "a.npy").open("wb") as out:
        run = subprocess.run([*command, "/dev/stdout"], stdout=out, stderr=subprocess.PIPE, check=False)
    assert run.returncode == 0, run.stderr
    subprocess.run([*command, "b.npy"], check=True)
    assert (here / "a.npy").read_bytes() == (here / "b.npy").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_leaves_no_half_written_file(model: Path, here: Path, number: int, code: int) -> None:
    command = [elmo_program(), "embed", "-m", str(model), "--input", "tokens", "-o", "x.npy"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while process.poll() is None and not any(here.iterdir()):
            time.sleep(0.05)
        written = [path.suffix for path in here.iterdir()]
        process.send_signal(number)
        assert process.stderr is not None
        stderr = process.stderr.read()
    assert written == [".part"]
    assert process.returncode == code
    assert stderr == (b"elmo: interrupted\n" if number == signal.SIGINT else b"")
    assert list(here.iterdir()) == []
