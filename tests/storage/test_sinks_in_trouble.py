"""Every format on a full disk, behind a closed pipe and in a killed run: said once, and no half file left."""

import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from elmo_cli.storage.vector_formats import FORMATS

every_format = pytest.mark.parametrize("name", list(FORMATS))

# Writes 1,000 sentences of one vector, 400 kB and more, in the format named by the first argument.
SINK = """
import os, resource, signal, sys
from pathlib import Path
import numpy as np
from elmo_cli.errors import ElmoError
from elmo_cli.storage.files import output_error, whole_file
from elmo_cli.storage.vector_formats import VectorForm
from elmo_cli.storage.vectors import SentenceRows

numbers = np.random.default_rng(1)

def write(stream, trouble=lambda number: None):
    with VectorForm(sys.argv[1], "float32", (100,), True).sink(stream) as sink:
        for number in range(1, 1001):
            rows = SentenceRows(number, number, "text", [], [], [])
            sink.write({"id": number}, numbers.standard_normal(100, np.float32), rows)
            trouble(number)
"""


def run(script: str, *arguments: object, stdout: int = subprocess.PIPE) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", SINK + script, *map(str, arguments)]
    return subprocess.run(command, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@every_format
def test_a_full_disk_is_told_and_leaves_no_file(name: str, tmp_path: Path) -> None:
    script = """
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    with whole_file(Path(sys.argv[2])) as stream:
        write(stream)
except ElmoError as error:
    print(error.message)
"""
    done = run(script, name, tmp_path / "v")
    place = "keep the vectors in a temporary file" if name in ("npz", "hdf5") else f"write {tmp_path / 'v'}"
    assert (done.stdout, done.stderr) == (f"cannot {place}: File too large\n", "")
    assert list(tmp_path.iterdir()) == []


@every_format
def test_a_device_without_room_is_told(name: str) -> None:
    script = """
try:
    with whole_file(Path("/dev/full")) as stream:
        write(stream)
except ElmoError as error:
    print(error.message)
"""
    done = run(script, name)
    assert (done.stdout, done.stderr) == ("cannot write /dev/full: No space left on device\n", "")


@every_format
def test_a_closed_pipe_raises_one_error_and_says_nothing(name: str) -> None:
    script = """
reading, writing = os.pipe()
os.close(reading)
stream = open(writing, "wb", buffering=0)
try:
    write(stream)
except BrokenPipeError:
    sys.stderr.write("closed")
"""
    done = run(script, name)
    assert (done.returncode, done.stderr) == (0, "closed")


@every_format
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_stopped_run_leaves_no_file_of_the_name(name: str, number: int, tmp_path: Path) -> None:
    script = """
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(143))
def stop(at):
    if at == 500:
        os.kill(os.getpid(), int(sys.argv[3]))
with whole_file(Path(sys.argv[2])) as stream:
    write(stream, stop)
"""
    done = run(script, name, tmp_path / "v", int(number))
    assert (done.returncode, done.stderr) == ((-9, "") if number == signal.SIGKILL else (143, ""))
    assert not (tmp_path / "v").exists()
    assert len(list(tmp_path.iterdir())) == (number == signal.SIGKILL)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "jsonl"])
def test_an_interrupted_redirect_is_a_file_to_nobody(name: str, tmp_path: Path) -> None:
    """What a redirect holds cannot be taken back, so it must not read as a whole."""
    script = """
def stop(at):
    if at == 500:
        raise KeyboardInterrupt
try:
    write(sys.stdout.buffer, stop)
except KeyboardInterrupt:
    pass
"""
    path = tmp_path / "v"
    with path.open("wb") as out:
        assert run(script, name, stdout=out.fileno()).stderr == ""
    content = path.read_bytes()
    if name == "parquet":
        with pytest.raises(pyarrow.ArrowInvalid):
            pyarrow.parquet.read_table(path)
    elif name == "arrow":
        with pytest.raises(pyarrow.ArrowInvalid):
            pyarrow.ipc.open_file(path)
    else:
        assert content[:20] == bytes(len(content[:20]))  # nothing at all, or zeros in the place of a header
