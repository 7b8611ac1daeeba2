"""How labelled text is laid out: as told, by the file's name, or by its first lines."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.text.blocks import ROWS
from elmo_cli.text.compression import PACKED_SUFFIXES
from elmo_cli.text.conll import DOCUMENT, columns_of
from elmo_cli.text.reader import SUFFIXES
from elmo_cli.text.sources import STDIN, EncodingErrors, Line, display_name, find_sources, read_lines

LABELLED: Final = ("conll", "conllu", "tsv", "jsonl")
PLAIN: Final = ("lines", "tokens")  # text without room for labels, which `elmo mix predict` reads, too
CONLLU_COLUMNS: Final = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")

NAME_ANOTHER: Final = "name a text with labelled sentences"

_ENDINGS: Final = {ending: mode for mode in ("conll", "conllu", "jsonl") for ending in SUFFIXES[mode]}
_HEAD_LINES: Final = 1000  # looked at
_MANY_ROWS: Final = 10
_SHOWN: Final = 5  # numbers in a message
_TSV: Final = ".tsv"
_FORMS: Final = (
    "label it: rows of token and label with blank lines between the sentences (conll, conllu), LABEL<TAB>TEXT (tsv), "
    'or {"tokens": [...], "tags": [...]} or {"text": "...", "label": "..."} (jsonl); else say it: --input '
    + f"{', '.join(LABELLED[:-1])} or {LABELLED[-1]}"
)
_ID: Final = re.compile(r"[1-9]\d*(-\d+)?|\d+\.\d+", re.ASCII)  # of CoNLL-U
_COLUMN: Final = re.compile(r"0*[1-9]\d{0,8}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where tokens or texts and their labels stand.

    Attributes:
        mode: one of `LABELLED` or `PLAIN`.
        column: of the token (conll) or the text (tsv), from 1; None for the usual one: 1 in conll, 2 in tsv.
        label_column: a number, or the name of a column of CoNLL-U or of a key of JSON; None for the usual place: the
            last column of conll, UPOS, column 1 of tsv, ``tags`` or ``label``.
    """

    mode: str
    column: int | None = None
    label_column: str | None = None

    def __post_init__(self) -> None:
        if self.column is not None and self.mode not in ("conll", "tsv"):
            raise ConfigError(f"--column {self.column} says nothing of --input {self.mode}", fix="leave it out")
        if self.label_column is not None and self.mode in PLAIN:
            raise ConfigError(f"--label-column says nothing of --input {self.mode}", fix="leave it out")
        if self.label_column is not None and self.mode != "jsonl" and not self._is_column(self.label_column):
            names = f" or one of {', '.join(CONLLU_COLUMNS)}" if self.mode == "conllu" else ""
            message = f"--label-column {self.label_column!r:.60} is no column of {self.mode}"
            raise ConfigError(message, fix=f"give a number from 1{names}")
        if self.label_number == self.text_column:
            if self.label_column is None:
                raise ConfigError(f"--column {self.column} is where the label stands", fix="set --label-column, too")
            raise ConfigError(f"--label-column {self.label_column} is where the text stands", fix="choose another one")

    def _is_column(self, name: str) -> bool:
        return _COLUMN.fullmatch(name) is not None or (self.mode == "conllu" and name.upper() in CONLLU_COLUMNS)

    @property
    def is_usual(self) -> bool:
        """Whether nothing is told of the columns."""
        return self.column is None and self.label_column is None

    @property
    def text_column(self) -> int:
        """Column of the token or the text, from 1."""
        return self.column or (2 if self.mode in ("tsv", "conllu") else 1)

    @property
    def label_number(self) -> int | None:
        """Column of the label, from 1; None for the last one of a row, or where the layout has no columns."""
        if self.label_column is None:
            return {"conllu": 4, "tsv": 1}.get(self.mode)
        if self.mode == "conllu" and self.label_column.upper() in CONLLU_COLUMNS:
            return CONLLU_COLUMNS.index(self.label_column.upper()) + 1
        return None if self.mode == "jsonl" else int(self.label_column)

    @property
    def needs_tokenizer(self) -> bool:
        """Whether some of the text does not come tokenized."""
        return self.mode in ("tsv", "jsonl", "lines")


@dataclass(frozen=True, slots=True)
class Opened:
    """A text whose layout is known.

    Attributes:
        name: for messages.
        lines: all of them, still to be read.
        mode: of its layout.
        how: in words how the mode is known; empty where it was told.
    """

    name: str
    lines: Iterator[Line]
    mode: str
    how: str

    @property
    def layout_told(self) -> str:
        """The mode, and how it is known where it was not told."""
        return f"{self.mode} ({self.how})" if self.how else self.mode


def open_text(
    argument: str, mode: str | None, *, errors: EncodingErrors = "strict", own_mode: str = "", own_columns: int = 0
) -> Opened:
    """Open a text, compressed or not, and find out how it is laid out.

    Args:
        argument: a file, or ``-``.
        mode: as told; None to find out.
        errors: what to do with bytes that are not UTF-8.
        own_mode: layout that rows with ``own_columns`` are taken to have, where text without labels is allowed; empty
            where every text has labels.
        own_columns: see there.

    Raises:
        DataError: the text cannot be read.
        ConfigError: it does not look labelled, or the argument names several texts.
    """
    found = find_sources([argument], SUFFIXES["conll"] + SUFFIXES["conllu"] + SUFFIXES["jsonl"] + (_TSV,))
    if len(found) != 1:
        raise ConfigError(f"{argument} names {len(found)} texts", fix="name one file")
    source = found[0]
    name = display_name(source)
    lines = read_lines(source, errors=errors)
    if mode is not None:
        return Opened(name, lines, mode, "")
    ending = _ending(source)
    if ending in _ENDINGS:
        return Opened(name, lines, _ENDINGS[ending], f"by its ending {ending}")
    # Of a pipe no more than the first line is waited for.
    head = list(islice(lines, 1 if source == STDIN and own_mode else _HEAD_LINES))
    whole = chain(head, lines)
    head = _without_cut_comments(head)
    is_tsv = _unpacked(source).endswith(_TSV)
    if own_mode:
        mode = _mode_of_plain(head, own_mode, own_columns, is_tsv=is_tsv)
    else:
        mode = _mode_of_labelled(head, is_tsv=is_tsv)
    if mode is not None:
        return Opened(name, whole, mode, f"by its ending {_TSV}" if is_tsv and mode == "tsv" else "by its first lines")
    if not any(line.text.strip() for line in head):
        raise DataError("the text is empty", where=Place(name), fix=NAME_ANOTHER)
    raise ConfigError(f"{name} does not look labelled{_ragged(head)}", fix=_FORMS)


def _without_cut_comments(head: list[Line]) -> list[Line]:
    """Return the lines that are looked at without comments at their end, whose sentence is not among them."""
    count = len(head)
    while len(head) == _HEAD_LINES and count and head[count - 1].text.startswith("#"):
        count -= 1
    return head[:count]


def _ragged(head: Sequence[Line]) -> str:
    """Return, for a message, how many columns the first rows have if that differs."""
    counts = list(dict.fromkeys(_widths(rows_of(head))))
    if len(counts) < 2:
        return ""
    shown = ", ".join(map(str, counts[:_SHOWN])) + (", ..." if len(counts) > _SHOWN else "")
    return f": its rows have {shown} columns"


def _unpacked(source: str) -> str:
    for packed in PACKED_SUFFIXES:
        source = source.removesuffix(packed)
    return source


def _ending(source: str) -> str:
    source = _unpacked(source)
    return next((ending for ending in sorted(_ENDINGS, key=len, reverse=True) if source.endswith(ending)), "")


def _mode_of_labelled(head: Sequence[Line], *, is_tsv: bool) -> str | None:
    """Return the layout; None for what looks like none of them. The ending .tsv tells only what the lines do not."""
    special = _mode_of_special(head)
    if special is not None:
        return special
    rows = rows_of(head)
    is_tabbed = _is_tabbed(rows)
    is_text = is_tabbed and _has_spaces(rows)
    counts = set(_widths(rows))
    is_even = len(counts) == 1 and min(counts) > 1
    if is_even and not is_text:
        if _has_gaps(head):
            return "conll"
        if not is_tsv and len(rows) > 1 and (not is_tabbed or _ends_in_labels(rows)):
            return "conll"
    # Rows without spaces in paragraphs are tokens, even where some of them lack a column.
    is_damaged_conll = is_tabbed and not is_text and len(counts) > 1 and _has_gaps(head)
    return "tsv" if rows and (is_tsv or is_tabbed) and not is_damaged_conll else None


def _is_tabbed(rows: Sequence[Line]) -> bool:
    return bool(rows) and all("\t" in line.text for line in rows)


def _has_spaces(rows: Sequence[Line]) -> bool:
    """Tell whether a cell has spaces in it: texts have, tokens have not."""
    return any(" " in cell.strip() for line in rows for cell in line.text.split("\t"))


def _widths(rows: Sequence[Line]) -> list[int]:
    """Return the number of columns of each row, without empty ones at its end; rows that begin a document are left out.

    Whatever their number in the others, -DOCSTART- may stand alone.
    """
    cells = [[line.text[slice(*span)] for span in columns_of(line)] for line in rows]
    return [
        max((number for number, cell in enumerate(row, start=1) if cell), default=0)
        for row in cells
        if row and row[0] != DOCUMENT
    ]


def _ends_in_labels(rows: Sequence[Line]) -> bool:
    """Tell whether the last columns hold fewer different things than the first: labels are repeated more than tokens.

    Where texts of one word stand behind labels, it is the other way round.
    """
    cells = [line.text.split("\t") for line in rows]
    return len({row[-1] for row in cells}) < len({row[0] for row in cells})


def _mode_of_plain(head: Sequence[Line], own_mode: str, own_columns: int, *, is_tsv: bool) -> str:
    """Return the layout of text that may have no labels. The ending .tsv tells only what the lines do not."""
    special = _mode_of_special(head)
    if special is not None:
        return special
    rows = rows_of(head)
    is_tabbed = _is_tabbed(rows)
    if own_mode == "conll" and rows and all(len(columns_of(line)) == own_columns for line in rows):
        # A line of two words is no row of two columns; many of them in paragraphs are.
        is_conll = is_tabbed or (len(rows) >= _MANY_ROWS and _has_gaps(head))
        if is_conll and not (is_tsv and is_tabbed and _has_spaces(rows)):
            return own_mode
    return "tsv" if rows and (is_tsv or (own_mode == "tsv" and is_tabbed)) else "lines"


def _mode_of_special(head: Sequence[Line]) -> str | None:
    """Return jsonl or conllu where the lines look like them."""
    rows = rows_of(head)
    if rows and rows[0].text.lstrip().startswith("{"):
        return "jsonl"
    cells = [line.text.split("\t") for line in rows]
    if cells and all(len(row) == len(CONLLU_COLUMNS) and _ID.fullmatch(row[0]) for row in cells):
        return "conllu"
    return None


def rows_of(lines: Sequence[Line]) -> list[Line]:
    """Return the lines that are neither blank nor comments before a sentence."""
    return [line for paragraph in ROWS.of(lines) for line in without_comments(paragraph)]


def without_comments(paragraph: Sequence[Line]) -> Sequence[Line]:
    """Return a paragraph without leading comments: lines with ``#`` and no tab, where the last row has tabs.

    CoNLL files have no comments; some that are parted by tabs have them as CoNLL-U does.
    """
    if "\t" not in paragraph[-1].text:
        return paragraph
    count = 0
    while paragraph[count].text.startswith("#") and "\t" not in paragraph[count].text:
        count += 1
    return paragraph[count:]


def _has_gaps(head: Sequence[Line]) -> bool:
    """Tell whether blank lines stand between the rows."""
    return sum(1 for _ in ROWS.of(head)) > 1
