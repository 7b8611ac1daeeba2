"""The table of tokens: what each row of an npy file is, for formats that have no room for it."""

from typing import Final

from elmo_cli.storage.late_header import ByteStream
from elmo_cli.storage.tables import TableWriter, escaped
from elmo_cli.storage.vectors import SentenceRows

_COLUMNS: Final = ("line", "sentence", "token", "start", "end", "text")


class TokenTableWriter:
    r"""Writes a table with a row for each row of an npy file: tab-separated line, sentence, token, start, end, text.

    Lines, sentences and the tokens of a sentence are counted from 1. ``start`` and ``end`` are the place of the token
    in characters of its line, from 0, ``end`` excluded; both are empty where they are not known. In ``text`` a
    backslash is written as ``\\``, tab, newline and carriage return as ``\t``, ``\n`` and ``\r``, a lone surrogate as
    ``\ud800``. Nothing is ever quoted: read it with ``quoting=csv.QUOTE_NONE`` or, in R, ``quote=""``.

    Args:
        stream: where to; closed by whoever opened it.
        pooled: a row is a sentence, which has a text but no token number and no place.
    """

    def __init__(self, stream: ByteStream, *, pooled: bool) -> None:
        self._table = TableWriter(stream, _COLUMNS)
        self._pooled = pooled

    def write(self, rows: SentenceRows) -> None:
        """Write the rows of one sentence."""
        sentence = str(rows.sentence)
        if self._pooled:
            self._table.write([(str(rows.line), sentence, "", "", "", escaped(rows.text))])
            return
        self._table.write(
            (str(line), sentence, str(number), _cell(start), _cell(end), escaped(token))
            for number, token, (line, start, end) in zip(rows.numbers, rows.tokens, rows.places, strict=True)
        )


def _cell(place: int | None) -> str:
    return "" if place is None else str(place)
