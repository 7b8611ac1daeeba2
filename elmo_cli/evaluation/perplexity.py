"""Perplexity under the full softmax: exp of the mean negative log-likelihood, in nats a predicted token."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.evaluation.losses import Predictor, SentenceLosses, batch_losses
from elmo_cli.reporting import Progress
from elmo_cli.text.characters import token_bytes


@dataclass(frozen=True, slots=True)
class Perplexity:
    """How well a biLM predicts a text.

    Attributes:
        forward_nats: mean negative log-likelihood of the forward targets (tokens and ``</S>``).
        backward_nats: the same of the backward targets (tokens and ``<S>``).
        targets: predictions a direction.
        tokens: tokens of the text.
        unknown: tokens that are outside the vocabulary and were predicted as ``<UNK>``.
        text_bytes: of the tokens in UTF-8, and one more for each, which is the space behind it or the line's end;
            None where the text was not at hand.
    """

    forward_nats: float
    backward_nats: float
    targets: int
    tokens: int
    unknown: int
    text_bytes: int | None = None

    @property
    def forward(self) -> float:
        """Perplexity of the forward LM."""
        return _exp(self.forward_nats)

    @property
    def backward(self) -> float:
        """Perplexity of the backward LM."""
        return _exp(self.backward_nats)

    @property
    def both(self) -> float:
        """Geometric mean of the two, the figure that bilm-tf reports."""
        return _exp((self.forward_nats + self.backward_nats) / 2)

    @property
    def oov_rate(self) -> float:
        """Share of tokens outside the vocabulary."""
        return self.unknown / self.tokens if self.tokens else 0.0

    @property
    def sentences(self) -> int:
        """Sentences of at least one token; each has one target more than it has tokens."""
        return self.targets - self.tokens

    @property
    def bits_per_byte(self) -> float | None:
        """Bits that the text takes, in the mean of both directions, for each of its bytes.

        A word outside the vocabulary takes the bits of ``<UNK>``, which do not say which word it is.
        """
        if not self.text_bytes:
            return None
        nats = (self.forward_nats + self.backward_nats) / 2 * self.targets
        return nats / math.log(2) / self.text_bytes

    def to_json(self) -> dict[str, float | int]:
        """Return the figures under the names that the commands print."""
        figures: dict[str, float | int] = {
            "forward": self.forward,
            "backward": self.backward,
            "both": self.both,
            "targets": self.targets,
            "tokens": self.tokens,
            "oov_rate": self.oov_rate,
        }
        if self.bits_per_byte is not None:
            figures["bits_per_byte"] = self.bits_per_byte
        return figures


@dataclass(slots=True)
class Tally:
    """Sums over sentences, in float64, that make up a perplexity."""

    forward_nats: float = 0.0
    backward_nats: float = 0.0
    targets: int = 0
    tokens: int = 0
    unknown: int = 0

    def add(self, losses: SentenceLosses) -> None:
        """Count a sentence."""
        self.forward_nats += float(losses.forward.sum())
        self.backward_nats += float(losses.backward.sum())
        self.targets += len(losses.forward)
        self.tokens += len(losses.known)
        self.unknown += int((~losses.known).sum())

    def perplexity(self, text_bytes: int | None = None) -> Perplexity:
        """Return the perplexity of all sentences counted."""
        count = max(self.targets, 1)
        means = (self.forward_nats / count, self.backward_nats / count)
        return Perplexity(*means, self.targets, self.tokens, self.unknown, text_bytes)


def measure_perplexity(model: LanguageModel, batches: Iterable[Batch], device: torch.device) -> Perplexity:
    """Measure a model on batches of whole sentences, without dropout; the model is left in the mode it was in."""
    was_training = model.training
    model.eval()
    tally = Tally()
    for batch in batches:
        for losses in batch_losses(model, batch, device):
            tally.add(losses)
    model.train(was_training)
    return tally.perplexity()


def text_perplexity(
    predictor: Predictor, sentences: Iterable[list[str]], progress: Progress, *, tokens_before: int = 0
) -> Perplexity:
    """Measure a model on a text, in constant memory; sentences of no tokens are passed over.

    Args:
        predictor: holds the model.
        sentences: tokens of each.
        progress: told the tokens done.
        tokens_before: done in earlier texts.

    Raises:
        ModelError: a loss is not a number.
    """
    tally, text_bytes = Tally(), 0

    def measured() -> Iterable[list[str]]:
        nonlocal text_bytes
        for sentence in sentences:
            text_bytes += sum(len(token_bytes(token)) + 1 for token in sentence)
            yield sentence

    for losses in predictor.losses(measured()):
        tally.add(losses)
        progress.update(tokens_before + tally.tokens)
    return tally.perplexity(text_bytes)


def total_perplexity(parts: Iterable[Perplexity]) -> Perplexity:
    """Return the perplexity of several texts together: of all their predictions, not a mean of their perplexities."""
    parts = list(parts)
    total = Tally(
        sum(part.forward_nats * part.targets for part in parts),
        sum(part.backward_nats * part.targets for part in parts),
        sum(part.targets for part in parts),
        sum(part.tokens for part in parts),
        sum(part.unknown for part in parts),
    )
    sizes = [part.text_bytes for part in parts if part.text_bytes is not None]
    return total.perplexity(sum(sizes) if len(sizes) == len(parts) else None)


def _exp(nats: float) -> float:
    """Return exp, infinity where it does not fit a float."""
    return math.exp(nats) if nats < 700 else math.inf
