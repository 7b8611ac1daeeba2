"""Vectors of lines in the text format of word2vec: a line a vector, its name before the numbers."""

import re
import sqlite3
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from elmo_cli.config import DType
from elmo_cli.errors import OutputError
from elmo_cli.storage.decimals import json_array
from elmo_cli.storage.late_header import ByteStream, LateHeader
from elmo_cli.storage.tables import utf8
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, finite

_COUNT_DIGITS: Final = 20  # room for any number of rows, filled with zeros from the left, which every reader takes
_GAP: Final = re.compile(r"[\s\x00-\x20\x7f-\xa0\u200b\ufeff]+")  # what some reader or other may take for a gap


class Word2vecWriter(Finishing):
    """Writes ``rows dim`` and a line for each sentence: its name, then its numbers, which read back exactly.

    A name is the text of the sentence with ``_`` for each stretch of white space, and ``_`` alone for an empty one.
    Readers of the format keep one vector a name, so a name that occurs again is followed by ``#2``, ``#3`` and so on.

    Args:
        stream: where to; into a pipe all waits for the end in a temporary file.
        row_shape: (dim,).
        dtype: what the numbers are rounded to.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType) -> None:
        (self._dim,) = row_shape
        self._dtype: DType = dtype
        self._count = 0
        self._names = UniqueNames()
        self._stream = LateHeader(stream, len(self._header()))

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write the line of one sentence, of the vector [dim].

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary files.
        """
        numbers = json_array(finite(vectors.reshape(self._dim), self._dtype))[1:-1].replace(b",", b" ")
        self._stream.write(utf8(self._names.of(row_name(rows.text))) + b" " + numbers + b"\n")
        self._count += 1

    def flush(self) -> None:
        """Hand the lines on, unless they have to wait for the end; the file is not whole before that."""
        self._stream.flush()

    def finish(self) -> None:
        """Write the number of lines into its place."""
        self._stream.finish(self._header())

    def release(self) -> None:
        """Let go of the temporary files."""
        self._names.close()
        self._stream.abandon()

    def _header(self) -> bytes:
        return b"%0*d %d\n" % (_COUNT_DIGITS, self._count, self._dim)


def row_name(text: str) -> str:
    """Return a text as a name without spaces: ``_`` for each stretch of white space or control characters."""
    return _GAP.sub("_", text.strip()) or "_"


class UniqueNames:
    """Gives each name once, in memory that does not grow with their number: their hashes are kept on disk."""

    def __init__(self) -> None:
        self._seen = sqlite3.connect("", isolation_level=None)  # a temporary file, gone when closed
        self._seen.executescript("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
        self._seen.execute("CREATE TABLE names (hash BLOB PRIMARY KEY, count INTEGER) WITHOUT ROWID")

    def of(self, name: str) -> str:
        """Return the name, with ``#2``, ``#3`` ... behind it where it has been given before.

        Raises:
            OutputError: there is no room for the temporary file.
        """
        try:
            return self._unique(name)
        except sqlite3.Error as error:
            raise OutputError(
                f"cannot keep the names of rows in a temporary file: {error}",
                fix="set TMPDIR to a folder with more room",
            ) from error

    def close(self) -> None:
        """Let go of the temporary file."""
        self._seen.close()

    def _unique(self, name: str) -> str:
        found = self._seen.execute("SELECT count FROM names WHERE hash = ?", (_hash(name),)).fetchone()
        count, unique = (found[0] if found else 0) + 1, name
        # The text of another line may look like a name with a number.
        while count > 1 and self._is_known(unique := f"{name}#{count}"):
            count += 1
        self._seen.execute("REPLACE INTO names VALUES (?, ?)", (_hash(name), count))
        if unique != name:
            self._seen.execute("INSERT INTO names VALUES (?, 1)", (_hash(unique),))
        return unique

    def _is_known(self, name: str) -> bool:
        return self._seen.execute("SELECT 1 FROM names WHERE hash = ?", (_hash(name),)).fetchone() is not None


def _hash(name: str) -> bytes:
    return blake2b(utf8(name), digest_size=16).digest()
