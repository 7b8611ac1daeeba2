"""Tables of stimuli (TSV): a header, a sentence a row in one of the columns, and what else is known of it."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.text.reader import sentences_of_block
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.sources import EncodingErrors, Line, display_name, read_lines
from elmo_cli.text.tokenizer import Tokenizer

CELL_MODES: Final = ("lines", "tokens")  # input modes in which a cell is one sentence

_BLOCK_ROWS: Final = 256  # tokenized at once


@dataclass(frozen=True, slots=True)
class Stimulus:
    """A sentence and the other cells of its row.

    Attributes:
        sentence: its place is the row's.
        cells: all of the row, as they stand in the file.
    """

    sentence: Sentence
    cells: tuple[str, ...] = ()


class StimulusTable:
    """A table of stimuli, read in constant memory. Cells are never quoted; a quotation mark is part of the text.

    Args:
        source: a file, or ``-``.
        column: name of the column that holds the text.
        errors: what to do with bytes that are not UTF-8.

    Attributes:
        columns: the names in the header.

    Raises:
        DataError: the table is empty, has no such column or two of one name, or cannot be read.
    """

    def __init__(self, source: str, column: str, *, errors: EncodingErrors = "strict") -> None:
        self._lines = read_lines(source, errors=errors)
        header = next(self._lines, None)
        if header is None:
            raise DataError(
                "the table is empty", where=Place(display_name(source)), fix="name the columns in its first row"
            )
        self.columns = tuple(header.text.split("\t"))
        for number, name in enumerate(self.columns):
            if name in self.columns[:number]:
                raise DataError(f"two columns are called {name!r}", where=header.place, fix="rename one of them")
        if column not in self.columns:
            raise DataError(
                f"there is no column {column!r}, but {', '.join(map(repr, self.columns))}",
                where=header.place,
                fix=_fix(column, self.columns),
            )
        self._text = self.columns.index(column)

    def stimuli(self, *, mode: str, tokenizer: Tokenizer | None) -> Iterator[Stimulus]:
        """Yield the rows, in order; an empty line is no row.

        Args:
            mode: of `CELL_MODES`: how a cell becomes tokens.
            tokenizer: not used for ``tokens``.

        Raises:
            ConfigError: the mode is another one.
            DataError: a row has more or fewer cells than the header.
        """
        if mode not in CELL_MODES:
            raise ConfigError(
                f"a column of a table cannot be read with --input {mode}", fix=f"choose {' or '.join(CELL_MODES)}"
            )
        rows: list[tuple[Line, tuple[str, ...]]] = []
        for line in self._lines:
            if line.text:
                cells = self._cells(line)
                rows.append((Line(cells[self._text], line.place), cells))
            if len(rows) >= _BLOCK_ROWS:
                yield from _stimuli_of_rows(rows, mode, tokenizer)
                rows = []
        yield from _stimuli_of_rows(rows, mode, tokenizer)

    def _cells(self, line: Line) -> tuple[str, ...]:
        cells = tuple(line.text.split("\t"))
        if len(cells) != len(self.columns):
            raise DataError(
                f"the row has {len(cells)} columns, the header {len(self.columns)}",
                where=line.place,
                fix="give every row as many tabs as the header has",
            )
        return cells


def _fix(column: str, columns: Sequence[str]) -> str:
    if f'"{column}"' in columns:
        return "write the table without quotes: quote=FALSE in R, quoting=csv.QUOTE_NONE in Python"
    if len(columns) == 1 and "," in columns[0]:
        return "part the columns by tabs, not by commas"
    near = difflib.get_close_matches(column, columns, n=1)
    return f"did you mean {near[0]}?" if near else "name a column of the first row; tabs part the columns"


def _stimuli_of_rows(
    rows: Sequence[tuple[Line, tuple[str, ...]]], mode: str, tokenizer: Tokenizer | None
) -> Iterator[Stimulus]:
    sentences = sentences_of_block([line for line, _ in rows], mode=mode, tokenizer=tokenizer)
    for sentence, (_, cells) in zip(sentences, rows, strict=True):
        yield Stimulus(sentence, cells)
