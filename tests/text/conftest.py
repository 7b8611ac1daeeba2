"""Files and standard input for tests of the text floor."""

import io
import itertools
import sys
from pathlib import Path

import pytest
from source_files import Feed, Write


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
