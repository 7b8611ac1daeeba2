"""The text a model is measured on while it trains: chosen, and predicted by word frequency alone for comparison."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import END_ID, START_ID, UNKNOWN_ID, Vocabulary
from elmo_cli.training.batches import Pieces

SHARE = 0.05  # of the tokens held out ...
MAX_TOKENS = 50_000  # ... but no more than this: enough for a steady figure, little enough to measure often
_LARGEST_SHARE = 0.25  # of the tokens in a chunk that is held out: a book in one line is text to train on
_CHUNK = 100  # neighbouring sentences held out together, so that their like does not stand in the training text
_MIN_SENTENCES = 10  # with fewer, nothing can be spared
_COUNTED_AT_ONCE = 1 << 22  # tokens; counting copies them as numbers twice as wide


def split_heldout(corpus: Corpus, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sentences to train on and those held out: whole chunks of neighbours, spread over the text.

    The second is empty when the text has fewer than ten sentences, the first never.
    """
    lengths = np.diff(corpus.sentence_ends, prepend=0)
    sentences = np.flatnonzero(lengths)
    if len(sentences) < _MIN_SENTENCES:
        return sentences, sentences[:0]
    size = max(1, min(_CHUNK, len(sentences) // 50))
    chunk_of = np.arange(len(sentences)) // size
    chunk_tokens = np.bincount(chunk_of, weights=lengths[sentences])
    order = np.random.default_rng(seed).permutation(len(chunk_tokens))
    # At most three chunks are too large, and at least half of the seven or more others are trained on.
    order = order[chunk_tokens[order] <= _LARGEST_SHARE * chunk_tokens.sum()]
    wanted = min(SHARE * chunk_tokens.sum(), MAX_TOKENS)
    count = min(int(np.searchsorted(chunk_tokens[order].cumsum(), wanted)) + 1, len(order) // 2)
    held_out = np.isin(chunk_of, order[:count])
    return sentences[~held_out], sentences[held_out]


@dataclass(frozen=True, slots=True)
class Frequencies:
    """How often each word type of a vocabulary is a target, ``<UNK>`` and the sentence marks among them.

    Attributes:
        counts: int64 [vocabulary].
    """

    counts: NDArray[np.int64]

    def log_relative(self) -> NDArray[np.float64]:
        """Return ``ln`` of the relative frequencies, each count taken one larger so that none is zero."""
        smoothed = self.counts + 1.0
        return np.asarray(np.log(smoothed / smoothed.sum()))

    def unknown_rate(self, sentences: int) -> float:
        """Return the share of tokens that are ``<UNK>``, in a text of so many sentences."""
        tokens = int(self.counts.sum()) - 2 * sentences
        return int(self.counts[UNKNOWN_ID]) / tokens if tokens else 0.0

    def perplexity_of(self, other: "Frequencies") -> float:
        """Return the perplexity of a text with target counts ``other`` under these frequencies: the unigram model.

        A sentence's end is a target, its beginning is not, as for the forward LM; for the backward LM the two
        change places and the figure is the same.
        """
        kept = np.arange(len(self.counts)) != START_ID
        smoothed = self.counts[kept] + 1.0
        nats = -(other.counts[kept] * np.log(smoothed / smoothed.sum())).sum()
        return math.exp(nats / max(other.counts[kept].sum(), 1))


def target_frequencies(corpus: Corpus, pieces: Pieces, vocabulary: Vocabulary) -> Frequencies:
    """Count the targets of some pieces of a corpus."""
    of_type = count_types(corpus, pieces)
    counts = np.bincount(vocabulary.ids(corpus.all_type_texts), weights=of_type, minlength=len(vocabulary))
    counts[[START_ID, END_ID]] += len(pieces)
    return Frequencies(counts.astype(np.int64))


def count_types(corpus: Corpus, pieces: Pieces) -> NDArray[np.int64]:
    """Count how often each word type stands in some pieces of a corpus."""
    counts = np.zeros(corpus.info.types, dtype=np.int64)
    # Neighbouring pieces form runs, which are counted at once.
    breaks = np.flatnonzero(pieces.starts[1:] != pieces.ends[:-1]) + 1
    for start, end in zip(
        pieces.starts[np.concatenate(([0], breaks))] if len(pieces) else [],
        pieces.ends[np.concatenate((breaks - 1, [len(pieces) - 1]))] if len(pieces) else [],
        strict=True,
    ):
        for first in range(start, end, _COUNTED_AT_ONCE):
            part = corpus.tokens[first : min(first + _COUNTED_AT_ONCE, end)]
            if len(part) < len(counts):
                ids, part_counts = np.unique(part, return_counts=True)
                counts[ids] += part_counts
            else:
                counts += np.bincount(part, minlength=len(counts))
    return counts
