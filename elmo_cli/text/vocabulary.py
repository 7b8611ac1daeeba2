"""The softmax's word types, by falling count, in the layout of bilm-tf's vocabulary file."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from elmo_cli.errors import ModelError, Place
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START

UNKNOWN = "<UNK>"
SPECIALS = (SENTENCE_START, SENTENCE_END, UNKNOWN)
START_ID, END_ID, UNKNOWN_ID = range(3)

# A type with a line end or a lone surrogate cannot stand in a file of one type a line, in UTF-8; it counts as unknown.
_UNWRITABLE = re.compile("[\n\ud800-\udfff]")


@dataclass(frozen=True)
class Vocabulary:
    """Word types in the order of their ids: ``<S>``, ``</S>``, ``<UNK>``, then by falling count.

    Attributes:
        types: all of them, the special ones included.
    """

    types: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.types)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {word_type: number for number, word_type in enumerate(self.types)}

    def ids(self, types: Iterable[str]) -> NDArray[np.int64]:
        """Return the id of each type, `UNKNOWN_ID` for those outside."""
        known = self._ids
        return np.fromiter((known.get(word_type, UNKNOWN_ID) for word_type in types), dtype=np.int64)


def build_vocabulary(
    types: Sequence[str], counts: NDArray[np.int64], *, min_count: int, max_size: int | None
) -> Vocabulary:
    """Choose the types that occur at least ``min_count`` times, the most frequent first, ties in text order.

    Args:
        types: distinct word types.
        counts: how often each occurs.
        min_count: occurrences a type needs.
        max_size: largest number of types kept, the special ones not counted; None for no limit.
    """
    kept = [
        (-int(count), word_type)
        for word_type, count in zip(types, counts, strict=True)
        if count >= min_count and word_type not in SPECIALS and not _UNWRITABLE.search(word_type)
    ]
    kept.sort()
    return Vocabulary((*SPECIALS, *(word_type for _, word_type in kept[:max_size])))


def vocabulary_to_text(vocabulary: Vocabulary) -> str:
    """Return the vocabulary file's text: one type a line."""
    return "".join(f"{word_type}\n" for word_type in vocabulary.types)


def vocabulary_from_text(text: str, source: str) -> Vocabulary:
    """Read a vocabulary file's text. Only a line feed ends a line: types may hold other line-like characters.

    Raises:
        ModelError: the special types do not come first, or a type stands twice.
    """
    types = tuple(text.removesuffix("\n").split("\n"))
    if types[:3] != SPECIALS:
        raise ModelError(f"the vocabulary does not start with {', '.join(SPECIALS)}", where=Place(source, 1))
    if len(set(types)) != len(types):
        seen: set[str] = set()
        for number, word_type in enumerate(types, start=1):
            if word_type in seen:
                raise ModelError(f"{word_type!r} stands a second time", where=Place(source, number))
            seen.add(word_type)
    return Vocabulary(types)
