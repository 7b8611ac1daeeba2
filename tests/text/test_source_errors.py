"""Sources that are no text, damaged, or cannot be read: each is told with its place and its remedy."""

import codecs
import errno
import gzip
import io
import os
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import zstandard
from source_files import COMPRESSORS, Feed, Write, error_of, texts

from elmo_cli.errors import DataError
from elmo_cli.text.sources import read_lines


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


def test_a_window_of_zstd_that_needs_too_much_memory_is_no_damage(write: Write) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=30, enable_ldm=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    source = write(compressor.compress(b"a\n") + compressor.flush())
    assert error_of(source) == (
        f"{source}: the zstd stream asks for a window of more than 128 MB\n"
        "  fix: compress it again without --long, or unpack it: zstd -d --long=31"
    )


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
