"""Which occurrences have the vectors nearest to some: exact, by cosine in float32, block by block over mapped files."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.neighbors.index import Index, Occurrence
from elmo_cli.neighbors.matching import Form
from elmo_cli.neighbors.part import Floats, Numbers, Part

BLOCK_ROWS: Final = 1 << 14  # vectors in memory at once: 16 MB at 256 numbers each
_SCORES_AT_ONCE: Final = 1 << 24  # of a group of queries over all candidates: 64 MB
_LEAST_VARIANCE: Final = 1e-3  # of the largest, added when whitening, so that few vectors do not blow up noise


@dataclass(frozen=True, slots=True)
class Candidates:
    """Runs of ``length`` rows of one part, or all of its rows.

    Attributes:
        part: number of the part.
        rows: first row of each run; None for all rows of the part.
        length: rows of a run, whose vectors are averaged.
    """

    part: int
    rows: Numbers | None
    length: int = 1

    def count(self, index: Index) -> int:
        """Return how many there are."""
        return index.info.parts[self.part].rows if self.rows is None else len(self.rows)

    def blocks(self, part: Part, layer: int) -> Iterator[Floats]:
        """Yield their vectors [n, dim], `BLOCK_ROWS` at once."""
        if self.rows is None:
            for start in range(0, part.info.rows, BLOCK_ROWS):
                yield part.vectors(layer, slice(start, start + BLOCK_ROWS))
            return
        for start in range(0, len(self.rows), BLOCK_ROWS):
            rows = self.rows[start : start + BLOCK_ROWS]
            total = part.vectors(layer, rows)
            for shift in range(1, self.length):
                total += part.vectors(layer, rows + shift)
            yield total / np.float32(self.length)


@dataclass(frozen=True, slots=True)
class Scored:
    """An occurrence and its cosine with the query."""

    score: float
    occurrence: Occurrence


def all_tokens(index: Index) -> list[Candidates]:
    """Return every token of an index."""
    return [Candidates(number, None) for number in range(len(index.parts))]


def occurrences_of(index: Index, forms: Sequence[Form], *, ignore_case: bool) -> list[Candidates]:
    """Return where a word occurs in an index."""
    found = []
    for number, part in enumerate(index.parts):
        for form in forms:
            rows = part.first_rows(form, ignore_case=ignore_case)
            if len(rows):
                found.append(Candidates(number, rows, len(form)))
    return found


class Space:
    """How vectors are changed before they are compared: not at all, centred, or whitened, by those that are searched.

    Args:
        index: to search.
        candidates: that are searched.
        layer: of the vectors.
        center: subtract the mean of the candidates.
        whiten: also divide by the spread in each direction.
    """

    def __init__(
        self, index: Index, candidates: Sequence[Candidates], layer: int, *, center: bool = False, whiten: bool = False
    ) -> None:
        self.mean: NDArray[np.float64] | None = None
        self.turn: Floats | None = None
        if not (center or whiten):
            return
        dim = index.info.vector_dim
        total, outer, count = np.zeros(dim), np.zeros((dim, dim)), 0
        for group in candidates:
            for block in group.blocks(index.parts[group.part], layer):
                total += block.sum(axis=0, dtype=np.float64)
                count += len(block)
                if whiten:
                    outer += block.T.astype(np.float64) @ block
        self.mean = total / max(count, 1)
        if whiten:
            spread, directions = np.linalg.eigh(outer / max(count, 1) - np.outer(self.mean, self.mean))
            spread = np.maximum(spread, 0)
            self.turn = (directions / np.sqrt(spread + _LEAST_VARIANCE * spread.max() + 1e-12)).astype(np.float32)

    def unit(self, vectors: Floats) -> Floats:
        """Return vectors [n, dim] as they are compared, of length 1; a vector of zeros stays one."""
        moved = self._moved(vectors)
        units: Floats = moved / _lengths(moved)[:, None]
        return units

    def cosines(self, units: Floats, vectors: Floats) -> Floats:
        """Return the cosine of each of some unit vectors with each of some vectors [units, vectors]."""
        moved = self._moved(vectors)
        cosines: Floats = units @ moved.T
        cosines /= _lengths(moved)  # a pass over fewer numbers than to make unit vectors first
        return cosines

    def _moved(self, vectors: Floats) -> Floats:
        if self.mean is not None:
            vectors = vectors - self.mean.astype(np.float32)
        return vectors if self.turn is None else vectors @ self.turn


def _lengths(vectors: Floats) -> Floats:
    """Return the length of each vector; of a vector of zeros, a number just above."""
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    return np.maximum(lengths, np.finfo(np.float32).tiny, dtype=np.float32)


def search(
    index: Index,
    candidates: Sequence[Candidates],
    queries: Floats,
    layer: int,
    *,
    count: int,
    space: Space,
    same: Callable[[Occurrence], Hashable] | None = None,
    skip: Sequence[Callable[[Occurrence], bool]] | None = None,
) -> list[list[Scored]]:
    """Return the nearest occurrences for each query, best first; of equal ones that which comes first in the corpus.

    Args:
        index: to search.
        candidates: that are compared.
        queries: vectors [queries, dim].
        layer: of the vectors.
        count: occurrences returned at most.
        space: how vectors are compared.
        same: what may occur only once among those returned, such as the line; None for no such thing.
        skip: for each query, tells which occurrences are left out; None to leave out none.
    """
    total = sum(group.count(index) for group in candidates)
    at_once = max(1, _SCORES_AT_ONCE // max(total, 1))
    units = space.unit(queries)
    found: list[list[Scored]] = []
    for start in range(0, len(units), at_once):
        scores = _scores(index, candidates, units[start : start + at_once], layer, space, total)
        for number, row in enumerate(scores, start):
            ranked = _ranked(row, count)
            scored = (Scored(float(row[place]), _occurrence(candidates, index, place)) for place in ranked)
            found.append(_pick(scored, count, same, skip[number] if skip else None))
    return found


def _scores(
    index: Index, candidates: Sequence[Candidates], units: Floats, layer: int, space: Space, total: int
) -> Floats:
    """Return the cosine of each query with each candidate [queries, candidates]."""
    scores = np.empty((len(units), total), np.float32)
    at = 0
    for group in candidates:
        for block in group.blocks(index.parts[group.part], layer):
            scores[:, at : at + len(block)] = space.cosines(units, block)
            at += len(block)
    return scores


def _ranked(scores: Floats, count: int) -> Iterator[int]:
    """Yield the numbers of all scores, best first, sorting only as many as are taken."""
    wanted, done = max(4 * count, 64), 0
    while done < len(scores):
        wanted = min(wanted, len(scores))
        if wanted < len(scores):
            least = np.partition(scores, len(scores) - wanted)[len(scores) - wanted]
            best = np.flatnonzero(scores >= least)
        else:
            best = np.arange(len(scores))
        order = best[np.lexsort((best, -scores[best]))]
        yield from (int(place) for place in order[done:])
        done, wanted = len(order), 8 * wanted


def _occurrence(candidates: Sequence[Candidates], index: Index, place: int) -> Occurrence:
    for group in candidates:
        size = group.count(index)
        if place < size:
            return Occurrence(group.part, place if group.rows is None else int(group.rows[place]), group.length)
        place -= size
    raise IndexError(place)


def _pick(
    scored: Iterator[Scored],
    count: int,
    same: Callable[[Occurrence], Hashable] | None,
    skip: Callable[[Occurrence], bool] | None,
) -> list[Scored]:
    taken: list[Scored] = []
    seen: set[Hashable] = set()
    while len(taken) < count and (hit := next(scored, None)):
        if skip is not None and skip(hit.occurrence):
            continue
        if same is not None:
            key = same(hit.occurrence)
            if key in seen:
                continue
            seen.add(key)
        taken.append(hit)
    return taken
