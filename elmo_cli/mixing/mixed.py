"""A mix and a head on top of it, learned together: `ScalarMix`, dropout, head."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_cli.bilm.dropout import SeededDropout
from elmo_cli.bilm.scalar_mix import ScalarMix


@dataclass(frozen=True, slots=True)
class LabelledBatch:
    """Some sentences end to end.

    Attributes:
        layers: of their tokens.
        lengths: tokens of each sentence.
        labels: number of each token's label, or of each sentence's.
    """

    layers: Float[Tensor, "layers tokens dim"]
    lengths: Sequence[int]
    labels: Int[Tensor, " units"]


class MixedModel(nn.Module):
    """Layers to the scores of labels.

    Args:
        mix: of the layers.
        head: from mixed vectors to logits.
        dropout: of the mixed vectors, while learning.
        strength: lambda, what the squared length of w is multiplied with in the loss.
    """

    def __init__(self, mix: ScalarMix, head: nn.Module, *, dropout: float, strength: float) -> None:
        super().__init__()
        self.mix = mix
        self.head = head
        self.dropout = SeededDropout(dropout)
        self.strength = strength

    def forward(
        self, layers: Float[Tensor, "layers tokens dim"], lengths: Sequence[int]
    ) -> Float[Tensor, "units labels"]:
        """Return the logits of each token, or of each sentence."""
        logits: Tensor = self.head(self.dropout(self.mix(layers)), lengths)
        return logits

    def loss(self, batch: LabelledBatch) -> Float[Tensor, ""]:
        """Return the mean cross-entropy in nats a label, with ``lambda * |w|^2``: Peters et al. (2018), section 3.2."""
        logits = self(batch.layers, batch.lengths)
        return nn.functional.cross_entropy(logits, batch.labels) + self.strength * self.mix.w.square().sum()

    def seed_dropout(self, seed: int) -> None:
        """Start all dropout masks from a seed."""
        parts = [module for module in self.modules() if isinstance(module, SeededDropout)]
        for number, part in enumerate(parts):
            part.seed(seed + number, torch.device("cpu"))


def summed_loss(logits: Float[Tensor, "units labels"], gold: Sequence[int], left_out: int) -> float:
    """Return the sum of the cross-entropies in nats, summed in float64; units with the label ``left_out`` add none."""
    labels = torch.tensor(gold, dtype=torch.int64)
    losses = nn.functional.cross_entropy(logits, labels, ignore_index=left_out, reduction="none")
    return losses.double().sum().item()
