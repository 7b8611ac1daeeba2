"""From all layers of a sentence's tokens to the vectors that were asked for."""

from jaxtyping import Float
from torch import Tensor

from elmo_cli.embedding.selection import LayerChoice


def choose_layers(layers: Float[Tensor, "layers tokens dim"], choice: LayerChoice) -> Float[Tensor, "tokens ..."]:
    """Return [tokens, dim], or [tokens, layers, dim] where the choice keeps several layers apart."""
    if choice.indices is None:
        return layers.mean(dim=0)
    if len(choice.indices) == 1:
        return layers[choice.indices[0]]
    return layers[list(choice.indices)].transpose(0, 1)


def pool_tokens(vectors: Float[Tensor, "tokens ..."], how: str) -> Float[Tensor, "..."]:
    """Return one vector for a sentence: the mean or maximum over its tokens, or its first or last token's.

    A sentence of no tokens gives zeros, so that rows and lines stay in step.

    Args:
        vectors: of the sentence's tokens; the markers are not among them.
        how: one of `selection.POOLS` but ``none``.
    """
    if len(vectors) == 0:
        return vectors.new_zeros(vectors.shape[1:])
    if how == "mean":
        return vectors.mean(dim=0)
    if how == "max":
        return vectors.amax(dim=0)
    return vectors[0] if how == "first" else vectors[-1]
