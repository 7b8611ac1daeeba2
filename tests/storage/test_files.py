"""Files that are whole or not there, and what a user reads when they cannot be written."""

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from elmo_cli.errors import OutputError
from elmo_cli.storage.files import output_error, whole_file, write_bytes_whole, write_text_whole


def run_script(script: str, *arguments: Path, **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run Python code in a process of its own, which may be limited, redirected or killed."""
    return subprocess.run([sys.executable, "-c", script, *arguments], capture_output="stdout" not in options, **options)


def write_and_raise(path: Path, kind: type[BaseException]) -> None:
    with whole_file(path) as stream:
        stream.write(b"new")
        raise kind


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_file_is_written_and_nothing_else_remains(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a.npy") as stream:
        stream.write(b"content")
    assert (tmp_path / "a.npy").read_bytes() == b"content"
    assert names(tmp_path) == ["a.npy"]


def test_until_the_end_the_old_file_stays(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    target.write_bytes(b"old")
    with whole_file(target) as stream:
        stream.write(b"new")
        stream.flush()
        assert target.read_bytes() == b"old"
        (temporary,) = [name for name in names(tmp_path) if name != "a.npy"]
    assert temporary.startswith(".a.npy.")
    assert temporary.endswith(".part")
    assert target.read_bytes() == b"new"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError, SystemExit])
def test_an_exception_leaves_the_old_file_and_no_temporary_one(tmp_path: Path, kind: type[BaseException]) -> None:
    target = tmp_path / "a.npy"
    target.write_bytes(b"old")
    with pytest.raises(kind):
        write_and_raise(target, kind)
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.npy"]


def test_an_exception_leaves_no_new_file(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        write_and_raise(tmp_path / "a.npy", KeyboardInterrupt)
    assert names(tmp_path) == []


def test_a_killed_process_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    target.write_bytes(b"old")
    script = """
import os, signal, sys
from pathlib import Path
from elmo_cli.storage.files import whole_file
with whole_file(Path(sys.argv[1])) as stream:
    stream.write(b"new")
    stream.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_script(script, target).returncode == -signal.SIGKILL
    assert target.read_bytes() == b"old"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    old_mask = os.umask(0o027)
    try:
        write_bytes_whole(tmp_path / "a", b"")
    finally:
        os.umask(old_mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"private")
    (tmp_path / "a").chmod(0o600)
    write_bytes_whole(tmp_path / "a", b"still private")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("exists", [True, False])
def test_a_link_is_followed(tmp_path: Path, exists: bool) -> None:
    (tmp_path / "disk").mkdir()
    if exists:
        (tmp_path / "disk" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(Path("disk") / "real")
    write_bytes_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "disk" / "real").read_bytes() == b"new"
    assert names(tmp_path / "disk") == ["real"]


@pytest.mark.parametrize("name", ["é" * 127, os.fsdecode(b"\xff.npy"), ".a", "a b"], ids=ascii)
def test_any_name_that_a_file_may_have_can_be_written(tmp_path: Path, name: str) -> None:
    write_bytes_whole(tmp_path / name, b"content")
    assert names(tmp_path) == [name]


def test_text_is_written_in_utf8_with_its_own_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_text_whole(Path("a"), "é\r\n\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\r\n\n"


def test_a_fifo_is_written_directly(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_bytes()))
    reader.start()
    write_bytes_whole(fifo, b"content")
    reader.join()
    assert received == [b"content"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_the_null_device_takes_everything_and_stays() -> None:
    write_bytes_whole(Path("/dev/null"), b"content")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_written_where_it_stands(tmp_path: Path, name: str) -> None:
    script = """
import sys
from pathlib import Path
from elmo_cli.storage.files import write_bytes_whole
write_bytes_whole(Path(sys.argv[1]), b"content")
"""
    with (tmp_path / "out").open("wb") as out:
        out.write(b"before ")
        out.flush()
        assert run_script(script, Path(name), stdout=out).returncode == 0
        out.seek(0, io.SEEK_END)
        out.write(b" after")
    assert (tmp_path / "out").read_bytes() == b"before content after"


def test_a_closed_pipe_stays_a_broken_pipe() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with pytest.raises(BrokenPipeError), whole_file(Path(f"/dev/fd/{writing}")) as stream:
        stream.write(b"content")
    os.close(writing)


def test_a_full_device_is_reported() -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with pytest.raises(OutputError) as caught, whole_file(Path("/dev/full")) as stream:
        stream.write(b"content")
    assert str(caught.value) == (
        "cannot write /dev/full: No space left on device\n  fix: make room on that disk, or name a file on another one"
    )


def test_a_disk_that_fills_up_leaves_the_old_file(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    target.write_bytes(b"old")
    script = """
import resource, sys
from pathlib import Path
from elmo_cli.errors import OutputError
from elmo_cli.storage.files import whole_file
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    with whole_file(Path(sys.argv[1])) as stream:
        for _ in range(11):
            stream.write(bytes(10_000))
except OutputError as error:
    print(error.message)
"""
    done = run_script(script, target)
    assert done.stdout.decode() == f"cannot write {target}: File too large\n"
    assert done.stderr == b""
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["a.npy"]


def test_a_missing_folder_is_reported_with_the_way_to_make_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(Path("my out/a.npy"), b"")
    assert str(caught.value) == ("cannot write my out/a.npy: No such file or directory\n  fix: mkdir -p 'my out'")


def test_a_missing_folder_behind_a_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone" / "a.npy")
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(tmp_path / "link", b"")
    assert caught.value.fix == f"mkdir -p {tmp_path / 'gone'}"


def test_a_folder_is_no_file_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(Path("out"), b"")
    assert str(caught.value) == "cannot write out: Is a directory\n  fix: name a file in it, such as out/FILE"


@pytest.mark.parametrize("folder", ["/", ".", ".."])
def test_a_folder_without_a_name_is_no_file_to_write(folder: str) -> None:
    with pytest.raises(OutputError, match="Is a directory"):
        write_bytes_whole(Path(folder), b"")


def test_a_file_is_no_folder_to_write_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_bytes(b"")
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(Path("a/b"), b"")
    assert str(caught.value) == "cannot write a/b: Not a directory\n  fix: a is not a folder: name another one"


def test_a_name_that_is_too_long_is_reported(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(tmp_path / ("a" * 300), b"")
    assert caught.value.message == f"cannot write {tmp_path / ('a' * 300)}: File name too long"
    assert caught.value.fix == "choose a shorter name"


def test_a_circle_of_links_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OutputError, match="Too many levels of symbolic links"):
        write_bytes_whole(tmp_path / "a", b"")
    assert names(tmp_path) == ["a", "b"]


def test_a_folder_of_somebody_else_is_reported(ordinary_folder: Path) -> None:
    ordinary_folder.joinpath("closed").mkdir(mode=0o500)
    target = ordinary_folder / "closed" / "a.npy"
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(target, b"")
    assert str(caught.value) == f"cannot write {target}: Permission denied\n  fix: name a file that you may write"


def test_a_file_made_read_only_is_not_replaced(ordinary_folder: Path) -> None:
    target = ordinary_folder / "a.npy"
    target.write_bytes(b"old")
    target.chmod(0o400)
    with pytest.raises(OutputError) as caught:
        write_bytes_whole(target, b"new")
    assert caught.value.message == f"cannot write {target}: Permission denied"
    assert target.read_bytes() == b"old"
    assert names(ordinary_folder) == ["a.npy"]


def test_an_error_about_another_file_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole_file(tmp_path / "a"):
        (tmp_path / "corpus.txt").open()
    assert caught.value.filename == str(tmp_path / "corpus.txt")
    assert names(tmp_path) == []


def test_an_error_without_a_remedy_is_reported_without_one() -> None:
    error = output_error(Path("a"), OSError(errno.EIO, "Input/output error"))
    assert str(error) == "cannot write a: Input/output error"
