"""From all layers of a sentence's tokens to the vectors that were asked for."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.scalar_mix import weighted_sum
from elmo_cli.embedding.selection import LayerChoice, pooled_shape
from elmo_cli.storage.mix_file import MixWeights


def choose_layers(layers: Float[Tensor, "layers tokens dim"], choice: LayerChoice) -> Float[Tensor, "tokens ..."]:
    """Return [tokens, dim], or [tokens, layers, dim] where the choice keeps several layers apart."""
    if choice.mix is not None:
        return mix_layers(layers, choice.mix)
    if choice.indices is None:
        return layers.mean(dim=0)
    if len(choice.indices) == 1:
        return layers[choice.indices[0]].clone()  # a view would keep all layers in memory
    return layers[list(choice.indices)].transpose(0, 1)


def mix_layers(layers: Float[Tensor, "layers tokens dim"], mix: MixWeights) -> Float[Tensor, "tokens dim"]:
    """Return the learned sum of the layers.

    Raises:
        ValueError: there are more or fewer layers than weights.
    """
    if len(layers) != len(mix.s):
        raise ValueError(f"there are {len(layers)} layers and {len(mix.s)} weights")
    s = torch.tensor(mix.s, dtype=layers.dtype, device=layers.device)
    return weighted_sum(layers, s, mix.gamma, layer_norm="token" if mix.layer_norm else "none")


def take_tokens(vectors: Float[Tensor, "tokens ..."], numbers: Sequence[int]) -> Float[Tensor, "taken ..."]:
    """Return the vectors of the tokens with these numbers, from 0 on and rising; all of them as they are."""
    return vectors if len(numbers) == len(vectors) else vectors[list(numbers)]


def pool_tokens(vectors: Float[Tensor, "tokens ..."], how: str) -> Float[Tensor, "..."]:
    """Return one vector for a sentence: the mean or maximum over its tokens, both, or its first or last token's.

    A sentence of no tokens gives zeros, so that rows and lines stay in step.

    Args:
        vectors: of the sentence's tokens; the markers are not among them.
        how: one of `selection.POOLS` but ``none``; ``mean-max`` is the mean with the maximum behind it.
    """
    if len(vectors) == 0:
        return vectors.new_zeros(pooled_shape(tuple(vectors.shape[1:]), how))
    if how == "mean-max":
        return torch.cat((vectors.mean(dim=0), vectors.amax(dim=0)), dim=-1)
    if how == "mean":
        return vectors.mean(dim=0)
    if how == "max":
        return vectors.amax(dim=0)
    return vectors[0] if how == "first" else vectors[-1]
