import bz2
import codecs
import errno
import gzip
import io
import itertools
import lzma
import os
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_cli.errors import ConfigError, DataError, ElmoError, Place
from elmo_cli.text import sources
from elmo_cli.text.sources import Line, find_sources, read_lines

Compress = Callable[[bytes], bytes]
Write = Callable[[bytes], str]
Feed = Callable[[bytes], None]
COMPRESSORS: dict[str, Compress] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}
TEXT = ".txt", ".text"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes bytes to a new file and returns its name."""
    numbers = itertools.count()

    def write_file(data: bytes) -> str:
        file = tmp_path / f"file{next(numbers)}.txt"
        file.write_bytes(data)
        return str(file)

    return write_file


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Feed:
    """Return a function that puts bytes into standard input."""

    def feed(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


def texts(source: str, **options: str) -> list[str]:
    return [line.text for line in read_lines(source, **options)]  # type: ignore[arg-type]


def message(error: pytest.ExceptionInfo[ElmoError]) -> str:
    return str(error.value)


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")


# --- Lines ------------------------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n\0"))))
def test_lines_come_back_one_by_one(lines: list[str], tmp_path: Path) -> None:
    # A carriage return at a line's end and a byte order mark at the file's start belong to the form, not to the text.
    lines = [line.rstrip("\r").lstrip("\ufeff") for line in lines]
    file = tmp_path / "lines.txt"
    file.write_bytes("".join(line + "\n" for line in lines).encode())
    assert list(read_lines(str(file))) == [
        Line(line, Place(str(file), number)) for number, line in enumerate(lines, start=1)
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\n", ["a"]),
        (b"a\n\n", ["a", ""]),
        (b"\n\na", ["", "", "a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\nb\r", ["a\r", "b"]),
        (b"a\rb\n", ["a\rb"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"a\0b\n", ["a\0b"]),
        (b"\0", ["\0"]),
        (b"\x01\x1b[0m\x7f\n", ["\x01\x1b[0m\x7f"]),
    ],
)
def test_only_line_feeds_end_lines(write: Write, data: bytes, expected: list[str]) -> None:
    assert texts(write(data)) == expected


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u00a0"])
def test_other_separators_stay_in_their_line(write: Write, separator: str) -> None:
    assert texts(write(f"a{separator}b\n".encode())) == [f"a{separator}b"]


def test_a_few_nuls_in_a_long_text_are_characters(write: Write) -> None:
    assert texts(write(b"a\0b " * 20 + b"word " * 100)) == ["a\0b " * 20 + "word " * 100]


def test_a_line_longer_than_what_is_read_at_once_comes_whole(write: Write) -> None:
    long = "ä" * 500_000
    assert texts(write(f"{long}\nshort\n{long}".encode())) == [long, "short", long]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_reading_needs_no_memory_for_the_whole_file(write: Write, pack: Compress) -> None:
    source = write(pack((b"x" * 99_999 + b"\n") * 400))
    tracemalloc.start()
    count = sum(1 for _ in read_lines(source))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert count == 400
    assert peak < 10_000_000  # of 40 MB; 1 KiB of the compressed file unpacks to 1 MB, held as a chunk and as lines


# --- Where lines come from --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_compressed_files_are_known_by_their_first_bytes(write: Write, kind: str) -> None:
    lines = [f"line {number}" for number in range(9_000)]
    assert texts(write(COMPRESSORS[kind]("\n".join(lines).encode()))) == lines


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_members_of_a_compressed_stream_follow_each_other(write: Write, kind: str) -> None:
    compress = COMPRESSORS[kind]
    data = compress(b"a\nb") + compress(b"") + b"\0" * 8 + compress(b"c\n" + b"d" * 9000 + b"\n") + b"\0" * 5000
    assert texts(write(data)) == ["a", "bc", "d" * 9000]


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_an_empty_compressed_file_has_no_lines(write: Write, kind: str) -> None:
    assert texts(write(COMPRESSORS[kind](b""))) == []


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_standard_input_may_be_compressed(stdin: Feed, kind: str) -> None:
    stdin(COMPRESSORS[kind](b"\xef\xbb\xbfa\r\nb"))
    assert list(read_lines("-")) == [Line("a", Place("<stdin>", 1)), Line("b", Place("<stdin>", 2))]


def test_a_skippable_frame_may_begin_a_zstd_stream(write: Write) -> None:
    assert texts(write(b"\x50\x2a\x4d\x18\x04\0\0\0abcd" + COMPRESSORS["zstd"](b"a\n"))) == ["a"]


def test_a_compression_suffix_alone_means_nothing(tmp_path: Path) -> None:
    (tmp_path / "plain.gz").write_text("BZh9 is plain\n")
    assert texts(str(tmp_path / "plain.gz")) == ["BZh9 is plain"]


def test_standard_input_is_left_open(stdin: Feed) -> None:
    stdin(b"a\n")
    assert texts("-") == ["a"]
    assert not sys.stdin.closed


def test_closed_standard_input_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError) as error:
        texts("-")
    assert message(error) == "<stdin>: standard input is closed\n  fix: pipe text in, or name a file"


def test_the_first_line_of_a_pipe_comes_before_the_pipe_ends(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    is_read = threading.Event()

    def write() -> None:
        with open(pipe, "wb", buffering=0) as file:
            file.write(b"fi")
            file.write(b"rst\n")
            is_read.wait(timeout=10)
            file.write(b"second\n")

    writer = threading.Thread(target=write)
    writer.start()
    lines = read_lines(str(pipe))
    assert next(lines).text == "first"
    is_read.set()
    assert [line.text for line in lines] == ["second"]
    writer.join()


# --- What is no text --------------------------------------------------------------------------------------------------


def error_of(source: str, **options: str) -> str:
    with pytest.raises(DataError) as error:
        texts(source, **options)
    return message(error)


@pytest.mark.parametrize("bom", [b"", codecs.BOM_UTF8])
def test_a_bad_byte_is_named_with_its_place(write: Write, bom: bytes) -> None:
    source = write(bom + "grün\n".encode() + b"caf\xe9 au lait\n")
    assert error_of(source) == (
        f"{source}:2: byte 0xe9 at offset {len(bom) + 9} is not UTF-8\n"
        "  fix: convert it (iconv -f LATIN1 -t UTF-8, if it is Latin-1), or pass --encoding-errors replace"
    )


def test_the_offset_of_a_bad_byte_counts_decompressed_bytes(write: Write) -> None:
    source = write(gzip.compress(b"x" * 100_000 + b"\n" + b"y" * 100_000 + b"\xff\n"))
    assert error_of(source).startswith(f"{source}:2: byte 0xff at offset 200001 is not UTF-8\n")


@pytest.mark.parametrize("data", [b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80", b"ab\xe2\x82"])
def test_utf_8_is_strict(write: Write, data: bytes) -> None:
    assert "is not UTF-8" in error_of(write(data))


def test_lines_before_a_bad_byte_are_given(write: Write) -> None:
    lines = read_lines(write(b"a\nb\n\xff\n"))
    assert [next(lines).text, next(lines).text] == ["a", "b"]
    with pytest.raises(DataError):
        next(lines)


def test_bad_bytes_are_replaced_when_asked(write: Write) -> None:
    assert texts(write(b"caf\xe9\n\xff\xc3\n"), errors="replace") == ["caf\ufffd", "\ufffd\ufffd"]


@pytest.mark.parametrize("encoding", ["UTF-16", "UTF-32"])
@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_utf_16_and_32_with_a_mark_are_recognized(write: Write, encoding: str, errors: str) -> None:
    source = write("plain\nwords\n".encode(encoding))
    assert error_of(source, errors=errors) == (
        f"{source}: is {encoding}, not UTF-8\n  fix: convert it with: iconv -f {encoding} -t UTF-8"
    )


@pytest.mark.parametrize("encoding", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
def test_utf_16_and_32_without_a_mark_are_recognized(write: Write, encoding: str) -> None:
    source = write(("plain words, größer\n" * 1000 + "x").encode(encoding))
    assert error_of(source) == (
        f"{source}: is {encoding}, not UTF-8\n  fix: convert it with: iconv -f {encoding} -t UTF-8"
    )


def test_binary_data_is_refused_even_as_valid_utf_8(write: Write) -> None:
    source = write(np.arange(100, dtype=np.int32).tobytes())
    assert error_of(source) == f"{source}: is binary, not text\n  fix: name plain text files"


def test_a_numpy_array_is_recognized(write: Write) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.random.default_rng(0).normal(size=(50, 50)))
    source = write(buffer.getvalue())
    assert error_of(source) == f"{source}: is binary, not text (a NumPy array)\n  fix: name plain text files"


def test_a_tar_archive_is_recognized(write: Write) -> None:
    header = b"name.txt".ljust(257, b"\0") + b"ustar\x0000"
    source = write(gzip.compress(header.ljust(512, b"\0") + b"words " * 10_000))
    assert error_of(source) == f"{source}: is binary, not text (a tar archive)\n  fix: name plain text files"


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", " (a PDF)"),
        (b"\xff\xd8\xff\xe0JFIF", " (a JPEG image)"),
        (b"words\n\0\xff", ""),
    ],
)
def test_a_bad_byte_beside_a_sign_of_binary_data_says_so(write: Write, start: bytes, kind: str) -> None:
    assert f"looks like a binary file{kind}: byte 0x" in error_of(write(start + b"words " * 100))


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize("lost", [1, 5, 500])
def test_a_truncated_stream_is_an_error(write: Write, kind: str, lost: int) -> None:
    data = COMPRESSORS[kind](np.random.default_rng(0).bytes(5000).hex().encode())
    source = write(data[:-lost])
    assert error_of(source) == f"{source}: the {kind} stream ends early\n  fix: copy or download the file again"


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_a_damaged_stream_is_an_error(write: Write, kind: str) -> None:
    data = bytearray(COMPRESSORS[kind](np.random.default_rng(0).bytes(50_000).hex().encode()))
    data[len(data) // 2] ^= 0xFF
    source = write(bytes(data))
    assert error_of(source) == f"{source}: the {kind} stream is damaged\n  fix: copy or download the file again"


def test_other_bytes_behind_a_stream_are_damage(write: Write) -> None:
    source = write(gzip.compress(b"a\n") + b"more text\n")
    assert error_of(source).startswith(f"{source}: the gzip stream is damaged\n")


def test_zstd_without_its_package_names_the_extra(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "compression.zstd", None)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    source = write(COMPRESSORS["zstd"](b"a\n"))
    assert error_of(source) == (
        f"{source}: the file is compressed with zstd, for which a package is missing\n"
        "  fix: pip install 'elmo-cli[zstd]'"
    )


def test_the_zstd_of_newer_pythons_is_used(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    newer = types.SimpleNamespace(
        ZstdDecompressor=lambda: zstandard.ZstdDecompressor().decompressobj(), ZstdError=zstandard.ZstdError
    )
    monkeypatch.setitem(sys.modules, "compression.zstd", newer)
    monkeypatch.setitem(sys.modules, "zstandard", None)
    assert texts(write(COMPRESSORS["zstd"](b"a\n") * 2)) == ["a", "a"]


def test_a_folder_cannot_be_read(tmp_path: Path) -> None:
    assert error_of(str(tmp_path)) == f"{tmp_path}: is a directory\n  fix: name the files in it"


def test_a_file_that_went_away_cannot_be_read(tmp_path: Path) -> None:
    assert error_of(f"{tmp_path}/gone.txt") == f"{tmp_path}/gone.txt: no such file or directory"


def test_a_fault_while_reading_is_an_error(stdin: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(io.BytesIO):
        def read1(self, size: int | None = -1, /) -> bytes:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    stdin(b"")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(Broken()))
    assert error_of("-") == "<stdin>: input/output error"


# --- Finding files ----------------------------------------------------------------------------------------------------


def test_arguments_keep_their_order(tmp_path: Path) -> None:
    make_files(tmp_path, "b.txt", "a.dat")
    arguments = [str(tmp_path / "b.txt"), "-", str(tmp_path / "a.dat")]
    assert find_sources(arguments, TEXT) == arguments


def test_a_folder_stands_for_the_text_below_it(tmp_path: Path) -> None:
    wanted = ["a.txt", "b/c.text.gz", "b/d.txt.xz", "e.txt.bz2", "f.txt.zst"]
    make_files(tmp_path, *wanted, "b/.hidden.txt", ".git/x.txt", "notes.md", "txt", "a.txt.zip", "g.gz")
    (tmp_path / "folder.txt").mkdir()
    assert find_sources([str(tmp_path)], TEXT) == [str(tmp_path / name) for name in wanted]


def test_a_folder_without_text_is_an_error(tmp_path: Path) -> None:
    make_files(tmp_path, "notes.md")
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}: the folder holds no file whose name ends in .txt or .text\n  fix: name the files themselves"
    )


def test_a_pattern_stands_for_the_files_it_matches(tmp_path: Path) -> None:
    make_files(tmp_path, "b.dat", "a.dat", "c/d.dat", "e.txt")
    (tmp_path / "folder.dat").mkdir()
    assert find_sources([f"{tmp_path}/*.dat"], TEXT) == [f"{tmp_path}/a.dat", f"{tmp_path}/b.dat"]
    assert find_sources([f"{tmp_path}/**/d.*"], TEXT) == [f"{tmp_path}/c/d.dat"]


def test_a_file_may_be_named_like_a_pattern(tmp_path: Path) -> None:
    make_files(tmp_path, "what?.txt", "whatx.txt")
    assert find_sources([f"{tmp_path}/what?.txt"], TEXT) == [f"{tmp_path}/what?.txt"]


def test_a_pattern_without_match_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        find_sources([f"{tmp_path}/*.txt"], TEXT)
    assert (
        message(error)
        == f"{tmp_path}/*.txt: no file matches this pattern\n  fix: see what it matches with: ls -d {tmp_path}/*.txt"
    )


def test_a_missing_file_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    make_files(tmp_path, "corpus.txt", "other.dat")
    with pytest.raises(DataError) as error:
        find_sources([f"{tmp_path}/corpsu.txt"], TEXT)
    assert message(error) == (
        f"{tmp_path}/corpsu.txt: no such file or folder\n  fix: did you mean {tmp_path}/corpus.txt?"
    )


@pytest.mark.parametrize(
    ("name", "fix"),
    [("zzz", "check the name"), ("no/zzz", "check the path: there is no folder no either")],
)
def test_a_missing_file_without_neighbour_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        find_sources([name], TEXT)
    assert message(error) == f"{name}: no such file or folder\n  fix: {fix}"


def test_an_empty_name_is_an_error() -> None:
    with pytest.raises(DataError) as error:
        find_sources([""], TEXT)
    assert message(error) == "a file name is empty\n  fix: check the quotes or the shell variable it comes from"


def test_standard_input_can_be_named_once() -> None:
    with pytest.raises(ConfigError) as error:
        find_sources(["-", "-"], TEXT)
    assert message(error) == "standard input (-) is named twice\n  fix: name - once"


def test_a_pipe_is_taken_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert find_sources([str(tmp_path / "pipe"), "/dev/null"], TEXT) == [str(tmp_path / "pipe"), "/dev/null"]


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that takes a right away, which permissions would not do for root."""

    def refuse(path: str, *_: object, **__: object) -> Iterator[None]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    return lambda name: monkeypatch.setattr(sources.os, name, refuse)


@pytest.mark.parametrize("right", ["stat", "scandir"])
def test_no_permission_to_look_is_an_error(tmp_path: Path, denied: Callable[[str], None], right: str) -> None:
    make_files(tmp_path, "a.txt")
    denied(right)
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}: permission denied\n  fix: check the permissions of the file and of the folders above it"
    )


def test_no_permission_to_read_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(tmp_path, "a.txt", "b.txt")
    monkeypatch.setattr(sources.os, "access", lambda path, _: not path.endswith("b.txt"))
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}/b.txt: permission denied\n  fix: check the permissions of the file and of the folders above it"
    )
