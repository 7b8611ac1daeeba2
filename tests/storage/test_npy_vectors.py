"""Vectors in npy files, redirects and pipes, and what is left when something goes wrong on the way."""

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from elmo_cli.config import DType
from elmo_cli.errors import ModelError, OutputError
from elmo_cli.storage.files import whole_file
from elmo_cli.storage.late_header import ByteStream
from elmo_cli.storage.npy_vectors import NpyWriter

ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
FINITE = {
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "float16": st.floats(width=16, allow_nan=False, allow_infinity=False),
}

WRITE_TO_STDOUT = """
import sys
import numpy as np
from elmo_cli.storage.npy_vectors import NpyWriter
with NpyWriter(sys.stdout.buffer, (3,)) as writer:
    for row in np.arange(12, dtype=np.float32).reshape(4, 3) / 7:
        writer.add(row[None])
"""


def read_npy(content: bytes) -> np.ndarray:
    return np.load(io.BytesIO(content), allow_pickle=False)


def run_to(script: str, stdout: object, *arguments: Path) -> int:
    """Run Python code with its standard output in ``stdout`` and return its exit code."""
    return subprocess.run([sys.executable, "-c", script, *arguments], stdout=stdout, check=False).returncode


def write_and_be_interrupted(stream: ByteStream) -> None:
    with NpyWriter(stream, (3,)) as writer:
        writer.add(ROWS)
        raise KeyboardInterrupt


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), max_size=6),
    st.sampled_from([(1,), (7,), (3, 5)]),
    st.sampled_from(["float32", "float16"]),
    st.data(),
)
def test_what_is_written_to_npy_is_what_numpy_loads(
    sizes: list[int], row_shape: tuple[int, ...], dtype: DType, data: st.DataObject
) -> None:
    parts = [data.draw(arrays.arrays(dtype, (size, *row_shape), elements=FINITE[dtype])) for size in sizes]
    stream = io.BytesIO()
    with NpyWriter(stream, row_shape, dtype) as writer:
        for part in parts:
            writer.add(part)
    loaded = read_npy(stream.getvalue())
    assert writer.rows == sum(sizes)
    assert loaded.dtype == dtype
    assert loaded.flags.c_contiguous
    np.testing.assert_array_equal(loaded, np.concatenate([np.zeros((0, *row_shape), dtype), *parts]))


@pytest.mark.parametrize("row_shape", [(3,), (2, 1024)])
def test_the_file_is_the_one_numpy_writes(row_shape: tuple[int, ...]) -> None:
    rows = np.ones((5, *row_shape), np.float32)
    ours, numpys = io.BytesIO(), io.BytesIO()
    with NpyWriter(ours, row_shape) as writer:
        writer.add(rows)
    np.save(numpys, rows)
    assert ours.getvalue() == numpys.getvalue()


def test_a_single_row_can_be_added() -> None:
    stream = io.BytesIO()
    with NpyWriter(stream, (3,)) as writer:
        writer.add(ROWS[0])
        writer.write({"id": "a"}, ROWS[1:])
    np.testing.assert_array_equal(read_npy(stream.getvalue()), ROWS)


def test_rows_in_any_order_of_memory_are_written_in_c_order() -> None:
    stream = io.BytesIO()
    with NpyWriter(stream, (3,)) as writer:
        writer.add(np.asfortranarray(ROWS)[::-1])
    np.testing.assert_array_equal(read_npy(stream.getvalue()), ROWS[::-1])


def test_float16_is_rounded_once() -> None:
    stream = io.BytesIO()
    with NpyWriter(stream, (3,), "float16") as writer:
        writer.add(ROWS)
    np.testing.assert_array_equal(read_npy(stream.getvalue()), ROWS.astype(np.float16))


def test_rows_of_another_shape_are_a_mistake() -> None:
    with pytest.raises(ValueError, match=r"rows have the shape \(3,\), these are of shape \(2, 4\)"):
        NpyWriter(io.BytesIO(), (3,)).add(np.zeros((2, 4), np.float32))


def test_a_shape_too_long_for_the_header_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="does not fit into a header of 128 bytes"):
        NpyWriter(io.BytesIO(), (1,) * 40).finish()


def test_an_array_in_a_file_can_be_memory_mapped(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a.npy") as stream, NpyWriter(stream, (3,)) as writer:
        writer.add(ROWS)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), ROWS)


def test_a_redirect_holds_the_array(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        assert run_to(WRITE_TO_STDOUT, out) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out"), ROWS)


def test_a_redirect_keeps_what_stands_before_and_what_comes_after(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb", buffering=0) as out:
        out.write(b"x\n")
        assert run_to(WRITE_TO_STDOUT, out) == 0
        out.write(b"y\n")
    content = (tmp_path / "out").read_bytes()
    assert content[:2] == b"x\n"
    assert content[-2:] == b"y\n"
    np.testing.assert_array_equal(read_npy(content[2:-2]), ROWS)


def test_appending_puts_the_array_behind_what_is_there(tmp_path: Path) -> None:
    (tmp_path / "out").write_bytes(b"x\n")
    with (tmp_path / "out").open("ab") as out:
        assert run_to(WRITE_TO_STDOUT, out) == 0
    content = (tmp_path / "out").read_bytes()
    assert content[:2] == b"x\n"
    np.testing.assert_array_equal(read_npy(content[2:]), ROWS)


def test_appending_to_an_empty_file_makes_an_array(tmp_path: Path) -> None:
    with (tmp_path / "out").open("ab") as out:
        assert run_to(WRITE_TO_STDOUT, out) == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out"), ROWS)


def test_a_pipe_carries_the_array(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=out)
        assert run_to(WRITE_TO_STDOUT, cat.stdin) == 0
        cat.communicate()
    np.testing.assert_array_equal(np.load(tmp_path / "out"), ROWS)


def test_nothing_goes_into_a_pipe_before_the_end() -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with open(reading, "rb", buffering=0) as reader, open(writing, "wb") as stream:
        with NpyWriter(stream, (3,)) as writer:
            writer.add(ROWS)
            writer.flush()
            assert reader.read(1) is None
        assert len(reader.read(1000)) == 128 + ROWS.nbytes


def test_an_exception_leaves_nothing_in_a_pipe() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb") as reader:
        with open(writing, "wb") as stream, pytest.raises(KeyboardInterrupt):
            write_and_be_interrupted(stream)
        assert reader.read() == b""


def test_an_exception_leaves_no_npy_in_a_redirect() -> None:
    stream = io.BytesIO()
    with pytest.raises(KeyboardInterrupt):
        write_and_be_interrupted(stream)
    assert stream.getvalue()[:128] == bytes(128)


def test_a_killed_run_leaves_no_npy_in_a_redirect(tmp_path: Path) -> None:
    kill = "    writer.flush()\n    import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    with (tmp_path / "out").open("wb") as out:
        assert run_to(WRITE_TO_STDOUT + kill, out) == -signal.SIGKILL
    assert (tmp_path / "out").stat().st_size == 128 + ROWS.nbytes
    with pytest.raises(ValueError, match="pickled"):
        np.load(tmp_path / "out")


def test_a_killed_run_leaves_neither_the_file_nor_another_npy(tmp_path: Path) -> None:
    script = """
import os, signal, sys
from pathlib import Path
import numpy as np
from elmo_cli.storage.files import whole_file
from elmo_cli.storage.npy_vectors import NpyWriter
with whole_file(Path(sys.argv[1])) as stream, NpyWriter(stream, (3,)) as writer:
    writer.add(np.zeros((4, 3), np.float32))
    writer.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_to(script, subprocess.DEVNULL, tmp_path / "a.npy") == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name != "a.npy"
    with pytest.raises(ValueError, match="pickled"):
        np.load(left)


def test_a_full_disk_is_reported_and_leaves_no_file(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    script = """
import resource, sys
from pathlib import Path
import numpy as np
from elmo_cli.errors import OutputError
from elmo_cli.storage.files import whole_file
from elmo_cli.storage.npy_vectors import NpyWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with whole_file(Path(sys.argv[1])) as stream, NpyWriter(stream, (100,)) as writer:
        for _ in range(1000):
            writer.add(np.zeros((1, 100), np.float32))
except OutputError as error:
    print(error.message)
"""
    done = subprocess.run([sys.executable, "-c", script, target], capture_output=True, text=True, check=True)
    assert done.stdout == f"cannot write {target}: File too large\n"
    assert done.stderr == ""
    assert list(tmp_path.iterdir()) == []


def test_a_full_temporary_folder_is_reported_with_the_variable_that_moves_it() -> None:
    script = """
import resource, sys
import numpy as np
from elmo_cli.errors import OutputError
from elmo_cli.storage.npy_vectors import NpyWriter
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with NpyWriter(sys.stdout.buffer, (100,)) as writer:
        writer.add(np.zeros((1000, 100), np.float32))
except OutputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "cannot keep the vectors in a temporary file: File too large\n"
        "  fix: set TMPDIR to a folder with more room, or write to a file: -o vectors.npy\n"
    )


def test_a_missing_temporary_folder_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/nowhere")
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as stream, pytest.raises(OutputError) as caught:
        NpyWriter(stream, (3,))
    assert caught.value.message == "cannot keep the vectors in a temporary file: No such file or directory"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_npy_holds_no_number_that_is_not_finite(value: str) -> None:
    with pytest.raises(ModelError) as caught:
        NpyWriter(io.BytesIO(), (1,)).add(np.full((2, 1), float(value), np.float32))
    assert str(caught.value) == (
        f"a vector holds {value}\n  fix: use another model: the training of this one has diverged"
    )


def test_a_number_too_large_for_float16_is_not_made_infinite() -> None:
    with pytest.raises(ModelError) as caught:
        NpyWriter(io.BytesIO(), (1,), "float16").add(np.full((2, 1), 70000, np.float32))
    assert str(caught.value) == "70000 does not fit into float16\n  fix: write float32: --dtype float32"
