"""What a language model gives to each token of a text, under the full softmax, in bounded memory and in input order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_cli.bilm.batching import read_windows, split_by_budget
from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.bilm.packing import pack
from elmo_cli.errors import ModelError
from elmo_cli.storage.model_dir import ModelConfig, read_vocabulary, require_softmax
from elmo_cli.storage.weights import load_language_model
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START, character_ids
from elmo_cli.text.vocabulary import UNKNOWN_ID, Vocabulary

BATCH_TOKENS: Final = 4096  # through the LSTMs at once, markers included
_WINDOW_BATCHES: Final = 4  # read ahead and sorted by length
_WINDOW_SENTENCES: Final = 4096


@dataclass(frozen=True, slots=True)
class SentenceLosses:
    """Negative log-likelihoods of a sentence of n tokens, in nats.

    Attributes:
        forward: float64 [n + 1]: of the tokens and ``</S>``, each predicted from all before it.
        backward: float64 [n + 1]: of ``<S>`` and the tokens, each predicted from all after it.
        known: bool [n]: whether each token is in the vocabulary; the others are predicted as ``<UNK>``.
    """

    forward: NDArray[np.float64]
    backward: NDArray[np.float64]
    known: NDArray[np.bool_]


_NOTHING: Final = SentenceLosses(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))


@torch.no_grad()
def batch_losses(model: LanguageModel, batch: Batch, device: torch.device) -> list[SentenceLosses]:
    """Return the losses of each sentence of a batch, in its order.

    The logits of the whole vocabulary are held for a block of targets at a time.
    """
    forward, backward = model.losses(batch.to(device))
    packing = pack(batch.lengths)
    # The packed row first + k follows row previous[k] of its sentence: it is predicted forward, the other backward.
    first = packing.sentence_count
    nats = np.zeros((2, len(batch.tokens)))
    nats[0, packing.order[first:].numpy()] = forward.cpu().numpy()
    nats[1, packing.order[packing.previous].numpy()] = backward.cpu().numpy()
    known = batch.targets.cpu().numpy() != UNKNOWN_ID
    found, start = [], 0
    for length in batch.lengths:
        last = start + length - 1
        found.append(SentenceLosses(nats[0, start + 1 : last + 1], nats[1, start:last], known[start + 1 : last]))
        start = last + 1
    return found


class Predictor:
    """Lets a language model predict the tokens of sentences.

    A sentence's losses depend on the sentence alone: batches change nothing but the rounding of float32.

    Args:
        model: in inference mode; its weights must not change afterwards.
        vocabulary: of its softmax.
        device: to compute on.
        batch_tokens: tokens that go through the LSTMs at once, markers included, at most (one sentence may be longer).
    """

    def __init__(
        self,
        model: LanguageModel,
        vocabulary: Vocabulary,
        device: torch.device,
        *,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self.model = model.to(device)
        self.model.bilm.prepare()
        self.vocabulary = vocabulary
        self.device = device
        self.batch_tokens = batch_tokens

    def losses(self, sentences: Iterable[Sequence[str]]) -> Iterator[SentenceLosses]:
        """Yield the losses of each sentence, in order, reading no more than a window ahead.

        A sentence of no tokens, such as an empty line, predicts nothing, not even its marks.

        Raises:
            ModelError: a loss is not a number.
        """
        sizes = {"max_tokens": _WINDOW_BATCHES * self.batch_tokens, "max_sentences": _WINDOW_SENTENCES}
        for window in read_windows(sentences, **sizes):
            yield from self._window_losses(window)

    def _window_losses(self, window: list[Sequence[str]]) -> list[SentenceLosses]:
        found = [_NOTHING] * len(window)
        # Of like length; those of no tokens are left out.
        order = sorted((n for n, sentence in enumerate(window) if sentence), key=lambda n: len(window[n]))
        for numbers in split_by_budget(order, [len(window[number]) for number in order], self.batch_tokens):
            batch = make_batch(
                [window[number] for number in numbers],
                self.vocabulary,
                self.model.bilm.config.char_cnn.max_characters,
            )
            for number, losses in zip(numbers, batch_losses(self.model, batch, self.device), strict=True):
                found[number] = losses
        for losses in found:
            if not (np.isfinite(losses.forward).all() and np.isfinite(losses.backward).all()):
                raise ModelError(
                    "the model gives a word a probability that is no number",
                    fix="use another model: the training of this one has diverged",
                )
        return found


def make_batch(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, max_characters: int) -> Batch:
    """Return sentences as what a language model reads and predicts.

    Args:
        sentences: tokens of each.
        vocabulary: of the softmax; types outside are predicted as ``<UNK>``, but read as they are spelled.
        max_characters: ids a token, of the model.
    """
    marked = [(SENTENCE_START, *sentence, SENTENCE_END) for sentence in sentences]
    # Sorted by length, so that short words do not pay for the padding of long ones; then by text, so that the order
    # never depends on hashing.
    types = sorted({token for sentence in marked for token in sentence}, key=lambda token: (len(token), token))
    row = {text: number for number, text in enumerate(types)}
    tokens = np.fromiter((row[token] for sentence in marked for token in sentence), dtype=np.int64)
    return Batch(
        chars=torch.from_numpy(character_ids(types, max_characters)),
        tokens=torch.from_numpy(tokens),
        targets=torch.from_numpy(vocabulary.ids(types)[tokens]),
        lengths=tuple(map(len, marked)),
    )


def load_predictor(
    folder: Path, config: ModelConfig, device: torch.device, *, batch_tokens: int = BATCH_TOKENS
) -> Predictor:
    """Return what predicts with the model of a folder.

    Raises:
        ModelError: the model has no softmax or no vocabulary, or its files are damaged.
    """
    require_softmax(folder, config)
    vocabulary = read_vocabulary(folder, config)
    return Predictor(load_language_model(folder, config), vocabulary, device, batch_tokens=batch_tokens)
