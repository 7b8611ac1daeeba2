"""Lines to sentences of tokens, each with its place."""

import difflib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from elmo_cli.errors import ConfigError
from elmo_cli.text.blocks import ROWS, RUNNING_TEXT, blocks
from elmo_cli.text.conll import conll_sentences, conllu_sentences
from elmo_cli.text.json_lines import json_sentences
from elmo_cli.text.sentence import TOKEN, Sentence
from elmo_cli.text.sources import EncodingErrors, Line, read_lines
from elmo_cli.text.tokenizer import SpacyTokenizer, Tokenizer, tokenizer_record

SUFFIXES: Final[dict[str, tuple[str, ...]]] = {
    "lines": (".txt", ".text"),
    "text": (".txt", ".text"),
    "tokens": (".txt", ".text", ".tok"),
    "jsonl": (".jsonl", ".ndjson"),
    "conll": (".conll", ".iob", ".iob2", ".bio"),
    "conllu": (".conllu",),
}
INPUT_MODES: Final = tuple(SUFFIXES)

_PARAGRAPHS: Final = {"text": RUNNING_TEXT, "conll": ROWS, "conllu": ROWS}


@dataclass(frozen=True, slots=True)
class TextOptions:
    """How text becomes sentences of tokens.

    Attributes:
        mode: one of `INPUT_MODES`, as `read_sentences` tells.
        language: of the tokenizer.
        errors: what to do with bytes that are not UTF-8.
        column: in which the token stands, from 1; for ``conll`` alone.
    """

    mode: str = "lines"
    language: str = "en"
    errors: EncodingErrors = "strict"
    column: int = 1

    @property
    def needs_tokenizer(self) -> bool:
        """Whether the text, or some of it, does not come tokenized."""
        return self.mode in ("lines", "text", "jsonl")

    def tokenizer_record(self) -> dict[str, str]:
        """Return what a model's config says of the tokenizer."""
        return tokenizer_record(self.language) if self.needs_tokenizer else {"name": "none", "language": self.language}

    def make_tokenizer(self) -> SpacyTokenizer | None:
        """Return the tokenizer; None where the text comes tokenized."""
        return SpacyTokenizer(self.language) if self.needs_tokenizer else None


def read_sentences(
    sources: Sequence[str],
    *,
    mode: str,
    tokenizer: Tokenizer | None,
    errors: EncodingErrors = "strict",
    column: int = 1,
) -> Iterator[Sentence]:
    """Return the sentences of some sources, in order and in constant memory.

    Args:
        sources: names as ``find_sources`` returns them.
        mode: ``lines``: a line is a sentence, and an empty line one of no tokens. ``tokens``: the same, already
            tokenized, with ASCII white space between tokens. ``text``: running text, in which blank lines and ends of
            files part paragraphs; no sentence is empty. ``jsonl``, ``conll`` and ``conllu``: as their modules tell.
        tokenizer: not used for ``tokens``, ``conll`` and ``conllu``.
        errors: what to do with bytes that are not UTF-8.
        column: in which the token stands, from 1; for ``conll`` alone.

    Raises:
        ConfigError: there is no such mode.
        DataError: a source cannot be read, is not text, or not of the form that the mode asks for.
    """
    found = line_blocks(sources, mode=mode, errors=errors)
    return (
        sentence
        for lines in found
        for sentence in sentences_of_block(lines, mode=mode, tokenizer=tokenizer, column=column)
    )


def line_blocks(sources: Sequence[str], *, mode: str, errors: EncodingErrors = "strict") -> Iterator[list[Line]]:
    """Return the lines of some sources in blocks that can be made into sentences one without the other.

    Blank lines stay in, and paragraphs stay whole but for those of more than a million characters of running text.

    Raises:
        ConfigError: there is no such mode.
        DataError: a source cannot be read or is not text.
    """
    _check_mode(mode)
    lines = (line for source in sources for line in read_lines(source, errors=errors))
    return blocks(lines, _PARAGRAPHS.get(mode))


def sentences_of_block(
    lines: Sequence[Line], *, mode: str, tokenizer: Tokenizer | None, column: int = 1
) -> Iterator[Sentence]:
    """Return the sentences of a block of ``line_blocks``.

    Raises:
        ConfigError: there is no such mode.
        DataError: a line is not of the form that the mode asks for.
        ValueError: the mode needs a tokenizer and there is none.
    """
    _check_mode(mode)
    if mode == "tokens":
        return (Sentence(TOKEN.findall(line.text), line.place, line=line.text) for line in lines)
    if mode == "conll":
        return conll_sentences(lines, column)
    if mode == "conllu":
        return conllu_sentences(lines)
    if tokenizer is None:
        raise ValueError(f"mode {mode} needs a tokenizer")
    if mode == "jsonl":
        return json_sentences(lines, tokenizer)
    return _sentences_of_lines(lines, tokenizer) if mode == "lines" else _sentences_of_text(lines, tokenizer)


def _check_mode(mode: str) -> None:
    if mode not in INPUT_MODES:
        near = difflib.get_close_matches(mode, INPUT_MODES, n=1)
        fix = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(INPUT_MODES)}"
        raise ConfigError(f"there is no input mode {mode!r}", fix=fix)


def _sentences_of_lines(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    for line, spans in zip(lines, tokenizer.spans([line.text for line in lines]), strict=True):
        text = line.text
        tokens = [text[start:end] for start, end in spans]
        yield Sentence(tokens, line.place, text, spans, ((0, line.place.line or 1, 0),))


def _sentences_of_text(lines: Sequence[Line], tokenizer: Tokenizer) -> Iterator[Sentence]:
    for paragraph in RUNNING_TEXT.of(lines):
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
