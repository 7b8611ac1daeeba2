"""A text as streams without end, as bilm-tf reads it: sentence after sentence, across the edges of batches."""

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import UNROLL_STEPS
from elmo_cli.text.corpus import Corpus
from elmo_cli.training.batches import Pieces

STREAM_TOKENS = 128 * UNROLL_STEPS  # a step by default: bilm-tf's 128 streams
START, END, FIRST_TYPE = 0, 1, 2  # ids in a window: the marks, and from here on the corpus's word types


def stream_count(batch_tokens: int) -> int:
    """Return how many streams make up a step of so many tokens, at least one."""
    return max(1, batch_tokens // UNROLL_STEPS)


def stream_steps(pieces: Pieces, batch_tokens: int) -> int:
    """Return the steps in which streams read as many tokens as there are, a mark for each sentence among them."""
    return max(1, (pieces.token_count + len(pieces)) // (stream_count(batch_tokens) * UNROLL_STEPS))


class StreamReader:
    """The streams of one direction. All take their next sentence from one pool, which is shuffled anew each time round.

    A sentence ``w1 .. wn`` is read as ``<S> w1 .. wn`` with the targets ``w1 .. wn </S>``; backward as
    ``</S> wn .. w1`` with the targets ``wn .. w1 <S>``.

    Args:
        corpus: holds the tokens.
        pieces: of this corpus, at least one.
        streams: to read at once.
        seed: of the run.
        backward: whether sentences are read from their ends.
    """

    def __init__(self, corpus: Corpus, pieces: Pieces, streams: int, *, seed: int, backward: bool) -> None:
        self.corpus = corpus
        self.pieces = pieces
        self.seed = seed
        self.backward = backward
        self._taken = 0  # sentences, by all streams
        self._piece = np.full(streams, -1, dtype=np.int64)  # that each stream is in; -1 before the first
        self._read = np.zeros(streams, dtype=np.int64)  # positions of it
        self._round, self._order = -1, np.zeros(0, dtype=np.int64)

    def window(self, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Read on; return the ids read and those to predict, both [steps, streams].

        The streams take their sentences in the order of their numbers, as each comes to need one.
        """
        inputs = np.empty((steps, len(self._piece)), dtype=np.int64)
        targets = np.empty_like(inputs)
        for stream in range(len(self._piece)):
            filled = 0
            while filled < steps:
                piece, read = int(self._piece[stream]), int(self._read[stream])
                if piece < 0 or read > self.pieces.ends[piece] - self.pieces.starts[piece]:
                    piece, read = self._next_piece(), 0
                ids = self._ids(piece)[read : read + steps - filled + 1]
                count = len(ids) - 1
                inputs[filled : filled + count, stream] = ids[:-1]
                targets[filled : filled + count, stream] = ids[1:]
                filled += count
                self._piece[stream], self._read[stream] = piece, read + count
        return inputs, targets

    def state(self) -> dict[str, NDArray[np.int64]]:
        """Return where the streams are."""
        return {"taken": np.array([self._taken]), "piece": self._piece.copy(), "read": self._read.copy()}

    def load_state(self, state: dict[str, NDArray[np.int64]]) -> None:
        """Go to where `state` was taken."""
        self._taken = int(state["taken"][0])
        self._piece, self._read = state["piece"].copy(), state["read"].copy()

    def _next_piece(self) -> int:
        number, place = divmod(self._taken, len(self.pieces))
        if number != self._round:
            # A third number keeps these orders apart from those of other parts of a run.
            random = np.random.default_rng([self.seed, number, 1 + self.backward])
            self._round, self._order = number, random.permutation(len(self.pieces))
        self._taken += 1
        return int(self._order[place])

    def _ids(self, piece: int) -> NDArray[np.int64]:
        """Return the ids of a piece with its marks, in reading order."""
        tokens = self.corpus.tokens[self.pieces.starts[piece] : self.pieces.ends[piece]].astype(np.int64) + FIRST_TYPE
        marked = np.concatenate(([START], tokens, [END]))
        return marked[::-1] if self.backward else marked
