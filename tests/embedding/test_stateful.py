"""State carried from batch to batch as bilm-tf carries it, against the float64 twin made to carry it."""

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import torch
from twin import Options, Twin, Vector, Weights, random_weights
from weights import build_bilm

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.embedding.stateful import StatefulEmbedder

# Rounding to float32 is 6e-8 of a value; sums, and what a carried state adds to them, take it to 1e-6.
FLOAT32 = 1e-5
ALL = LayerChoice((0, 1, 2))
CPU = torch.device("cpu")

# Embedded in two calls. In batches of 2 or 3 the last one of a call may be smaller: rows lie idle and go on later.
CALLS = [
    [
        ["The", "ferry", "left", "at", "7:45", "."],
        ["one"],
        ["a", "much", "longer", "sentence", "than", "the", "others", "are", "."],
        ["It", "was", "late", "again", "."],
        [],
    ],
    [["你好", "", "<S>", "x" * 60], ["The", "ferry", "left", "."], ["short"], ["The", "ferry", "left", "."]],
]


class StatefulTwin(Twin):
    """A twin whose LSTMs start, in each row of a batch, where the row's sentence before ended."""

    def __init__(self, options: Options, weights: Weights) -> None:
        super().__init__(options, weights)
        self.token_vector = cache(self.token_vector)
        self._row = 0
        self._states: dict[tuple[int, int, int], tuple[Vector, Vector]] = {}

    def initial_state(self, direction: int, layer: int) -> tuple[Vector, Vector]:
        fresh = super().initial_state(direction, layer)
        return self._states.get((self._row, direction, layer), fresh)

    def lstm_step(
        self, direction: int, layer: int, *, x: Vector, state: tuple[Vector, Vector]
    ) -> tuple[Vector, Vector]:
        state = super().lstm_step(direction, layer, x=x, state=state)
        self._states[self._row, direction, layer] = state
        return state

    def embed(self, sentences: list[list[str]], batch_size: int) -> Iterator[Vector]:
        """Yield the layers [L + 1, n, 2P] of each sentence, the k-th of a batch in row k."""
        for number, sentence in enumerate(sentences):
            self._row = number % batch_size
            yield self.layers(sentence)


@pytest.fixture(scope="module")
def weights(tiny_options: Options) -> Weights:
    return random_weights(tiny_options, seed=4, scale=1.5)


@pytest.fixture(scope="module")
def bilm(tiny_options: Options, weights: Weights) -> BiLM:
    return build_bilm(tiny_options, weights)


def assert_layers_equal(found: list[torch.Tensor], expected: list[Vector]) -> None:
    for vectors, layers in zip(found, expected, strict=True):
        np.testing.assert_allclose(vectors.transpose(0, 1).numpy(), layers, rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_vectors_equal_those_of_a_twin_that_carries_state(
    bilm: BiLM, tiny_options: Options, weights: Weights, batch_size: int, threads: int
) -> None:
    torch.set_num_threads(threads)
    embedder, twin = StatefulEmbedder(bilm, CPU, batch_size), StatefulTwin(tiny_options, weights)
    for sentences in CALLS:
        assert_layers_equal(list(embedder.embed(sentences, ALL)), list(twin.embed(sentences, batch_size)))


def test_the_rows_of_a_batch_keep_their_places_whatever_their_lengths(
    bilm: BiLM, tiny_options: Options, weights: Weights
) -> None:
    """Rows are sorted by length inside; each of these batches is sorted differently."""
    embedder, twin = StatefulEmbedder(bilm, CPU, 3), StatefulTwin(tiny_options, weights)
    lengths = [(1, 2, 3), (3, 2, 1), (2, 3, 1), (2, 2, 2), (1, 3, 2)]
    sentences = [["ab", "c", "de"][:length] for batch in lengths for length in batch]
    assert_layers_equal(list(embedder.embed(sentences, ALL)), list(twin.embed(sentences, 3)))


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_vectors_without_carried_state_are_others(bilm: BiLM, batch_size: int) -> None:
    """So that the comparisons above would notice a state that is not carried."""
    stateful, plain = StatefulEmbedder(bilm, CPU, batch_size), Embedder(bilm, CPU)
    first, second = (
        [(a - b).abs().max().item() for a, b in zip(carried, fresh, strict=True) if len(a)]
        for carried, fresh in ((list(stateful.embed(call, ALL)), list(plain.embed(call, ALL))) for call in CALLS)
    )
    assert max(first[:batch_size]) < FLOAT32  # the first batch starts at zero in both
    assert min(first[batch_size:] + second) > 1000 * FLOAT32


def test_batch_sizes_give_other_vectors(bilm: BiLM) -> None:
    """So that the comparisons above would notice rows that are taken for one another."""
    found = [list(StatefulEmbedder(bilm, CPU, size).embed(CALLS[0], ALL))[3] for size in (1, 2, 3)]
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (found[a] - found[b]).abs().max() > 1000 * FLOAT32


def test_layer_0_carries_nothing(bilm: BiLM) -> None:
    stateful = list(StatefulEmbedder(bilm, CPU, 1).embed(CALLS[0], LayerChoice((0,))))
    plain = list(Embedder(bilm, CPU).embed(CALLS[0], LayerChoice((0,))))
    torch.testing.assert_close(stateful, plain, rtol=0, atol=FLOAT32)


def test_a_new_embedder_starts_at_zero(bilm: BiLM) -> None:
    first, second = (list(StatefulEmbedder(bilm, CPU, 2).embed(CALLS[0], ALL)) for _ in range(2))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_no_sentences_leave_the_state_alone(bilm: BiLM) -> None:
    through, interrupted = StatefulEmbedder(bilm, CPU, 2), StatefulEmbedder(bilm, CPU, 2)
    list(through.embed(CALLS[0], ALL))
    list(interrupted.embed(CALLS[0], ALL))
    assert list(interrupted.embed([], ALL)) == []
    expected, found = (list(each.embed(CALLS[1], ALL)) for each in (through, interrupted))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


def test_sentences_and_tokens_are_counted(bilm: BiLM) -> None:
    embedder = StatefulEmbedder(bilm, CPU, 2)
    for sentences in CALLS:
        list(embedder.embed(sentences, LayerChoice(None)))
    counts = embedder.counts
    assert (counts.sentences, counts.tokens, counts.cut_tokens) == (9, 34, 1)
