"""Sentences of like length together: windows that are read ahead, and batches by a budget of tokens."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from elmo_cli.bilm.bilm import MARKERS_A_SENTENCE

Numbers = TypeVar("Numbers", list[int], NDArray[np.int64])


def read_windows(
    sentences: Iterable[Sequence[str]], *, max_tokens: int, max_sentences: int
) -> Iterator[list[Sequence[str]]]:
    """Group sentences into windows of bounded size; a longer sentence is a window of its own or ends one.

    Args:
        sentences: tokens of each; may be endless.
        max_tokens: of a window, markers included.
        max_sentences: of a window.
    """
    window: list[Sequence[str]] = []
    tokens = 0
    for sentence in sentences:
        window.append(sentence)
        tokens += len(sentence) + MARKERS_A_SENTENCE
        if tokens >= max_tokens or len(window) >= max_sentences:
            yield window
            window, tokens = [], 0
    if window:
        yield window


def split_by_budget(
    numbers: Numbers, lengths: Sequence[int] | NDArray[np.int64], batch_tokens: int
) -> Iterator[Numbers]:
    """Cut a run of sentences into batches of at most ``batch_tokens`` tokens, markers included (one may be longer).

    Args:
        numbers: of the sentences.
        lengths: tokens of each, without markers.
        batch_tokens: of a batch.
    """
    start, size = 0, 0
    for place, length in enumerate((np.asarray(lengths, dtype=np.int64) + MARKERS_A_SENTENCE).tolist()):
        if size and size + length > batch_tokens:
            yield numbers[start:place]
            start, size = place, 0
        size += length
    if size:
        yield numbers[start:]
