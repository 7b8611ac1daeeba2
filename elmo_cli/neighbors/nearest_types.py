"""Which word types are nearest to a word without a context: layer 0, which knows nothing but the spelling."""

from dataclasses import dataclass

import numpy as np

from elmo_cli.neighbors.index import Index
from elmo_cli.neighbors.part import Floats


@dataclass(frozen=True, slots=True)
class NearType:
    """A word type of the corpus.

    Attributes:
        score: cosine of the layers 0.
        word: the type.
        count: how often it stands in the index.
    """

    score: float
    word: str
    count: int


def nearest_types(index: Index, word: str, vector: Floats, *, count: int) -> list[NearType]:
    """Return the types of a corpus nearest to a word, best first, without the word itself.

    Args:
        index: holds the types.
        word: itself.
        vector: layer 0 of the word [dim].
        count: types returned at most.
    """
    counts: dict[str, int] = {}
    scores: dict[str, float] = {}
    query = vector / np.linalg.norm(vector)
    for part in index.parts:
        vectors = part.type_vectors.astype(np.float32)
        lengths = np.maximum(np.linalg.norm(vectors, axis=1), np.finfo(np.float32).tiny)
        found = (vectors @ query) / lengths
        for number, other in enumerate(part.types):
            counts[other] = counts.get(other, 0) + int(part.type_counts[number])
            scores[other] = float(found[number])
    best = sorted((other for other in scores if other != word), key=lambda other: (-scores[other], other))[:count]
    return [NearType(scores[other], other, counts[other]) for other in best]
