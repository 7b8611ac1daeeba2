"""The torch biLM against the slow float64 twin, over many shapes and awkward sentences."""

from copy import deepcopy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from sentence_batches import layers_of, make_batch
from tiny_options import FILTER_COUNT, TINY_OPTIONS
from twin import Options, Twin, Vector, Weights, random_weights
from weights import build_bilm, build_language_model

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.text.vocabulary import Vocabulary

# Same formulas in another order of summation: float64 leaves 1e-15, which a long exaggerated sentence takes to 1e-12.
SAME_FORMULAS = 1e-11
# Rounding to float32 is 6e-8 of a value; sums and values up to 7 take it to 4e-7, exaggerated weights to 4e-6.
FLOAT32 = 1e-5

# At this scale gates saturate and clips of 3 bite. The LSTMs are chaotic then: each step multiplies a difference.
EXAGGERATED = 4.0


def options_with(*absent: str, **changes: Any) -> Options:  # noqa: ANN401
    """Return the base options with some values changed, and the keys in ``absent`` left out."""
    options = deepcopy(TINY_OPTIONS)
    for part in options.values():
        part.update({name: value for name, value in changes.items() if name in part})
        for name in absent:
            part.pop(name, None)
    return options


CASES: dict[str, tuple[Options, float]] = {
    "base": (options_with(), 1.0),
    "clips-bite": (options_with(), EXAGGERATED),
    "clips-bite-no-skip": (options_with(use_skip_connections=False), EXAGGERATED),
    "no-highway": (options_with(n_highway=0), 1.0),
    "two-highways": (options_with(n_highway=2), 1.0),
    "tanh": (options_with(activation="tanh"), 1.0),
    "no-token-projection": (options_with(projection_dim=FILTER_COUNT, dim=24), 1.0),
    "no-lstm-projection": (options_with(projection_dim=16), EXAGGERATED),
    "no-projection-at-all": (options_with(projection_dim=FILTER_COUNT, dim=FILTER_COUNT), 1.0),
    "clips-absent": (options_with("cell_clip", "proj_clip"), EXAGGERATED),
    "clips-null": (options_with(cell_clip=None, proj_clip=None), 1.0),
    "tight-cell-clip-alone": (options_with("proj_clip", cell_clip=0.7), 2.0),
    "tight-projection-clip-alone": (options_with("cell_clip", proj_clip=0.7), 2.0),
    "one-layer": (options_with(n_layers=1), EXAGGERATED),
    "three-layers-tight-clips": (options_with(n_layers=3, cell_clip=0.9, proj_clip=1.1), 1.5),
    "three-layers-no-skip": (options_with(n_layers=3, use_skip_connections=False), 1.0),
    "short-words": (options_with(max_characters_per_token=9), 1.0),
    "one-byte-words": (options_with(max_characters_per_token=3), 1.0),
    "long-words": (options_with(max_characters_per_token=70), 1.0),
    "filters-unsorted-and-wide": (options_with(filters=[[7, 5], [1, 4], [3, 2], [7, 1], [2, 3]]), 1.0),
    "all-that-may-be-absent": (
        options_with("n_layers", "cell_clip", "proj_clip", "use_skip_connections", "n_highway"),
        1.0,
    ),
}

WORDS = ["the", "Ship", "harbour", "42", "don't", "naïve", "a", "ship", "Zürich", "."]
SENTENCES = [
    ["The", "a" * 60, "is", "cut"],
    ["a" * 47 + "éb", "splits", "é", "after", "47", "bytes"],
    ["👩‍🚀", "مرحبا", "بالعالم", "你好", "，", "世界"],
    ["<S>", "inside", "</S>", "<UNK>", "<s>"],
    ["before", "", "after"],
    [],
    ["one"],
    [""],
]
# The last is of 300 tokens.
TEXT = [*SENTENCES, [WORDS[k] for k in np.random.default_rng(0).integers(0, len(WORDS), 300)]]


def make_twin(options: Options, weights: Weights) -> Twin:
    """Return a twin that computes a word's vector once."""
    twin = Twin(options, weights)
    twin.token_vector = cache(twin.token_vector)
    return twin


@dataclass(frozen=True)
class Case:
    """Options, weights, and what the twin makes of `TEXT`."""

    options: Options
    weights: Weights
    scale: float
    expected: list[Vector]


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    options, scale = CASES[request.param]
    weights = random_weights(options, seed=7, scale=scale)
    twin = make_twin(options, weights)
    return Case(options, weights, scale, [twin.layers(sentence) for sentence in TEXT])


def assert_layers_equal(found: list[torch.Tensor], expected: list[Vector], tolerance: float) -> None:
    for found_layers, expected_layers in zip(found, expected, strict=True):
        assert found_layers.shape == expected_layers.shape
        np.testing.assert_allclose(found_layers.numpy(), expected_layers, rtol=0, atol=tolerance)


def test_float64_layers_follow_the_formulas_of_the_twin(case: Case) -> None:
    bilm = build_bilm(case.options, case.weights, dtype=torch.float64)
    assert_layers_equal(layers_of(bilm, TEXT), case.expected, SAME_FORMULAS)


def test_float32_layers_equal_the_twin(case: Case) -> None:
    # 300 chaotic steps leave nothing of float32's digits; there float64 alone is compared.
    count = len(SENTENCES) if case.scale == EXAGGERATED else len(TEXT)
    bilm = build_bilm(case.options, case.weights)
    assert_layers_equal(layers_of(bilm, TEXT[:count]), case.expected[:count], FLOAT32)


@pytest.mark.parametrize("clip", ["cell_clip", "proj_clip"])
@pytest.mark.parametrize("name", ["clips-bite", "clips-bite-no-skip", "one-layer", "three-layers-tight-clips"])
def test_clips_bite_in_the_cases_said_to_be_clipped(name: str, clip: str) -> None:
    options, scale = CASES[name]
    weights = random_weights(options, seed=7, scale=scale)
    without = deepcopy(options)
    del without["lstm"][clip]
    clipped, unclipped = (Twin(each, weights).layers(SENTENCES[1]) for each in (options, without))
    # Far above the tolerance of the comparisons, which would therefore fail without this clip.
    assert np.abs(clipped - unclipped).max() > 100 * FLOAT32


def test_projection_clip_does_nothing_without_a_projection() -> None:
    options = options_with(projection_dim=16, proj_clip=0.1)
    weights = random_weights(options, seed=7)
    (found,) = layers_of(build_bilm(options, weights), SENTENCES[:1])
    assert found[1:].abs().max() > 0.2
    assert_layers_equal([found], [Twin(options, weights).layers(SENTENCES[0])], FLOAT32)


def test_embedder_equals_the_twin() -> None:
    options, scale = CASES["three-layers-tight-clips"]
    weights = random_weights(options, seed=3, scale=scale)
    twin = make_twin(options, weights)
    embedder = Embedder(build_bilm(options, weights), torch.device("cpu"))
    found = [vectors.transpose(0, 1) for vectors in embedder.embed(TEXT, LayerChoice((0, 1, 2, 3)))]
    assert_layers_equal(found, [twin.layers(sentence) for sentence in TEXT], FLOAT32)


VOCABULARY = Vocabulary(("<S>", "</S>", "<UNK>", *WORDS, "", "你好", "one"))
PERPLEXITY_CASES = ("base", "no-projection-at-all", "three-layers-tight-clips", "short-words")


@dataclass(frozen=True)
class Measured:
    """A language model, what the twin makes of each of `SENTENCES`, and its perplexities of `TEXT`."""

    model: LanguageModel
    log_probabilities: list[tuple[list[float], list[float]]]
    perplexities: tuple[float, float, float]


@pytest.fixture(scope="module", params=PERPLEXITY_CASES)
def measured(request: pytest.FixtureRequest) -> Measured:
    options, scale = CASES[request.param]
    weights = random_weights(options, seed=5, scale=scale, vocabulary_size=len(VOCABULARY))
    twin, types = make_twin(options, weights), list(VOCABULARY.types)
    log_probabilities = [twin.log_probabilities(sentence, types) for sentence in SENTENCES]
    return Measured(build_language_model(options, weights), log_probabilities, twin.perplexities(TEXT, types))


def batch_of(model: LanguageModel, sentences: list[list[str]]) -> Batch:
    return make_batch(sentences, VOCABULARY, model.bilm.config.char_cnn.max_characters)


@torch.no_grad()
def test_losses_equal_the_twins_log_probabilities(measured: Measured) -> None:
    for sentence, expected in zip(SENTENCES, measured.log_probabilities, strict=True):
        losses = measured.model.losses(batch_of(measured.model, [sentence]))
        for found, expected_of_direction in zip(losses, expected, strict=True):
            # The softmax adds up eight products of size about 1, hence the same tolerance as for the layers.
            np.testing.assert_allclose(found.numpy(), -np.array(expected_of_direction), rtol=FLOAT32, atol=FLOAT32)


@pytest.mark.parametrize("batches", [[TEXT], [[sentence] for sentence in TEXT]], ids=["one", "many"])
def test_perplexities_equal_the_twins_however_batched(measured: Measured, batches: list[list[list[str]]]) -> None:
    made = [batch_of(measured.model, batch) for batch in batches]
    found = measure_perplexity(measured.model, made, torch.device("cpu"))
    # Of a loss in nats, so that the absolute error of the losses becomes a relative one.
    np.testing.assert_allclose([found.forward, found.backward, found.both], measured.perplexities, rtol=FLOAT32)


@pytest.fixture(scope="module")
def model() -> LanguageModel:
    options, _ = CASES["base"]
    return build_language_model(options, random_weights(options, seed=5, vocabulary_size=len(VOCABULARY)))


def test_perplexity_counts_targets_tokens_and_unknown_words(model: LanguageModel) -> None:
    batch = batch_of(model, [["the", "Ship", "unheard", "你好"], [], ["one", "<UNK>"]])
    found = measure_perplexity(model, [batch], torch.device("cpu"))
    assert (found.targets, found.tokens, found.unknown, found.oov_rate) == (9, 6, 2, 2 / 6)


def test_perplexity_of_no_batch_is_one(model: LanguageModel) -> None:
    found = measure_perplexity(model, [], torch.device("cpu"))
    assert found == Perplexity(0.0, 0.0, 0, 0, 0)
    assert found.both == 1.0


@pytest.mark.parametrize("training", [True, False])
def test_measuring_leaves_the_mode_of_the_model_alone(model: LanguageModel, training: bool) -> None:
    model.train(training)
    measure_perplexity(model, [], torch.device("cpu"))
    assert model.training is training
