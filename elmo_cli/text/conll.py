"""Rows of columns to sentences: CoNLL-2003 and its like (a token a line), and CoNLL-U of Universal Dependencies.

Blank lines part sentences. Tokens are taken as they are. Their places are those of the FORM column in its line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from elmo_cli.errors import DataError
from elmo_cli.reporting import counted
from elmo_cli.text.blocks import ROWS
from elmo_cli.text.sentence import TOKEN, Position, Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import Span

_COLUMNS: Final = 10  # of CoNLL-U
DOCUMENT: Final = "-DOCSTART-"  # begins a document in CoNLL-2003
# At most 18 digits a number: Python refuses to read one of more than 4,300.
_ID: Final = re.compile(
    r"(?P<word>[1-9]\d{0,17})|(?P<first>[1-9]\d{0,17})-(?P<last>[1-9]\d{0,17})|(?P<empty>\d{1,18}\.[1-9]\d{0,17})",
    re.ASCII,
)
_COMMENT: Final = re.compile(r"#\s*(sent_id|text)\s*=\s?(.*)", re.DOTALL)
_WHITE: Final = re.compile(r"\s*")


def conll_sentences(lines: Sequence[Line], column: int) -> Iterator[Sentence]:
    """Yield the sentences of rows whose columns are parted by tabs or, where a row has no tab, by spaces.

    Rows of ``-DOCSTART-`` are left out, and are no sentence where they stand alone. There are no comments: a row that
    begins with ``#`` holds the token ``#``.

    Args:
        lines: of a block.
        column: in which the token stands, from 1.

    Raises:
        DataError: a row has too few columns, or nothing in this one.
    """
    for paragraph in ROWS.of(lines):
        rows = [row for row in map(_conll_row, paragraph) if row.cell(0) != DOCUMENT]
        for row in rows:
            if column > len(row.columns) or not row.cell(column - 1):
                message = f"expected a token in column {column}, found {counted(len(row.columns), 'column')}"
                if column <= len(row.columns):
                    message = f"column {column} is empty"
                fix = "part the columns by tabs or spaces, or choose another --column"
                raise DataError(message, where=row.line.place, fix=fix)
        if rows:
            tokens = [row.cell(column - 1) for row in rows]
            places = [row.position(column - 1) for row in rows]
            yield Sentence(tokens, rows[0].line.place, places=places)


def conllu_sentences(lines: Sequence[Line]) -> Iterator[Sentence]:
    """Yield the sentences of CoNLL-U: a token for each syntactic word, none for empty nodes such as 8.1.

    ``# sent_id`` becomes the field ``id``, ``# text`` the text. Where the text consists of the surface tokens, and of
    white space between them, spans tell where: a word of a multiword token such as 1-2 has the span of that token.

    Args:
        lines: of a block.

    Raises:
        DataError: a row has not ten columns, or its ID or FORM makes no sense.
    """
    for paragraph in ROWS.of(lines):
        comments = _comments(paragraph)
        rows = [_conllu_row(line) for line in paragraph if not line.text.startswith("#")]
        if not rows:
            continue
        words, surface = _words_and_surface(rows)
        text = comments.get("text")
        spans = None if text is None else _spans(text, [token.form for token in surface])
        if spans is not None:
            pairs = zip(spans, surface, strict=True)
            spans = [span for span, token in pairs for _ in range(token.first, token.last + 1)]
        yield Sentence(
            tokens=[row.cell(1) for row in words],
            place=rows[0].line.place,
            text=text,
            spans=spans,
            places=[row.position(1) for row in words],
            fields={"id": comments["sent_id"]} if "sent_id" in comments else {},
        )


def _comments(paragraph: Sequence[Line]) -> dict[str, str]:
    found = (_COMMENT.fullmatch(line.text) for line in paragraph)
    return {match[1]: match[2] for match in found if match}


@dataclass(frozen=True, slots=True)
class _Row:
    """A line and where its columns stand in it."""

    line: Line
    columns: list[Span]

    def cell(self, index: int) -> str:
        start, end = self.columns[index]
        return self.line.text[start:end]

    def position(self, index: int) -> Position:
        return (self.line.place.line or 1, *self.columns[index])


def columns_of(line: Line) -> list[Span]:
    """Return where the columns of a row stand: parted by tabs or, where it has none, by spaces."""
    if "\t" in line.text:
        return _between_tabs(line.text)
    return [match.span() for match in TOKEN.finditer(line.text)]


def _conll_row(line: Line) -> _Row:
    return _Row(line, columns_of(line))


def _between_tabs(text: str) -> list[Span]:
    """Return where the columns stand, without spaces at their ends; spaces within belong to them."""
    spans = []
    start = 0
    for part in text.split("\t"):
        first = start + len(part) - len(part.lstrip(" "))
        spans.append((first, first + len(part.strip(" "))))
        start += len(part) + 1
    return spans


def _conllu_row(line: Line) -> _Row:
    row = _Row(line, _between_tabs(line.text))
    if len(row.columns) != _COLUMNS:
        raise DataError(
            f"expected {_COLUMNS} columns parted by tabs, found {len(row.columns)}",
            where=line.place,
            fix="for another layout: --input conll --column N",
        )
    if not row.cell(1):
        raise DataError("the FORM is empty", where=line.place, fix="write _ where there is none")
    return row


@dataclass(frozen=True, slots=True)
class _SurfaceToken:
    """A token as it is written, and the numbers of its first and last word."""

    form: str
    first: int
    last: int


def _words_and_surface(rows: Sequence[_Row]) -> tuple[list[_Row], list[_SurfaceToken]]:
    """Return the rows of the words, whose IDs are 1, 2, 3 ..., and the surface tokens, which hold all of them."""
    words: list[_Row] = []
    surface: list[_SurfaceToken] = []
    for row in rows:
        number = _ID.fullmatch(row.cell(0))
        covered = surface[-1].last if surface else 0
        if number is None:
            fix = "number the words 1, 2, 3; write 1-2 for a multiword token and 1.1 for an empty node"
            raise DataError(f"the ID {row.cell(0)!r:.60} is none of CoNLL-U", where=row.line.place, fix=fix)
        if number["empty"]:
            continue
        if number["word"]:
            _check_order(int(number["word"]), len(words) + 1, row)
            words.append(row)
            if len(words) > covered:
                surface.append(_SurfaceToken(row.cell(1), len(words), len(words)))
        else:
            first, last = int(number["first"]), int(number["last"])
            _check_order(first, max(len(words), covered) + 1, row)
            if last < first:
                raise DataError(f"the range {row.cell(0)} is empty", where=row.line.place)
            surface.append(_SurfaceToken(row.cell(1), first, last))
    if surface and surface[-1].last > len(words):
        _refuse_id(f"{surface[-1].last} to end the range", "the end of the sentence", rows[-1])
    return words, surface


def _check_order(number: int, expected: int, row: _Row) -> None:
    if number != expected:
        _refuse_id(str(expected), row.cell(0), row)


def _refuse_id(expected: str, found: str, row: _Row) -> NoReturn:
    fix = "number the words 1, 2, 3 and part the sentences by blank lines"
    raise DataError(f"expected the ID {expected}, found {found}", where=row.line.place, fix=fix)


def _spans(text: str, forms: Sequence[str]) -> list[Span] | None:
    """Return where forms stand in a text that is made of them and of white space; None if it is not."""
    spans = []
    end = 0
    for form in forms:
        start = _skip_white(text, end) if not text.startswith(form, end) else end
        end = start + len(form)
        if not text.startswith(form, start):
            return None
        spans.append((start, end))
    return None if text[end:].strip() else spans


def _skip_white(text: str, at: int) -> int:
    white = _WHITE.match(text, at)
    return white.end() if white else at
