"""Sizes of the presets, and where the weights start."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import BiLMConfig, CharCNNConfig, LSTMConfig, preset

# Large enough that the spread of some thousand values is known within 5 %.
CONFIG = BiLMConfig(
    char_cnn=CharCNNConfig(filters=((2, 64), (5, 64)), highway_layers=2),
    lstm=LSTMConfig(cell_dim=96, projection_dim=48),
)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("elmo-small", 13_593_296), ("elmo-medium", 28_027_728), ("elmo-original", 93_600_848)],
)
def test_presets_have_the_parameters_of_the_published_models(name: str, parameters: int) -> None:
    with torch.device("meta"):
        bilm = BiLM(preset(name))
    assert sum(parameter.numel() for parameter in bilm.parameters()) == parameters


def test_softmax_adds_a_row_and_a_bias_for_each_word_type() -> None:
    with torch.device("meta"):
        model = LanguageModel(preset("elmo-original"), 793_471)
    assert sum(parameter.numel() for parameter in model.softmax.parameters()) == 793_471 * 513


def initialised(config: BiLMConfig, seed: int = 1) -> dict[str, Tensor]:
    """Return the start values of a biLM by their names."""
    bilm = BiLM(config)
    for parameter in bilm.parameters():
        torch.nn.init.constant_(parameter, torch.nan)  # a weight that is left out shows
    bilm.initialise(torch.Generator().manual_seed(seed))
    return bilm.state_dict()


@pytest.fixture(scope="module")
def start() -> dict[str, Tensor]:
    return initialised(CONFIG)


def assert_uniform(values: Tensor, bound: float) -> None:
    assert values.abs().max() <= bound
    # Of thousands of values the largest is within 2 % of the bound, the mean within 5 % of it.
    assert values.abs().max() > 0.98 * bound
    assert abs(values.mean()) < 0.05 * bound


def assert_normal(values: Tensor, deviation: float) -> None:
    # Four standard errors of mean and deviation of at least 6,000 values, as the smallest matrix here has.
    assert abs(values.mean()) < 0.05 * deviation
    assert float(values.std()) == pytest.approx(deviation, rel=0.04)


def test_every_weight_is_drawn(start: dict[str, Tensor]) -> None:
    assert all(bool(values.isfinite().all()) for values in start.values())


def test_character_vectors_start_uniform_up_to_one(start: dict[str, Tensor]) -> None:
    assert_uniform(start["token_encoder.embedding.weight"], 1.0)


@pytest.mark.parametrize("number", [0, 1])
def test_relu_convolutions_start_uniform_up_to_a_twentieth(start: dict[str, Tensor], number: int) -> None:
    assert_uniform(start[f"token_encoder.convolutions.{number}.weight"], 0.05)


def test_tanh_convolutions_start_normal_by_their_fan_in() -> None:
    config = replace(CONFIG, char_cnn=replace(CONFIG.char_cnn, activation="tanh", filters=((5, 128),)))
    assert_normal(initialised(config)["token_encoder.convolutions.0.weight"], (5 * 16) ** -0.5)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize("part", ["gate", "transform"])
def test_highways_start_normal(start: dict[str, Tensor], number: int, part: str) -> None:
    assert_normal(start[f"token_encoder.highways.{number}.{part}.weight"], 128**-0.5)


def test_token_projection_starts_normal(start: dict[str, Tensor]) -> None:
    assert_normal(start["token_encoder.projection.weight"], 128**-0.5)


def test_highway_gates_start_mostly_shut(start: dict[str, Tensor]) -> None:
    gates = [values for name, values in start.items() if name.endswith("gate.bias")]
    assert len(gates) == 2
    assert all(bool((bias == -2).all()) for bias in gates)


def test_all_other_biases_start_at_zero(start: dict[str, Tensor]) -> None:
    biases = [values for name, values in start.items() if name.endswith("bias") and "gate" not in name]
    assert len(biases) == 2 + 2 + 1 + 2  # convolutions, highway transforms, projection, layers
    assert not any(bool(bias.any()) for bias in biases)


@pytest.mark.parametrize("layer", [0, 1])
def test_lstms_start_glorot_uniform_over_the_whole_kernel(start: dict[str, Tensor], layer: int) -> None:
    for name in ("input_weight", "recurrent_weight"):
        assert_uniform(start[f"layers.{layer}.{name}"], (6 / (2 * 48 + 4 * 96)) ** 0.5)
    assert_uniform(start[f"layers.{layer}.projection"], (6 / (96 + 48)) ** 0.5)


def test_directions_and_layers_start_apart(start: dict[str, Tensor]) -> None:
    first, second = start["layers.0.input_weight"], start["layers.1.input_weight"]
    drawn = (*first, *second)
    assert all(not torch.equal(drawn[a], drawn[b]) for a in range(4) for b in range(a))


def test_softmax_starts_normal_with_the_given_bias() -> None:
    model = LanguageModel(CONFIG, 300)
    log_frequencies = torch.linspace(-1, -9, 300)
    model.softmax.initialise(torch.Generator().manual_seed(1), log_frequencies)
    assert_normal(model.softmax.weight.detach(), 48**-0.5)
    assert torch.equal(model.softmax.bias, log_frequencies)


def test_the_same_seed_gives_the_same_weights(start: dict[str, Tensor]) -> None:
    again, other = initialised(CONFIG), initialised(CONFIG, seed=2)
    assert all(torch.equal(start[name], again[name]) for name in start)
    assert all(not torch.equal(start[name], other[name]) for name in start if name.endswith("weight"))


def test_projections_are_left_out_where_they_would_not_change_the_width() -> None:
    lstm = replace(CONFIG.lstm, cell_dim=128, projection_dim=128)
    names = initialised(replace(CONFIG, lstm=lstm)).keys()
    assert not any("projection" in name for name in names)
