"""Labelled text: sentences of tokens with a label for each token, or one for the whole.

All layouts become `Example`s; whatever learns from labels reads these.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.mixing.layouts import CONLLU_COLUMNS, NAME_ANOTHER, Layout, Opened, without_comments
from elmo_cli.reporting import counted
from elmo_cli.storage.tables import utf8
from elmo_cli.text.blocks import ROWS, blocks
from elmo_cli.text.conll import columns_of
from elmo_cli.text.reader import sentences_of_block
from elmo_cli.text.sentence import RawJson, Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import Tokenizer

TOKEN: Final = "token"
SENTENCE: Final = "sentence"
_BLOCK: Final = 256  # lines tokenized at once


@dataclass(frozen=True, slots=True)
class Example:
    """A sentence and what is known of it.

    Attributes:
        tokens: in order; there may be none where the sentence has the label.
        labels: one a token or, where ``unit`` says so, a single one.
        unit: ``token`` or ``sentence``.
        place: of its first line.
        columns: of its first row, in CoNLL text; 0 elsewhere.
        is_json: whether its labels are the JSON of numbers, of true and of false; else they are strings.
    """

    tokens: Sequence[str]
    labels: tuple[str, ...]
    unit: str
    place: Place
    columns: int = 0
    is_json: bool = False


@dataclass(frozen=True, slots=True)
class LabelledText:
    """All sentences of a labelled text.

    Attributes:
        name: for messages and the record.
        examples: at least one; all with labels of the same unit.
    """

    name: str
    examples: Sequence[Example]

    @property
    def unit(self) -> str:
        """What has a label: ``token`` or ``sentence``."""
        return self.examples[0].unit

    @property
    def tokens(self) -> list[Sequence[str]]:
        """Tokens of each sentence."""
        return [example.tokens for example in self.examples]

    @property
    def has_json_labels(self) -> bool:
        """Whether all labels are the JSON of numbers, of true and of false."""
        return all(example.is_json for example in self.examples)

    @property
    def size_told(self) -> str:
        """The size in words, for notes."""
        empty = sum(not example.tokens for example in self.examples)
        sizes = [counted(len(self.examples), "sentence"), *([f"{empty:,} of them empty"] if empty else [])]
        return ", ".join((*sizes, counted(sum(map(len, self.tokens)), "token"), f"{self.unit} labels"))

    def record(self) -> dict[str, Any]:
        """Return what a mix file says of the text."""
        digest = hashlib.sha256()
        for example in self.examples:
            digest.update(utf8(json.dumps([list(example.tokens), example.labels])) + b"\n")
        count = sum(len(example.tokens) for example in self.examples)
        return {"name": self.name, "sentences": len(self.examples), "tokens": count, "sha256": digest.hexdigest()}


def collect(name: str, examples: Iterable[Example]) -> LabelledText:
    """Return a text whose sentences all have labels of the same unit.

    Raises:
        DataError: they have not, or there is no sentence.
    """
    found = LabelledText(name, list(examples))
    if not found.examples:
        raise DataError("there is no labelled sentence in the text", where=Place(name), fix=NAME_ANOTHER)
    for example in found.examples:
        if example.unit != found.unit:
            message = f"here a {example.unit} has a label, before it was a {found.unit}"
            raise DataError(message, where=example.place, fix="give every line labels of the same kind")
    return found


def read_examples(text: Opened, layout: Layout, tokenizer: Tokenizer | None) -> Iterator[Example]:
    """Yield the labelled sentences of a text, in order.

    Blank lines are left out. An empty text with a label of its own stays in: `elmo mix predict` labels it, too.

    Args:
        text: as `open_text` returns it.
        layout: of the text.
        tokenizer: where the layout needs one.

    Raises:
        DataError: a line is not of this layout, or a label is missing.
        ConfigError: the label is looked for in the column of the token.
    """
    if layout.mode == "tsv":
        return _tsv_examples(text, layout, tokenizer)
    if layout.mode == "jsonl":
        return _json_examples(text, layout, tokenizer)
    return _row_examples(text, layout)


def row_blocks(text: Opened) -> Iterator[list[Line]]:
    """Yield the lines of CoNLL text in blocks of whole sentences, blank lines and comments included."""
    return blocks(text.lines, ROWS)


def row_sentences(block: Sequence[Line], layout: Layout) -> Iterator[Sentence]:
    """Yield the sentences of a block; their places tell the line of each token.

    Raises:
        DataError: a row is not of this layout.
    """
    if layout.mode == "conll":
        kept = [line for paragraph in ROWS.of(block) for line in without_comments(paragraph)]
        return sentences_of_block(kept, mode="conll", tokenizer=None, column=layout.text_column)
    return sentences_of_block(block, mode="conllu", tokenizer=None)


def _row_examples(text: Opened, layout: Layout) -> Iterator[Example]:
    is_first = True
    for block in row_blocks(text):
        lines = {line.place.line: line for line in block}
        for sentence in row_sentences(block, layout):
            rows = [lines[number] for number, _, _ in sentence.positions]
            if rows:
                if is_first:
                    _check_columns(rows[0], layout)
                    is_first = False
                labels = tuple(_label_of(row, layout) for row in rows)
                yield Example(sentence.tokens, labels, TOKEN, sentence.place, len(columns_of(rows[0])))


def _check_columns(row: Line, layout: Layout) -> None:
    """Refuse a column of the token, other than the first, behind which the first row has none for the label.

    Raises:
        ConfigError: with its number.
    """
    number = layout.text_column
    if layout.label_number is None and number > 1 and label_span(row, layout) is None:
        message = f"--column {number} is the last column, where the label stands"
        raise ConfigError(message, where=row.place, fix="choose another one, or set --label-column")


def label_span(row: Line, layout: Layout) -> tuple[int, int] | None:
    """Return where the label stands in a row; None if the row has no such column.

    The usual place in CoNLL text is the last column that is not empty and not the token's.
    """
    spans = columns_of(row)
    number = layout.label_number
    if number is not None:
        return spans[number - 1] if number <= len(spans) else None
    while spans and spans[-1][0] == spans[-1][1]:
        spans.pop()
    return spans[-1] if len(spans) > max(layout.text_column, 1) else None


def _label_of(row: Line, layout: Layout) -> str:
    span = label_span(row, layout)
    label = row.text[slice(*span)] if span is not None else ""
    if label:
        return label
    count = len(columns_of(row))
    if layout.label_number is None:
        message = f"expected a label in the last column, found {counted(count, 'column')}"
    else:
        name = CONLLU_COLUMNS[layout.label_number - 1] if layout.mode == "conllu" else layout.label_number
        message = f"there is no label in column {name}; the row has {counted(count, 'column')}"
    raise DataError(message, where=row.place, fix="part the columns by tabs or spaces, or choose --label-column")


def _tsv_examples(text: Opened, layout: Layout, tokenizer: Tokenizer | None) -> Iterator[Example]:
    rows: list[tuple[Line, str]] = []
    for line in text.lines:
        if line.text.strip():
            label, content = split_tsv(line, layout)
            rows.append((Line(content, line.place), label))
        if len(rows) >= _BLOCK:
            yield from _examples_of_rows(rows, tokenizer)
            rows = []
    yield from _examples_of_rows(rows, tokenizer)


def _examples_of_rows(rows: Sequence[tuple[Line, str]], tokenizer: Tokenizer | None) -> Iterator[Example]:
    sentences = sentences_of_block([line for line, _ in rows], mode="lines", tokenizer=tokenizer)
    for sentence, (_, label) in zip(sentences, rows, strict=True):
        yield Example(sentence.tokens, (label,), SENTENCE, sentence.place)


def tsv_cells(line: Line, layout: Layout) -> list[str]:
    """Return the cells of a row. In the usual layout there are two, as all behind the first tab is the text."""
    return line.text.split("\t", 1 if layout.is_usual else -1)


def split_tsv(line: Line, layout: Layout) -> tuple[str, str]:
    """Return label and text of a row.

    Raises:
        DataError: there are too few columns, or no label.
    """
    cells = tsv_cells(line, layout)
    label_number = layout.label_number or 1
    needed = max(label_number, layout.text_column)
    if len(cells) < needed:
        count = counted(len(cells), "column")
        message = f"expected a label and a text parted by a tab, found {count}"
        raise DataError(message, where=line.place, fix="write LABEL<TAB>TEXT, or set --column and --label-column")
    label = cells[label_number - 1].strip()
    if not label:
        raise DataError("the label is empty", where=line.place, fix="write LABEL<TAB>TEXT")
    return label, cells[layout.text_column - 1]


def _json_examples(text: Opened, layout: Layout, tokenizer: Tokenizer | None) -> Iterator[Example]:
    for block in blocks(text.lines, None):
        sentences = sentences_of_block(block, mode="jsonl", tokenizer=tokenizer)
        for line, sentence in zip(block, sentences, strict=True):
            if line.text.strip():
                example = _json_example(sentence, layout)
                if example.labels:  # of no tokens there are no tags
                    yield example


def label_key(fields: Sequence[str], layout: Layout, unit: str | None = None) -> str:
    """Return the key of a JSON object's labels: as told, ``tags`` where it is there or tokens have labels, ``label``.

    Args:
        fields: keys of the object.
        layout: may tell the key.
        unit: what has labels; None where the object itself tells.
    """
    if layout.label_column is not None:
        return layout.label_column
    if unit is not None:
        return "tags" if unit == TOKEN else "label"
    return "tags" if "tags" in fields else "label"


def _json_example(sentence: Sentence, layout: Layout) -> Example:
    key = label_key(tuple(sentence.fields), layout)
    if key not in sentence.fields:
        keys = ", ".join(map(json.dumps, sentence.fields)) or "none"
        fix = 'write {"tokens": [...], "tags": [...]} or {"text": "...", "label": "..."}, or set --label-column KEY'
        message = f"the object has no label (its keys beside text and tokens: {keys})"
        raise DataError(message, where=sentence.place, fix=fix)
    value: Any = sentence.fields[key]
    try:
        value = json.loads(value) if isinstance(value, RawJson) else value
    except ValueError as error:  # thousands of digits
        message = f"the value of {json.dumps(key)} is too long a number for a label"
        raise DataError(message, where=sentence.place, fix="choose another --label-column") from error
    unit = TOKEN if isinstance(value, list) else SENTENCE
    items = value if isinstance(value, list) else [value]
    labels = tuple(_as_label(item, key, sentence.place) for item in items)
    if unit == TOKEN and len(labels) != len(sentence.tokens):
        message = (
            f"found {counted(len(labels), 'label')} in {json.dumps(key)} and {counted(len(sentence.tokens), 'token')}"
        )
        raise DataError(message, where=sentence.place, fix='give "tokens" and a label for each of them')
    is_json = not any(isinstance(item, str) for item in items)
    return Example(sentence.tokens, labels, unit, sentence.place, is_json=is_json)


def _as_label(value: object, key: str, place: Place) -> str:
    if isinstance(value, str) and value:
        return value
    if isinstance(value, int):  # true and false, too
        return json.dumps(value)
    raise DataError(f"{json.dumps(key)} holds {json.dumps(value):.40}, not a label", where=place, fix="write a string")
