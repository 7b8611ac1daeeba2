"""Choosing layers and pooling tokens, against NumPy by hand."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.pooling import choose_layers, pool_tokens
from elmo_cli.embedding.selection import LayerChoice, parse_layers

# A mean of a few float32 numbers of size 1, added up in another order.
FLOAT32 = 1e-6

LAYERS, TOKENS, DIM = 3, 4, 6


@pytest.fixture(scope="module")
def layers() -> torch.Tensor:
    return torch.randn(LAYERS, TOKENS, DIM, generator=torch.Generator().manual_seed(1))


def test_average_is_the_mean_of_all_layers(layers: torch.Tensor) -> None:
    a, b, c = layers.numpy().astype(np.float64)
    found = choose_layers(layers, parse_layers("average", LAYERS))
    np.testing.assert_allclose(found.numpy(), (a + b + c) / 3, rtol=0, atol=FLOAT32)


@pytest.mark.parametrize(("text", "number"), [("top", 2), ("0", 0), ("1", 1), ("2", 2)])
def test_one_layer_is_a_vector_a_token(layers: torch.Tensor, text: str, number: int) -> None:
    assert torch.equal(choose_layers(layers, parse_layers(text, LAYERS)), layers[number])


@pytest.mark.parametrize(("text", "numbers"), [("all", (0, 1, 2)), ("0,2", (0, 2)), ("2,0", (2, 0))])
def test_several_layers_stand_side_by_side_in_the_order_asked_for(
    layers: torch.Tensor, text: str, numbers: tuple[int, ...]
) -> None:
    found = choose_layers(layers, parse_layers(text, LAYERS))
    assert found.shape == (TOKENS, len(numbers), DIM)
    for place, number in enumerate(numbers):
        assert torch.equal(found[:, place], layers[number])


@pytest.mark.parametrize("text", ["average", "top", "all", "1", "0,2", "2,1,0"])
def test_shape_of_a_row_is_known_beforehand(layers: torch.Tensor, text: str) -> None:
    choice = parse_layers(text, LAYERS)
    assert choose_layers(layers, choice).shape[1:] == choice.row_shape(DIM)


@pytest.mark.parametrize("text", ["average", "top", "1", "0,2"])
def test_embedder_gives_the_chosen_part_of_all_layers(tiny_bilm: BiLM, text: str) -> None:
    sentences = [["The", "ship", "sails"], ["你好"], []]
    embedder = Embedder(tiny_bilm, torch.device("cpu"))
    every = embedder.embed(sentences, LayerChoice((0, 1, 2)))
    choice = parse_layers(text, 3)
    expected = [choose_layers(vectors.transpose(0, 1), choice) for vectors in every]
    torch.testing.assert_close(list(embedder.embed(sentences, choice)), expected, rtol=0, atol=FLOAT32)


SHAPES = st.one_of(st.tuples(st.integers(1, 5), st.just(DIM)), st.tuples(st.integers(1, 5), st.just(2), st.just(DIM)))


@given(SHAPES, st.integers(0, 1000))
def test_pooling_takes_the_mean_maximum_first_or_last_of_the_tokens(shape: tuple[int, ...], seed: int) -> None:
    vectors = torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    tokens = list(vectors.numpy().astype(np.float64))
    expected = {
        "mean": sum(tokens) / len(tokens),
        "max": np.maximum.reduce(tokens),
        "first": tokens[0],
        "last": tokens[-1],
    }
    for how, value in expected.items():
        np.testing.assert_allclose(pool_tokens(vectors, how).numpy(), value, rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("how", ["mean", "max", "first", "last"])
@pytest.mark.parametrize("row_shape", [(DIM,), (2, DIM)])
def test_a_sentence_of_no_tokens_is_pooled_to_zeros(how: str, row_shape: tuple[int, ...]) -> None:
    pooled = pool_tokens(torch.ones(0, *row_shape), how)
    assert torch.equal(pooled, torch.zeros(row_shape))
