"""Lines to sentences of tokens, each with its place."""

import difflib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from elmo_cli.errors import ConfigError, Place
from elmo_cli.text.sources import EncodingErrors, Line, read_lines
from elmo_cli.text.tokenizer import Span, Tokenizer

INPUT_MODES: Final = ("lines", "text", "tokens")
SUFFIXES: Final[dict[str, tuple[str, ...]]] = {
    "lines": (".txt", ".text"),
    "text": (".txt", ".text"),
    "tokens": (".txt", ".text", ".tok"),
}

# A block is what is tokenized at once, in one process.
_BLOCK_LINES: Final = 256
_BLOCK_CHARACTERS: Final = 100_000
_LONGEST_PARAGRAPH: Final = 1_000_000  # characters; longer ones are cut at a line's end, to bound memory

_TOKEN: Final = re.compile(r"[^ \t\r\v\f]+")  # ASCII alone, so that U+00A0 and U+3000 may stand in a token


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of tokens, with what tells where each stood in the input.

    Args:
        tokens: in order; none for an empty line.
        place: of the line in which the sentence starts.
        text: what the spans point into; None where the input came tokenized.
        spans: start and end of each token in ``text``; None where the input came tokenized.
        origins: (offset in ``text``, line number, offset in that line) of each stretch of ``text`` that lies in one
            line, in order; the first offset is 0.
        line: the line itself, where the input came tokenized.
    """

    tokens: list[str]
    place: Place
    text: str | None = None
    spans: list[Span] | None = None
    origins: tuple[tuple[int, int, int], ...] = ()
    line: str | None = None

    @property
    def positions(self) -> list[tuple[int, int, int]]:
        """Line number, start and end of each token in the line of the input in which it starts."""
        if self.spans is None:
            number = self.place.line or 1
            return [(number, *match.span()) for match in _TOKEN.finditer(self.line or "")]
        offsets = [offset for offset, _, _ in self.origins]
        positions = []
        for start, end in self.spans:
            index = bisect_right(offsets, start) - 1
            offset, number, shift = self.origins[index]
            if index + 1 < len(offsets):  # a token with a space in it may go on in the next line
                end = min(end, offsets[index + 1] - 1)
            positions.append((number, start - offset + shift, end - offset + shift))
        return positions


def read_sentences(
    sources: Sequence[str], *, mode: str, tokenizer: Tokenizer | None, errors: EncodingErrors = "strict"
) -> Iterator[Sentence]:
    """Return the sentences of some sources, in order and in constant memory.

    Args:
        sources: names as ``find_sources`` returns them.
        mode: ``lines``: a line is a sentence, and an empty line one of no tokens. ``tokens``: the same, already
            tokenized, with ASCII white space between tokens. ``text``: running text, in which blank lines and ends of
            files part paragraphs; no sentence is empty.
        tokenizer: not used for ``tokens``.
        errors: what to do with bytes that are not UTF-8.

    Raises:
        ConfigError: there is no such mode.
        DataError: a source cannot be read or is not text.
    """
    blocks = line_blocks(sources, mode=mode, errors=errors)
    return (sentence for lines in blocks for sentence in sentences_of_block(lines, mode=mode, tokenizer=tokenizer))


def line_blocks(sources: Sequence[str], *, mode: str, errors: EncodingErrors = "strict") -> Iterator[list[Line]]:
    """Return the lines of some sources in blocks that can be made into sentences one without the other.

    Blank lines stay in, and paragraphs stay whole but for those of more than a million characters.

    Raises:
        ConfigError: there is no such mode.
        DataError: a source cannot be read or is not text.
    """
    _check_mode(mode)
    lines = (line for source in sources for line in read_lines(source, errors=errors))
    return _blocks(lines, is_running=mode == "text")


def sentences_of_block(lines: Sequence[Line], *, mode: str, tokenizer: Tokenizer | None) -> Iterator[Sentence]:
    """Return the sentences of a block of ``line_blocks``.

    Raises:
        ConfigError: there is no such mode.
        ValueError: the mode needs a tokenizer and there is none.
    """
    _check_mode(mode)
    if mode == "tokens":
        return (Sentence(_TOKEN.findall(line.text), line.place, line=line.text) for line in lines)
    if tokenizer is None:
        raise ValueError(f"mode {mode} needs a tokenizer")
    return _sentences_of_lines(lines, tokenizer) if mode == "lines" else _sentences_of_text(lines, tokenizer)


def _check_mode(mode: str) -> None:
    if mode not in INPUT_MODES:
        near = difflib.get_close_matches(mode, INPUT_MODES, n=1)
        fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(INPUT_MODES)}"
        raise ConfigError(f"there is no input mode {mode!r}", fix=fix)


def _blocks(lines: Iterable[Line], *, is_running: bool) -> Iterator[list[Line]]:
    block: list[Line] = []
    size = 0
    for line in lines:
        is_full = len(block) >= _BLOCK_LINES or size >= _BLOCK_CHARACTERS
        is_end = not is_running or size >= _LONGEST_PARAGRAPH or (bool(block) and not _continues(block[-1], line))
        if is_full and is_end:
            yield block
            block, size = [], 0
        block.append(line)
        size += len(line.text) + 1
    if block:
        yield block


def _continues(previous: Line, line: Line) -> bool:
    """Tell whether a line of running text belongs to the paragraph of the line before."""
    is_next = previous.place.source == line.place.source and (previous.place.line or 0) + 1 == line.place.line
    return is_next and bool(previous.text.strip()) and bool(line.text.strip())


def _sentences_of_lines(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    for line, spans in zip(lines, tokenizer.spans([line.text for line in lines]), strict=True):
        text = line.text
        tokens = [text[start:end] for start, end in spans]
        yield Sentence(tokens, line.place, text, spans, ((0, line.place.line or 1, 0),))


def _sentences_of_text(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    paragraph: list[Line] = []
    for line in lines:
        if paragraph and not _continues(paragraph[-1], line):
            yield from _sentences_of_paragraph(paragraph, tokenizer)
            paragraph = []
        if line.text.strip():
            paragraph.append(line)
    if paragraph:
        yield from _sentences_of_paragraph(paragraph, tokenizer)


def _sentences_of_paragraph(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    """Join lines by one space, without the white space at their ends, and split the whole."""
    starts: list[int] = []
    size = 0
    for line in lines:
        starts.append(size)
        size += len(line.text.strip()) + 1
    indents = [len(line.text) - len(line.text.lstrip()) for line in lines]
    text = " ".join(line.text.strip() for line in lines)
    for spans in tokenizer.sentences(text):
        start, end = spans[0][0], spans[-1][1]
        first = bisect_right(starts, start) - 1
        touched = range(first, bisect_left(starts, end))
        yield Sentence(
            [text[begin:stop] for begin, stop in spans],
            lines[first].place,
            text[start:end],
            [(begin - start, stop - start) for begin, stop in spans],
            tuple(
                (max(starts[i] - start, 0), lines[i].place.line or 1, indents[i] + max(start - starts[i], 0))
                for i in touched
            ),
        )
