"""Bytes to lines: what ends a line, what is unpacked, what is read when."""

import gzip
import os
import sys
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_files import COMPRESSORS, Compress, Feed, Write, message, texts

from elmo_cli.errors import DataError, Place
from elmo_cli.text.sources import Line, read_lines


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


def test_a_pipe_that_does_not_block_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that another program has made so; "nothing yet" is not the end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    with open(reading, encoding="utf-8") as stdin, open(writing, "wb", buffering=0) as writer:
        monkeypatch.setattr(sys, "stdin", stdin)
        writer.write(b"one\ntw")
        lines = read_lines("-")
        assert next(lines).text == "one"
        later = threading.Timer(0.2, lambda: (writer.write(b"o\nthree"), writer.close()))
        later.start()
        assert [line.text for line in lines] == ["two", "three"]
        later.join()


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
