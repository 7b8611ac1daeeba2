"""Static word vectors in text form, as GloVe's and word2vec's: an encoder of one layer to compare a biLM with."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.errors import DataError, Place
from elmo_cli.storage.mix_file import EncoderIdentity
from elmo_cli.storage.tables import utf8
from elmo_cli.text.sources import read_lines


@dataclass(slots=True)
class Coverage:
    """How many tokens had a vector.

    Attributes:
        exact: tokens whose own form has one.
        lowered: tokens whose lower-cased form has one.
        unknown: tokens that got zeros.
    """

    exact: int = 0
    lowered: int = 0
    unknown: int = 0

    def __str__(self) -> str:
        tokens = self.exact + self.lowered + self.unknown
        shares = [f"{100 * count / max(tokens, 1):.1f}%" for count in (self.exact, self.lowered, self.unknown)]
        return f"{tokens:,} tokens: {shares[0]} have a vector, {shares[1]} in lower case, {shares[2]} none (zeros)"


class StaticEncoder:
    """A table of word vectors as an `Encoder`: a token has its word's vector, else that of its lower-cased form.

    Args:
        source: a text file, perhaps compressed: a word and its numbers a line; a first line of two whole numbers, as
            word2vec writes it, is no word.
        wanted: tokens that will be asked for; None if that is not known, and all of the table is kept.

    Raises:
        DataError: the file cannot be read, or a line has another number of numbers.
    """

    def __init__(self, source: str, wanted: Collection[str] | None = None) -> None:
        self.coverage = Coverage()
        forms = None if wanted is None else {form for token in wanted for form in (token, token.lower())}
        self._rows: dict[str, int] = {}
        vectors: list[np.ndarray] = []
        digest = hashlib.sha256()
        dim = 0
        for line in read_lines(source, errors="replace"):
            digest.update(utf8(line.text) + b"\n")
            parts = line.text.rstrip().split(" ")
            if line.place.line == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
                continue
            dim = dim or len(parts) - 1
            # GloVe's words of 840 billion tokens may hold spaces: the numbers are counted from the end.
            word = " ".join(parts[:-dim]) if dim else ""
            if not word:
                _refuse(line.text, dim, line.place)
            if word not in self._rows and (forms is None or word in forms):
                self._rows[word] = len(vectors)
                vectors.append(_numbers(parts[-dim:], line.text, line.place))
        if not dim:
            raise DataError("there is no vector in the file", where=Place(source))
        vectors.append(np.zeros(dim, np.float32))  # row -1: of unknown words
        self._table = torch.from_numpy(np.stack(vectors))
        name = Path(source).name
        self.identity = EncoderIdentity("vectors", name, source, digest.hexdigest(), 1, dim)

    def layers(self, sentences: Iterable[Sequence[str]]) -> Iterator[Float[Tensor, "1 tokens dim"]]:
        """Yield the vectors of each sentence's tokens."""
        for sentence in sentences:
            rows = torch.tensor([self._row(token) for token in sentence], dtype=torch.int64)
            yield self._table[rows].unsqueeze(0)

    def covered(self, sentences: Iterable[Sequence[str]]) -> Coverage:
        """Return how many tokens of some sentences have a vector."""
        before, self.coverage = self.coverage, Coverage()
        for sentence in sentences:
            for token in sentence:
                self._row(token)
        found, self.coverage = self.coverage, before
        return found

    def _row(self, token: str) -> int:
        row = self._rows.get(token)
        if row is not None:
            self.coverage.exact += 1
            return row
        row = self._rows.get(token.lower())
        if row is None:
            self.coverage.unknown += 1
            return -1
        self.coverage.lowered += 1
        return row


def _numbers(parts: Sequence[str], text: str, place: Place) -> np.ndarray:
    try:
        with np.errstate(over="ignore"):  # what is too large for float32 is refused below
            found = np.array(parts, dtype=np.float32)
    except ValueError:
        _refuse(text, len(parts), place)
    if not np.isfinite(found).all():
        _refuse(text, len(parts), place)
    return found


def _refuse(text: str, dim: int, place: Place) -> NoReturn:
    raise DataError(
        f"expected a word and {dim or 'its'} finite numbers, found {text[:40]!r}",
        where=place,
        fix="name a file of word vectors in text form, as GloVe's",
    )
