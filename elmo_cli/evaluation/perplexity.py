"""Perplexity under the full softmax: exp of the mean negative log-likelihood, in nats a predicted token."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.text.vocabulary import UNKNOWN_ID


@dataclass(frozen=True, slots=True)
class Perplexity:
    """How well a biLM predicts a text.

    Attributes:
        forward_nats: mean negative log-likelihood of the forward targets (tokens and ``</S>``).
        backward_nats: the same of the backward targets (tokens and ``<S>``).
        targets: predictions a direction.
        tokens: tokens of the text.
        unknown: tokens that are outside the vocabulary and were predicted as ``<UNK>``.
    """

    forward_nats: float
    backward_nats: float
    targets: int
    tokens: int
    unknown: int

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

    def to_json(self) -> dict[str, float | int]:
        """Return the figures under the names that the commands print."""
        return {
            "forward": self.forward,
            "backward": self.backward,
            "both": self.both,
            "targets": self.targets,
            "tokens": self.tokens,
            "oov_rate": self.oov_rate,
        }


@torch.no_grad()
def measure_perplexity(model: LanguageModel, batches: Iterable[Batch], device: torch.device) -> Perplexity:
    """Measure a model on batches of whole sentences; sums are kept in float64."""
    was_training = model.training
    model.eval()
    forward_sum = backward_sum = 0.0
    targets = tokens = unknown = 0
    for batch in batches:
        forward, backward = model.losses(batch.to(device))
        forward_sum += float(forward.cpu().double().sum())
        backward_sum += float(backward.cpu().double().sum())
        targets += len(forward)
        tokens += len(batch.tokens) - 2 * len(batch.lengths)
        unknown += int((batch.targets == UNKNOWN_ID).sum())
    model.train(was_training)
    count = max(targets, 1)
    return Perplexity(forward_sum / count, backward_sum / count, targets, tokens, unknown)


def _exp(nats: float) -> float:
    """Return exp, infinity where it does not fit a float."""
    return math.exp(nats) if nats < 700 else math.inf
