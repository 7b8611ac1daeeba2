"""What tests of the sources share: files to read, packed or not, and what came of it."""

import bz2
import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from elmo_cli.errors import DataError, ElmoError
from elmo_cli.text.sources import read_lines

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


def texts(source: str, **options: str) -> list[str]:
    return [line.text for line in read_lines(source, **options)]  # type: ignore[arg-type]


def message(error: pytest.ExceptionInfo[ElmoError]) -> str:
    return str(error.value)


def make_files(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")


def error_of(source: str, **options: str) -> str:
    with pytest.raises(DataError) as error:
        texts(source, **options)
    return message(error)
