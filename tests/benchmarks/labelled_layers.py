"""Vectors of labelled stretches of text, of every layer of a model or of static vectors, for the probes to share."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

import elmo_cli
from elmo_cli.text.sources import read_lines

Label = TypeVar("Label")


@dataclass(frozen=True)
class Labelled(Generic[Label]):
    """A sentence with labels.

    Attributes:
        tokens: all of them; the model reads them as they are.
        spans: first token of each labelled stretch, and the one after its last.
        labels: one a stretch.
    """

    tokens: list[str]
    spans: list[tuple[int, int]]
    labels: list[Label]


def labels_of(sentences: Iterable[Labelled[Label]]) -> list[Label]:
    """Return all labels, in the order of the vectors."""
    return list(chain.from_iterable(sentence.labels for sentence in sentences))


def blocks_of_rows(source: str) -> Iterator[list[list[str]]]:
    """Yield the rows of each sentence of a file of columns parted by tabs; lines without a tab part sentences too.

    Lines that begin with ``# `` are comments.
    """
    rows: list[list[str]] = []
    for line in read_lines(source):
        if line.text.startswith("# "):
            continue
        if "\t" in line.text:
            rows.append(line.text.split("\t"))
        elif rows:
            yield rows
            rows = []
    if rows:
        yield rows


def model_layers(model: str, sentences: Sequence[Labelled[Label]], file: Path) -> NDArray[np.float32]:
    """Return the vectors of all layers, [layers, stretches, dim], mapped from a new file.

    A stretch of several tokens has the mean of their vectors.
    """
    elmo = elmo_cli.load(model, device="cpu")
    layers, dim = elmo.row_shape(layers="all")
    shape = (layers, sum(len(sentence.spans) for sentence in sentences), dim)
    found = np.lib.format.open_memmap(file, mode="w+", dtype=np.float32, shape=shape)
    row = 0
    vectors = elmo.embed_each((sentence.tokens for sentence in sentences), layers="all")
    for sentence, tokens in zip(sentences, vectors, strict=True):
        means = _span_means(tokens, sentence.spans)
        found[:, row : row + len(means)] = means.swapaxes(0, 1)
        row += len(means)
    return found


def _span_means(tokens: NDArray[np.float32], spans: Sequence[tuple[int, int]]) -> NDArray[np.float32]:
    found = np.empty((len(spans), *tokens.shape[1:]), dtype=np.float32)
    for number, (start, end) in enumerate(spans):
        found[number] = tokens[start] if end == start + 1 else tokens[start:end].mean(axis=0)
    return found


@dataclass(frozen=True)
class StaticVectors:
    """One vector a word type.

    Attributes:
        rows: row of each word type.
        table: float32 [word types, dim].
    """

    rows: dict[str, int]
    table: NDArray[np.float32]

    def row(self, token: str) -> int | None:
        """Return the row of a token as it is written, else in small letters; None where there is neither."""
        return self.rows.get(token, self.rows.get(token.lower()))

    def coverage(self, sentences: Iterable[Labelled[Label]]) -> float:
        """Return the share of tokens in labelled stretches that have a vector."""
        tokens = [token for sentence in sentences for span in sentence.spans for token in sentence.tokens[slice(*span)]]
        return sum(self.row(token) is not None for token in tokens) / max(len(tokens), 1)

    def layers(self, sentences: Iterable[Labelled[Label]]) -> NDArray[np.float32]:
        """Return vectors [1, stretches, dim], as `model_layers` does: means over known words, zeros without any."""
        return np.array(
            [
                self._mean([row for token in sentence.tokens[slice(*span)] if (row := self.row(token)) is not None])
                for sentence in sentences
                for span in sentence.spans
            ],
            dtype=np.float32,
        )[None]

    def _mean(self, rows: list[int]) -> NDArray[np.float32]:
        return self.table[rows].mean(axis=0) if rows else np.zeros(self.table.shape[1], dtype=np.float32)


def read_static(source: str) -> StaticVectors:
    """Read vectors in word2vec's text format: a line of two counts, then a word and its numbers a line."""
    lines = read_lines(source)
    count, dim = map(int, next(lines).text.split())
    table, rows = np.empty((count, dim), dtype=np.float32), {}
    for number, line in enumerate(lines):
        word, numbers = line.text.split(" ", 1)
        table[number] = np.fromstring(numbers, dtype=np.float32, sep=" ")
        rows[word] = number
    return StaticVectors(rows, table)
