"""Equation (1) of Peters et al. (2018): a task's own weighted sum of the layers."""

from typing import Final, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

LayerNorm = Literal["none", "token", "batch"]
EPSILON: Final = 1e-13  # AllenNLP's since 1.0; it and bilm-tf had 1e-12 before


class ScalarMix(nn.Module):
    """``gamma * sum_k softmax(w)_k h_k``, with w starting at 0 (the average) and gamma at 1.

    Args:
        layer_count: number of layers, the char CNN's among them.
        layer_norm: what is done to each layer first. ``none``; ``token``: each token's vector is brought to mean 0 and
            variance 1, which depends on the token alone; ``batch``: one mean and one variance over all rows and all
            numbers of the layer, without gain or bias, as bilm-tf and AllenNLP do, so that a token's vector depends
            on what stands beside it. bilm-tf takes the statistics over tokens without the sentence markers, AllenNLP
            with them: give layers without or with the markers' rows.
        epsilon: added to the variance.
    """

    def __init__(self, layer_count: int, *, layer_norm: LayerNorm = "none", epsilon: float = EPSILON) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(layer_count))
        self.gamma = nn.Parameter(torch.ones(()))
        self.layer_norm = layer_norm
        self.epsilon = epsilon

    @property
    def s(self) -> Float[Tensor, " layers"]:
        """The layers' weights, which sum to 1."""
        return torch.softmax(self.w, dim=0)

    def forward(self, layers: Float[Tensor, "layers tokens dim"]) -> Float[Tensor, "tokens dim"]:
        """Return one vector a token.

        Raises:
            ValueError: there are more or fewer layers than weights.
        """
        if len(layers) != len(self.w):
            raise ValueError(f"there are {len(layers)} layers and {len(self.w)} weights")
        return weighted_sum(layers, self.s, self.gamma, layer_norm=self.layer_norm, epsilon=self.epsilon)


def weighted_sum(
    layers: Float[Tensor, "layers tokens dim"],
    s: Float[Tensor, " layers"],
    gamma: Float[Tensor, ""] | float,
    *,
    layer_norm: LayerNorm = "none",
    epsilon: float = EPSILON,
) -> Float[Tensor, "tokens dim"]:
    """Return ``gamma * sum_k s_k h_k``, each layer normalised first as `ScalarMix` tells."""
    return gamma * torch.einsum("k,ktd->td", s, _normalised(layers, layer_norm, epsilon))


def _normalised(
    layers: Float[Tensor, "layers tokens dim"], layer_norm: LayerNorm, epsilon: float
) -> Float[Tensor, "layers tokens dim"]:
    if layer_norm == "none" or layers.shape[1] == 0:
        return layers
    axes = (2,) if layer_norm == "token" else (1, 2)
    centred = layers - layers.mean(dim=axes, keepdim=True)
    variance = centred.square().mean(dim=axes, keepdim=True)
    return centred / (variance + epsilon).sqrt()
