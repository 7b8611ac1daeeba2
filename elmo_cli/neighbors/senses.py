"""The senses of a word: its occurrences in groups by their vectors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.neighbors.index import Index, Occurrence
from elmo_cli.neighbors.part import Floats
from elmo_cli.neighbors.search import Candidates, Space
from elmo_cli.storage.extras import sklearn_module

LEAST_OCCURRENCES: Final = 4  # for two groups of two
MOST_GROUPS: Final = 8  # tried where the number is not given
SAMPLE: Final = 2_000  # occurrences by which groups are found; those beyond join the nearest
_STARTS: Final = 10  # of k-means; the best is kept


@dataclass(frozen=True, slots=True)
class Group:
    """Occurrences that are alike.

    Attributes:
        members: numbers of the occurrences, the most typical first.
        typicality: cosine of each with the mean of the group.
    """

    members: tuple[int, ...]
    typicality: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Senses:
    """The groups of a word.

    Attributes:
        occurrences: of the word, in the order of the corpus.
        units: vectors that were compared [n, dim], centred and of length 1.
        labels: group of each, from 0.
        groups: the largest first.
        silhouette: how well they are told apart, from -1 to 1; None for a single group.
    """

    occurrences: Sequence[Occurrence]
    units: Floats
    labels: NDArray[np.int64]
    groups: tuple[Group, ...]
    silhouette: float | None


def find_senses(
    index: Index, candidates: Sequence[Candidates], layer: int, *, groups: int | None, least: float, seed: int
) -> Senses:
    """Group the occurrences of a word by k-means over their centred unit vectors.

    Without a number of groups, that from 2 to 8 is taken whose mean silhouette (by cosine) is the largest; one group,
    if that is less than ``least`` or there are fewer than four occurrences.

    Args:
        index: holds the vectors.
        candidates: the occurrences.
        layer: of the vectors.
        groups: how many; None to find out.
        least: silhouette that parts a word into several groups.
        seed: of k-means. The same seed gives the same groups.

    Raises:
        ConfigError: scikit-learn is not installed.
    """
    occurrences, units = _unit_vectors(index, candidates, layer)
    return group_vectors(occurrences, units, groups=groups, least=least, seed=seed)


def group_vectors(
    occurrences: Sequence[Occurrence], units: Floats, *, groups: int | None, least: float, seed: int
) -> Senses:
    """Group occurrences by their unit vectors [n, dim], as `find_senses` tells."""
    if groups == 1 or len(units) < LEAST_OCCURRENCES:
        return _senses(occurrences, units, np.zeros(len(units), np.int64), None)
    random = np.random.default_rng(seed)
    chosen = np.sort(random.choice(len(units), min(SAMPLE, len(units)), replace=False))
    sample = units[chosen]
    if different_vectors(sample) < LEAST_OCCURRENCES - 1 and groups is None:
        return _senses(occurrences, units, np.zeros(len(units), np.int64), None)  # one line again and again
    counts = [groups] if groups is not None else range(2, min(MOST_GROUPS, len(sample) - 1) + 1)
    best, labels = max(((_parted(sample, count, seed)) for count in counts), key=lambda found: found[0])
    if groups is None and best < least:
        return _senses(occurrences, units, np.zeros(len(units), np.int64), None)
    means = np.stack([sample[labels == label].mean(axis=0) for label in np.unique(labels)])
    nearest = (units @ means.T - 0.5 * np.einsum("ij,ij->i", means, means)).argmax(axis=1)
    nearest[chosen] = np.unique(labels, return_inverse=True)[1]
    return _senses(occurrences, units, nearest, best if best > -1 else None)


def different_vectors(units: Floats) -> int:
    """Return how many unit vectors [n, dim] differ by more than rounding; the same sentence gives the same vector."""
    return len(np.unique(np.round(units, 4), axis=0))


def _unit_vectors(index: Index, candidates: Sequence[Candidates], layer: int) -> tuple[list[Occurrence], Floats]:
    space = Space(index, candidates, layer, center=True)
    occurrences: list[Occurrence] = []
    blocks = []
    for group in candidates:
        rows = range(group.count(index)) if group.rows is None else group.rows
        occurrences += [Occurrence(group.part, int(row), group.length) for row in rows]
        blocks += [space.unit(block) for block in group.blocks(index.parts[group.part], layer)]
    order = sorted(range(len(occurrences)), key=lambda number: (occurrences[number].part, occurrences[number].row))
    return [occurrences[number] for number in order], np.concatenate(blocks)[order]


def _parted(units: Floats, count: int, seed: int) -> tuple[float, NDArray[np.int64]]:
    """Return the silhouette of some number of groups, and the group of each vector."""
    cluster, metrics = sklearn_module("sklearn.cluster"), sklearn_module("sklearn.metrics")
    count = min(count, len(np.unique(units, axis=0)))
    labels = cluster.KMeans(count, n_init=_STARTS, random_state=seed).fit_predict(units).astype(np.int64)
    parts = len(np.unique(labels))
    if not 1 < parts < len(units):
        return -1.0, labels
    return float(metrics.silhouette_score(units, labels, metric="cosine")), labels


def _senses(
    occurrences: Sequence[Occurrence], units: Floats, labels: NDArray[np.int64], silhouette: float | None
) -> Senses:
    """Number the groups by falling size and sort their members."""
    found, first, sizes = np.unique(labels, return_index=True, return_counts=True)
    order = sorted(range(len(found)), key=lambda place: (-sizes[place], first[place]))
    numbered = np.empty(len(labels), np.int64)
    groups = []
    for number, place in enumerate(order):
        members = np.flatnonzero(labels == found[place])
        numbered[members] = number
        mean = units[members].mean(axis=0)
        typicality = units[members] @ (mean / max(float(np.linalg.norm(mean)), 1e-12))
        ranked = np.lexsort((members, -typicality))
        groups.append(Group(tuple(members[ranked].tolist()), tuple(typicality[ranked].tolist())))
    return Senses(occurrences, units, numbered, tuple(groups), silhouette)
