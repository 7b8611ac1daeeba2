"""The pull back to the base's weights, against steps worked out by hand."""

import pytest
import torch

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import BiLMConfig, TrainingSettings
from elmo_cli.training.l2sp import Anchor
from elmo_cli.training.optimizer import Optimizer

VOCABULARY_SIZE, BASE_ROWS = 11, 8
RATE, STRENGTH = 0.01, 5.0
SHARE = 0.05  # RATE * STRENGTH: the part of the way back that a step takes
UNCLIPPED = TrainingSettings(clip_norm=1e9)
FLOAT32 = 1e-6  # weights are below 5


def make_model(config: BiLMConfig, *, sparse: bool) -> LanguageModel:
    model = LanguageModel(config, VOCABULARY_SIZE, sparse=sparse)
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.zeros(VOCABULARY_SIZE))
    return model


@pytest.fixture
def model(tiny_config: BiLMConfig) -> LanguageModel:
    return make_model(tiny_config, sparse=False)


@torch.no_grad()
def move_all(model: LanguageModel, by: float) -> None:
    for parameter in model.parameters():
        parameter.add_(by)
        parameter.grad = torch.zeros_like(parameter)


def test_where_the_loss_is_flat_a_weight_goes_a_twentieth_of_its_way_back(model: LanguageModel) -> None:
    origin = {name: p.detach().clone() for name, p in model.bilm.named_parameters()}
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, STRENGTH, BASE_ROWS))
    move_all(model, 0.2)
    optimizer.update(RATE)
    for name, parameter in model.bilm.named_parameters():
        # w0 + 0.2 - 0.01 * 5 * 0.2
        torch.testing.assert_close(parameter.detach(), origin[name] + 0.19, atol=FLOAT32, rtol=0)


def test_rows_that_were_added_to_the_softmax_are_free(model: LanguageModel) -> None:
    origin = model.softmax.weight.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, STRENGTH, BASE_ROWS))
    move_all(model, 0.2)
    optimizer.update(RATE)
    moved = (model.softmax.weight.detach() - origin).mean(dim=1)
    expected = torch.tensor([0.19] * BASE_ROWS + [0.2] * (VOCABULARY_SIZE - BASE_ROWS))
    torch.testing.assert_close(moved, expected, atol=FLOAT32, rtol=0)


def test_the_pull_goes_past_adam(model: LanguageModel) -> None:
    """Adam's first step is the rate times the gradient's sign; the pull takes a twentieth of it back."""
    origin = model.softmax.bias.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, STRENGTH, VOCABULARY_SIZE))
    move_all(model, 0.0)
    model.softmax.bias.grad = torch.full_like(origin, 3.0)
    optimizer.update(RATE)
    torch.testing.assert_close(model.softmax.bias.detach(), origin - RATE * (1 - SHARE), atol=FLOAT32, rtol=0)


def test_of_a_sampled_softmax_only_the_rows_of_the_step_are_drawn_back(tiny_config: BiLMConfig) -> None:
    model = make_model(tiny_config, sparse=True)
    origin = model.softmax.weight.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, STRENGTH, BASE_ROWS))
    move_all(model, 0.2)
    used = torch.tensor([1, 4, 4, 9])
    rows = torch.nn.functional.embedding(used, model.softmax.weight, sparse=True)
    model.softmax.weight.grad = None
    (rows * 0.0).sum().backward()  # type: ignore[no-untyped-call]
    optimizer.update(RATE)
    moved = (model.softmax.weight.detach() - origin).mean(dim=1)
    expected = torch.full((VOCABULARY_SIZE,), 0.2)
    expected[[1, 4]] = 0.19  # 9 was added, the others were not used
    torch.testing.assert_close(moved, expected, atol=FLOAT32, rtol=0)


def test_a_pull_stronger_than_the_way_ends_at_the_base(model: LanguageModel) -> None:
    origin = model.softmax.bias.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, 1000.0, VOCABULARY_SIZE))
    move_all(model, 0.2)
    optimizer.update(RATE)
    torch.testing.assert_close(model.softmax.bias.detach(), origin, atol=FLOAT32, rtol=0)


def test_frozen_weights_stay_where_they_are(model: LanguageModel) -> None:
    model.bilm.requires_grad_(False)
    origin = model.bilm.token_encoder.embedding.weight.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED, Anchor(model, STRENGTH, BASE_ROWS))
    move_all(model, 0.2)
    for parameter in model.bilm.parameters():
        parameter.grad = None
    optimizer.update(RATE)
    assert torch.equal(model.bilm.token_encoder.embedding.weight, origin + 0.2)
