"""Dropout whose masks come from a generator of its own, so that a training step can be repeated exactly."""

import torch
from torch import Tensor, nn


class SeededDropout(nn.Module):
    """Inverted dropout: while training, zero each value with probability ``rate`` and scale up the others.

    Args:
        rate: probability of zero, in [0, 1).
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate
        self.generator: torch.Generator | None = None

    def seed(self, seed: int, device: torch.device) -> None:
        """Start the masks from ``seed``, whatever was drawn before."""
        if self.generator is None or self.generator.device != device:
            self.generator = torch.Generator(device)
        self.generator.manual_seed(seed)

    def forward(self, x: Tensor) -> Tensor:
        """Return ``x`` with a fresh mask applied, or ``x`` itself when not training."""
        if not self.training or self.rate == 0:
            return x
        mask = torch.empty_like(x).bernoulli_(1 - self.rate, generator=self.generator)
        return x * mask.div_(1 - self.rate)
