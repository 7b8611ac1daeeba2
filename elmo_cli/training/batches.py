"""A prepared corpus to batches: sentences of like length together, by a budget of tokens, in a seeded order."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_cli.bilm.batching import split_by_budget
from elmo_cli.bilm.bilm import MARKERS_A_SENTENCE
from elmo_cli.bilm.language_model import Batch
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START, character_ids
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import END_ID, START_ID, Vocabulary

_BLOCK = 512  # neighbouring pieces that stay together on the first level of the shuffle, so that reads are in runs
_BLOCKS_A_BUFFER = 64  # blocks thrown together and shuffled within: about 32,000 pieces, 0.7 M tokens


@dataclass(frozen=True, slots=True)
class Pieces:
    """Sentences to train on: where each starts and ends in the corpus's tokens.

    A sentence longer than the limit is cut into several pieces, each read as a sentence of its own; none is dropped.

    Attributes:
        sentences: number of sentences that the pieces are of.
        cut_sentences: those of several pieces.
    """

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    sentences: int
    cut_sentences: int

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each piece, without markers."""
        return self.ends - self.starts

    @property
    def token_count(self) -> int:
        """Tokens of all pieces."""
        return int(self.lengths.sum())


def cut_pieces(corpus: Corpus, sentences: NDArray[np.int64], max_tokens: int) -> Pieces:
    """Return the pieces of the given sentences, in order; sentences without a token have none."""
    starts, ends = corpus.sentence_starts[sentences], corpus.sentence_ends[sentences]
    parts = -(-(ends - starts) // max_tokens)
    number = np.arange(int(parts.sum())) - np.repeat(parts.cumsum() - parts, parts)  # of a piece in its sentence
    piece_starts = np.repeat(starts, parts) + number * max_tokens
    piece_ends = np.minimum(piece_starts + max_tokens, np.repeat(ends, parts))
    return Pieces(piece_starts, piece_ends, sentences=int((parts > 0).sum()), cut_sentences=int((parts > 1).sum()))


def epoch_batches(
    lengths: NDArray[np.int64], batch_tokens: int, *, seed: int, epoch: int
) -> Iterator[NDArray[np.int64]]:
    """Yield the piece numbers of each batch of one epoch, every piece once.

    Blocks of neighbouring pieces are shuffled, buffers of blocks are shuffled within and cut into batches of like
    length, and the batches of a buffer are shuffled. The order depends on nothing but the arguments.

    Args:
        lengths: tokens of each piece.
        batch_tokens: tokens a batch, markers included, at most (one piece may be longer).
        seed: of the whole run.
        epoch: counted from 0.
    """
    random = np.random.default_rng([seed, epoch])
    blocks = random.permutation(-(-len(lengths) // _BLOCK))
    for first in range(0, len(blocks), _BLOCKS_A_BUFFER):
        members = [
            np.arange(b * _BLOCK, min((b + 1) * _BLOCK, len(lengths))) for b in blocks[first:][:_BLOCKS_A_BUFFER]
        ]
        pieces = random.permutation(np.concatenate(members))
        pieces = pieces[np.argsort(lengths[pieces], kind="stable")]
        batches = list(split_by_budget(pieces, lengths[pieces], batch_tokens))
        for number in random.permutation(len(batches)):
            yield batches[number]


class BatchMaker:
    """Turns piece numbers into a `Batch`.

    Args:
        corpus: holds the tokens.
        pieces: of this corpus.
        vocabulary: of the softmax; types outside are predicted as ``<UNK>``, but read as they are spelled.
        max_characters: ids a token, of the model.
    """

    def __init__(self, corpus: Corpus, pieces: Pieces, vocabulary: Vocabulary, max_characters: int) -> None:
        self.corpus = corpus
        self.pieces = pieces
        self.max_characters = max_characters
        self.target_of_type = vocabulary.ids(corpus.all_type_texts)

    def __call__(self, numbers: NDArray[np.int64]) -> Batch:
        """Return the batch of the given pieces, in the given order."""
        starts, ends = self.pieces.starts[numbers], self.pieces.ends[numbers]
        runs = [self.corpus.tokens[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)]
        types, rows = np.unique(np.concatenate(runs), return_inverse=True)
        marked_lengths = ends - starts + MARKERS_A_SENTENCE
        marked_ends = marked_lengths.cumsum()
        first, last = marked_ends - marked_lengths, marked_ends - 1
        inner = np.ones(int(marked_ends[-1]), dtype=bool)
        inner[first] = inner[last] = False
        tokens = np.empty(len(inner), dtype=np.int64)
        tokens[first], tokens[last], tokens[inner] = 0, 1, rows + 2  # the markers are rows 0 and 1 of the characters
        targets = np.concatenate(([START_ID, END_ID], self.target_of_type[types]))[tokens]
        texts = [SENTENCE_START, SENTENCE_END, *self.corpus.type_texts(types.tolist())]
        return Batch(
            chars=torch.from_numpy(character_ids(texts, self.max_characters)),
            tokens=torch.from_numpy(tokens),
            targets=torch.from_numpy(targets),
            lengths=tuple(marked_lengths.tolist()),
        )
