"""Highway layers between the convolutions and the projection (Srivastava et al. 2015)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

CARRY_BIAS = -2.0  # bilm-tf's start: the gate is mostly closed, so that the input passes through


class Highway(nn.Module):
    """One highway layer, with the sense of the gate that bilm-tf has.

    ``g = sigmoid(x W_gate + b_gate)``; ``y = g * relu(x W_transform + b_transform) + (1 - g) * x``.

    The gate multiplies the *transformed* value, although bilm-tf calls it ``carry``. AllenNLP computes
    ``g x + (1 - g) f(x)`` instead, so its gate has the opposite sign.

    Args:
        dim: width of input and output.
    """

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.gate = nn.Linear(dim, dim)
        self.transform = nn.Linear(dim, dim)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights as bilm-tf does: N(0, 1/dim), biases 0, the gate's bias `CARRY_BIAS`."""
        for linear in (self.gate, self.transform):
            nn.init.normal_(linear.weight, std=linear.in_features**-0.5, generator=generator)
            nn.init.zeros_(linear.bias)
        nn.init.constant_(self.gate.bias, CARRY_BIAS)

    def forward(self, x: Float[Tensor, "types dim"]) -> Float[Tensor, "types dim"]:
        """Mix the input with its transformation."""
        return torch.lerp(x, torch.relu(self.transform(x)), torch.sigmoid(self.gate(x)))
