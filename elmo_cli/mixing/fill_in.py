"""`elmo mix predict`: text out in the layout in which it came in, with the labels put in."""

import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.mixing.labelled import SENTENCE, TOKEN, label_key, label_span, row_blocks, row_sentences, tsv_cells
from elmo_cli.mixing.layouts import Layout, Opened
from elmo_cli.reporting import Reporter, counted
from elmo_cli.storage.tables import escaped
from elmo_cli.text.blocks import blocks
from elmo_cli.text.conll import columns_of
from elmo_cli.text.json_lines import raw_members
from elmo_cli.text.reader import sentences_of_block
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import Tokenizer

Labels = Sequence[str]


@dataclass(frozen=True, slots=True)
class Slot:
    """A stretch of the text.

    Attributes:
        tokens: of the sentence in it that gets labels; None where there is nothing to label.
        render: from the labels to the lines that are written.
    """

    tokens: Sequence[str] | None
    render: Callable[[Labels], str]


def slots_of(
    text: Opened,
    layout: Layout,
    unit: str,
    tokenizer: Tokenizer | None,
    columns: int = 0,
    *,
    reporter: Reporter | None = None,
    as_json: bool = False,
) -> Iterator[Slot]:
    """Return the stretches of a text, in order; together they are all of it.

    Args:
        text: as `open_text` returns it.
        layout: of the text, and where the labels go.
        unit: what gets a label: ``token`` or ``sentence``.
        tokenizer: where the layout needs one.
        columns: of a row of the text that was learned on; shorter rows get the label behind their last column.
        reporter: told which column of CoNLL text is replaced.
        as_json: whether labels are the JSON of numbers, of true and of false, which jsonl gets as such.

    Raises:
        ConfigError: the layout has no place for labels of this unit.
        DataError: a line is not of this layout, or not of as many columns as those before.
    """
    wrong = TOKEN if layout.mode == "tsv" else SENTENCE if layout.mode in ("conll", "conllu") else None
    if unit == wrong:
        raise ConfigError(
            f"{layout.mode} has no place for a label of each {unit}, which is what the mix gives",
            fix=f"name text of another layout, or say it: --input {'conll or' if unit == TOKEN else 'tsv or'} lines",
        )
    if layout.mode in ("conll", "conllu"):
        return _row_slots(text, layout, columns, reporter)
    if layout.mode == "tsv":
        return _tsv_slots(text, layout, tokenizer)
    if layout.mode == "jsonl":
        return _json_slots(text, layout, unit, tokenizer, as_json=as_json)
    return _line_slots(text, layout, unit, tokenizer)


def fill_in(slots: Iterable[Slot], predict: Callable[[Iterable[Sequence[str]]], Iterator[Labels]]) -> Iterator[str]:
    """Yield the lines of all slots, in order, each with its end.

    Args:
        slots: to fill.
        predict: from sentences to their labels, in order; it may read ahead.
    """
    waiting: deque[Slot] = deque()

    def sentences() -> Iterator[Sequence[str]]:
        for slot in slots:
            waiting.append(slot)
            if slot.tokens is not None:
                yield slot.tokens

    for labels in predict(sentences()):
        while waiting[0].tokens is None:
            yield waiting.popleft().render(())
        yield waiting.popleft().render(labels)
    for slot in waiting:
        yield slot.render(())


def _as_it_is(lines: Sequence[Line]) -> Slot:
    text = "".join(f"{line.text}\n" for line in lines)
    return Slot(None, lambda _: text)


def _row_slots(text: Opened, layout: Layout, columns: int, reporter: Reporter | None) -> Iterator[Slot]:
    first: Line | None = None
    for block in row_blocks(text):
        places = {line.place.line: number for number, line in enumerate(block)}
        done = 0
        for sentence in row_sentences(block, layout):
            rows = [places[number] for number, _, _ in sentence.positions]
            if rows:
                if layout.mode == "conll":
                    if first is None:
                        first = block[rows[0]]
                        _note_replaced(first, text.name, layout, columns, reporter)
                    for row in rows:
                        _check_alike(block[row], first, layout)
                end = rows[-1] + 1
                yield _row_slot(sentence.tokens, block[done:end], [row - done for row in rows], layout, columns)
                done = end
        yield _as_it_is(block[done:])


def _row_slot(tokens: Sequence[str], lines: Sequence[Line], rows: Sequence[int], layout: Layout, columns: int) -> Slot:
    def render(labels: Labels) -> str:
        texts = [line.text for line in lines]
        for row, label in zip(rows, labels, strict=True):
            texts[row] = _with_label(lines[row], escaped(label), layout, columns)
        return "".join(f"{text}\n" for text in texts)

    return Slot(tokens, render)


def _note_replaced(row: Line, name: str, layout: Layout, columns: int, reporter: Reporter | None) -> None:
    span = _replaced_span(row, layout, columns)
    if span is not None and reporter is not None:
        spans = columns_of(row)
        place = spans.index(span) + 1
        reporter.note(f"{name}: replaced column {place} of each row; --label-column {len(spans) + 1} appends")


def _check_alike(row: Line, first: Line, layout: Layout) -> None:
    """Refuse a row whose label would go to another column than that of the first row.

    Raises:
        DataError: with the numbers of columns of both.
    """
    counts, wanted = _widths(row), _widths(first)
    if layout.label_number is None:
        alike = any(one == other for one, other in zip(counts, wanted, strict=True))
    else:
        alike = (layout.label_number <= counts[0]) == (layout.label_number <= wanted[0])
    if not alike:
        raise DataError(
            f"the row has {counted(counts[0], 'column')}, that in line {first.place.line} has {wanted[0]}",
            where=row.place,
            fix="give all rows as many columns, or say how the text is laid out: --input lines",
        )


def _widths(row: Line) -> tuple[int, int]:
    """Return the number of columns, and that without empty ones at the end."""
    spans = columns_of(row)
    return len(spans), max((number for number, (start, end) in enumerate(spans, start=1) if start < end), default=0)


def _replaced_span(row: Line, layout: Layout, columns: int) -> tuple[int, int] | None:
    """Return where a row has the column that the label replaces; None if it has no such column yet."""
    is_shorter = layout.label_number is None and len(columns_of(row)) < columns
    return None if is_shorter else label_span(row, layout)


def _with_label(row: Line, label: str, layout: Layout, columns: int) -> str:
    """Return a row with the label in its column, or behind the last one where the row has no such column yet."""
    count = len(columns_of(row))
    span = _replaced_span(row, layout, columns)
    if span is not None:
        return row.text[: span[0]] + label + row.text[span[1] :]
    if layout.label_number is not None and layout.label_number > count + 1:
        raise DataError(
            f"the row has {counted(count, 'column')}, the label goes to column {layout.label_number}",
            where=row.place,
            fix=f"choose --label-column {count + 1}",
        )
    gap = "\t" if "\t" in row.text or " " not in row.text.strip(" ") else " "
    # Empty columns at the end count, and stay, where the label's column is told. U+00A0 and U+3000 may be a token.
    return row.text.rstrip(" \t" if layout.label_number is None else " ") + gap + label


def _tsv_slots(text: Opened, layout: Layout, tokenizer: Tokenizer | None) -> Iterator[Slot]:
    for block in blocks(text.lines, None):
        cells = [_tsv_cells(line, layout) for line in block]
        contents = [Line(row[layout.text_column - 1], line.place) for row, line in zip(cells, block, strict=True)]
        sentences = sentences_of_block(contents, mode="lines", tokenizer=tokenizer)
        for line, row, sentence in zip(block, cells, sentences, strict=True):
            yield (
                _as_it_is([line]) if not line.text.strip() else _tsv_slot(row, sentence, (layout.label_number or 1) - 1)
            )


def _tsv_cells(line: Line, layout: Layout) -> list[str]:
    """Return the cells of a row; a row that is only a text gets an empty cell for its label."""
    cells = tsv_cells(line, layout)
    if layout.is_usual and len(cells) == 1:
        return ["", *cells]
    if len(cells) < layout.text_column:
        message = f"the row has {counted(len(cells), 'column')}, the text stands in {layout.text_column}"
        if line.text.strip():
            raise DataError(message, where=line.place, fix="choose another --column")
        cells += [""] * layout.text_column
    return cells


def _tsv_slot(cells: Sequence[str], sentence: Sentence, place: int) -> Slot:
    def render(labels: Labels) -> str:
        filled = [*cells, *[""] * (place + 1 - len(cells))]
        filled[place] = escaped(labels[0])
        return "\t".join(filled) + "\n"

    return Slot(sentence.tokens, render)


def _json_slots(
    text: Opened, layout: Layout, unit: str, tokenizer: Tokenizer | None, *, as_json: bool
) -> Iterator[Slot]:
    for block in blocks(text.lines, None):
        sentences = sentences_of_block(block, mode="jsonl", tokenizer=tokenizer)
        for line, sentence in zip(block, sentences, strict=True):
            is_blank = not line.text.strip()
            yield _as_it_is([line]) if is_blank else _json_slot(line, sentence, layout, unit, as_json=as_json)


def _json_slot(line: Line, sentence: Sentence, layout: Layout, unit: str, *, as_json: bool) -> Slot:
    key = label_key((), layout, unit)

    def render(labels: Labels) -> str:
        values = [json.loads(label) for label in labels] if as_json else list(labels)
        value = values if unit == TOKEN else values[0]
        return with_member(line.text, key, value, None if sentence.text is None else sentence.tokens) + "\n"

    return Slot(sentence.tokens, render)


def with_member(text: str, key: str, value: object, tokens: Sequence[str] | None) -> str:
    """Return a JSON object with a member added behind the others, or in place of one of this key.

    Args:
        text: the object, in one line.
        key: of the member.
        value: of it.
        tokens: that the labels belong to, added as ``tokens`` where the object has only its text and each token has a
            label; None where it has tokens.
    """
    members: dict[str, str] = dict(raw_members(text))  # as they are written: no digit of a number is lost
    if isinstance(value, list) and tokens is not None:
        members["tokens"] = json.dumps(list(tokens), ensure_ascii=False)
    members[key] = json.dumps(value, ensure_ascii=False)
    return "{" + ", ".join(f"{json.dumps(name, ensure_ascii=False)}: {raw}" for name, raw in members.items()) + "}"


def _line_slots(text: Opened, layout: Layout, unit: str, tokenizer: Tokenizer | None) -> Iterator[Slot]:
    for block in blocks(text.lines, None):
        sentences = sentences_of_block(block, mode=layout.mode, tokenizer=tokenizer)
        for line, sentence in zip(block, sentences, strict=True):
            yield _line_slot(line.text, sentence, unit)


def _line_slot(text: str, sentence: Sentence, unit: str) -> Slot:
    """Return a row a token with a blank line behind the sentence, or the label before the line as in tsv."""
    if unit == SENTENCE:
        return Slot(sentence.tokens, lambda labels: f"{escaped(labels[0])}\t{text}\n")
    rows = [escaped(token) for token in sentence.tokens]
    return Slot(
        sentence.tokens,
        lambda labels: "".join(f"{row}\t{escaped(label)}\n" for row, label in zip(rows, labels, strict=True)) + "\n",
    )
