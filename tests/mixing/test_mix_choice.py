"""A mix as a choice of layers: the embedder gives the sum of equation (1), of long sentences as of short ones."""

import numpy as np
import pytest
import torch

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.long_sentences import embed_long
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.storage.mix_file import MixWeights

CPU = torch.device("cpu")
ALL = LayerChoice((0, 1, 2))
SENTENCES = [["The", "ship", "sails"], ["你好"], [], [f"word{number % 7}" for number in range(40)]]
# Normalised numbers are rounded as coarsely as their deviation is small: 0.1 and more here.
FLOAT32 = 1e-5


def mixed(layers: torch.Tensor, mix: MixWeights) -> torch.Tensor:
    """Return the mix of [tokens, layers, dim] in float64, with each token's layers normalised first if asked."""
    x = layers.double()
    if mix.layer_norm:
        x = x - x.mean(dim=2, keepdim=True)
        x = x / x.square().mean(dim=2, keepdim=True).sqrt()
    return mix.gamma * sum(s * x[:, layer] for layer, s in enumerate(mix.s))


@pytest.mark.parametrize("layer_norm", [False, True])
def test_the_embedder_gives_the_sum(tiny_bilm: BiLM, layer_norm: bool) -> None:
    mix = MixWeights((0.2, 0.5, 0.3), 1.3, layer_norm)
    choice = LayerChoice(None, mix)
    every = list(Embedder(tiny_bilm, CPU).embed(SENTENCES, ALL))
    found = list(Embedder(tiny_bilm, CPU).embed(SENTENCES, choice))
    for vectors, layers in zip(found, every, strict=True):
        assert vectors.shape[1:] == choice.row_shape(layers.shape[-1])
        np.testing.assert_allclose(vectors.numpy(), mixed(layers, mix).numpy(), atol=FLOAT32)


@pytest.mark.parametrize("layer_norm", [False, True])
@pytest.mark.parametrize("piece_tokens", [1, 7, 100])
def test_a_sentence_in_pieces_gives_the_sum(tiny_bilm: BiLM, layer_norm: bool, piece_tokens: int) -> None:
    mix = MixWeights((0.2, 0.5, 0.3), 1.3, layer_norm)
    embedder = Embedder(tiny_bilm, CPU)
    marked = ["<S>", *SENTENCES[3], "</S>"]
    found = embed_long(tiny_bilm, embedder._look_up, marked, LayerChoice(None, mix), piece_tokens=piece_tokens)
    [layers] = embedder.embed([SENTENCES[3]], ALL)
    np.testing.assert_allclose(found.numpy(), mixed(layers, mix).numpy(), atol=FLOAT32)
