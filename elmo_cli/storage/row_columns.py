"""What each row of vectors is, as columns of numbers and text, for npz and safetensors files."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from elmo_cli.storage.late_header import Spool
from elmo_cli.storage.tables import utf8
from elmo_cli.storage.vectors import SentenceRows

_OF_SENTENCES: Final = ("line", "sentence")
_OF_TOKENS: Final = ("line", "sentence", "token", "start", "end")
_UNKNOWN: Final = -1  # start or end


@dataclass(frozen=True, slots=True)
class Column:
    """An array that has been written to the end.

    Attributes:
        name: of the array.
        descr: NumPy's name of its type.
        count: of its elements.
        content: their bytes.
    """

    name: str
    descr: str
    count: int
    content: Spool


class RowColumns:
    """Gathers columns in temporary files, a row for each row of vectors.

    ``line``, ``sentence`` and, for rows that are tokens, ``token``, ``start`` and ``end`` are as in the table of
    tokens; a start or end that is not known is -1. The texts of all rows stand one behind the other, in UTF-8, in
    ``text_bytes``, and row ``i`` has ``text_bytes[text_offsets[i]:text_offsets[i + 1]]``. An array of fixed width would
    cost the length of the longest text for each row.

    Args:
        pooled: a row is a sentence, not a token.
    """

    def __init__(self, *, pooled: bool) -> None:
        self.count = 0  # rows
        self._pooled = pooled
        self._numbers = {name: Spool() for name in (_OF_SENTENCES if pooled else _OF_TOKENS)}
        self._text = Spool()
        self._offsets = Spool()
        self._offsets.write(_int64([0]))

    def add(self, rows: SentenceRows) -> None:
        """Write the rows of one sentence.

        Raises:
            OutputError: there is no room for the temporary files.
        """
        texts = [rows.text] if self._pooled else rows.tokens
        values: list[tuple[int, ...]]
        if self._pooled:
            values = [(rows.line, rows.sentence)]
        else:
            values = [
                (line, rows.sentence, number, _known(start), _known(end))
                for number, (line, start, end) in zip(rows.numbers, rows.places, strict=True)
            ]
        for spool, column in zip(self._numbers.values(), zip(*values, strict=True), strict=False):
            spool.write(_int64(column))
        ends = []
        for text in texts:
            self._text.write(utf8(text))
            ends.append(self._text.size)
        self._offsets.write(_int64(ends))
        self.count += len(texts)

    def columns(self) -> Iterator[Column]:
        """Yield the columns, those of eight bytes an element before the text."""
        for name, spool in self._numbers.items():
            yield Column(name, "<i8", self.count, spool)
        yield Column("text_offsets", "<i8", self.count + 1, self._offsets)
        yield Column("text_bytes", "|u1", self._text.size, self._text)

    def close(self) -> None:
        """Let go of the temporary files."""
        for spool in (*self._numbers.values(), self._text, self._offsets):
            spool.close()


def _known(place: int | None) -> int:
    return _UNKNOWN if place is None else place


def _int64(values: "list[int] | tuple[int, ...]") -> bytes:
    return np.array(values, dtype="<i8").tobytes()
