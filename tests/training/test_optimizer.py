"""One update of the weights, against Adam and Adagrad written out by hand, and the course of the learning rate."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import RECIPES, BiLMConfig, TrainingSettings
from elmo_cli.training.optimizer import Optimizer, learning_rate

VOCABULARY_SIZE = 11
RATE = 0.01
UNCLIPPED = TrainingSettings(clip_norm=1e9)


def make_model(config: BiLMConfig, *, sparse: bool = False) -> LanguageModel:
    model = LanguageModel(config, VOCABULARY_SIZE, sparse=sparse)
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.zeros(VOCABULARY_SIZE))
    return model


def random_gradients(model: LanguageModel, seed: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(parameter.shape, generator=generator) for parameter in model.parameters()]


def set_gradients(model: LanguageModel, gradients: Sequence[Tensor]) -> None:
    for parameter, gradient in zip(model.parameters(), gradients, strict=True):
        parameter.grad = gradient.clone()


def norm_of(gradients: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float(gradient.double().square().sum()) for gradient in gradients))


def adam(weight: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    """Return a weight after one update for each gradient: Kingma and Ba (2015), algorithm 1, in float64."""
    weight, m, v = weight.double(), torch.zeros(()), torch.zeros(())
    for step, gradient in enumerate((gradient.double() for gradient in gradients), start=1):
        m = 0.9 * m + 0.1 * gradient
        v = 0.99 * v + 0.01 * gradient**2
        weight = weight - RATE * (m / (1 - 0.9**step)) / ((v / (1 - 0.99**step)).sqrt() + 1e-8)
    return weight


def assert_weights(model: LanguageModel, expected: Iterator[Tensor]) -> None:
    # Updates are of size 0.01; float32 is right to 1e-7 of the weights, which are below 5.
    for parameter, value in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach().double(), value, atol=1e-6, rtol=0)


@pytest.fixture
def model(tiny_config: BiLMConfig) -> LanguageModel:
    return make_model(tiny_config)


def test_updates_are_those_of_adam(model: LanguageModel) -> None:
    before = [parameter.detach().clone() for parameter in model.parameters()]
    steps = [random_gradients(model, seed) for seed in range(3)]
    optimizer = Optimizer(model, UNCLIPPED)
    for gradients in steps:
        set_gradients(model, gradients)
        optimizer.update(RATE)
    assert_weights(model, (adam(weight, own) for weight, *own in zip(before, *steps, strict=True)))


def test_the_norm_over_all_gradients_is_returned(model: LanguageModel) -> None:
    gradients = random_gradients(model, 0)
    set_gradients(model, gradients)
    assert Optimizer(model, TrainingSettings()).update(RATE) == pytest.approx(norm_of(gradients), rel=1e-5)


def test_gradients_are_clipped_by_their_common_norm(model: LanguageModel) -> None:
    before = [parameter.detach().clone() for parameter in model.parameters()]
    large = random_gradients(model, 0)
    small = [gradient * (0.5 / norm_of(large)) for gradient in random_gradients(model, 1)]
    optimizer = Optimizer(model, TrainingSettings(clip_norm=1.0))
    for gradients in (large, small):
        set_gradients(model, gradients)
        optimizer.update(RATE)
    clipped = [gradient / norm_of(large) for gradient in large]
    assert_weights(model, (adam(weight, own) for weight, *own in zip(before, clipped, small, strict=True)))


def test_an_update_clears_the_gradients(model: LanguageModel) -> None:
    set_gradients(model, random_gradients(model, 0))
    Optimizer(model, UNCLIPPED).update(RATE)
    assert all(parameter.grad is None for parameter in model.parameters())


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_gradient_that_is_not_finite_changes_nothing(model: LanguageModel, value: float) -> None:
    before = [parameter.detach().clone() for parameter in model.parameters()]
    gradients = random_gradients(model, 0)
    gradients[0].view(-1)[0] = value
    set_gradients(model, gradients)
    optimizer = Optimizer(model, TrainingSettings())
    assert not math.isfinite(optimizer.update(RATE))
    assert optimizer.state() == ({}, 0)
    assert all(torch.equal(old, new) for old, new in zip(before, model.parameters(), strict=True))


def sparse_gradient(model: LanguageModel, rows: list[int], seed: int) -> Tensor:
    """Return a gradient with an entry for each row, in which a row may stand twice."""
    width = model.softmax.weight.shape[1]
    values = torch.randn(len(rows), width, generator=torch.Generator().manual_seed(seed))
    return torch.sparse_coo_tensor(torch.tensor([rows]), values, model.softmax.weight.shape, check_invariants=True)


def sparse_step(model: LanguageModel, optimizer: Optimizer, rows: list[int], seed: int) -> Tensor:
    """Update with a sparse gradient of the softmax's rows and zeros elsewhere; return the gradient, dense."""
    set_gradients(model, [torch.zeros_like(parameter) for parameter in model.parameters()])
    gradient = sparse_gradient(model, rows, seed)
    model.softmax.weight.grad = gradient
    optimizer.update(RATE)
    return gradient.to_dense()


def test_a_sparse_update_is_adam_on_the_rows_used(tiny_config: BiLMConfig) -> None:
    model = make_model(tiny_config, sparse=True)
    before = model.softmax.weight.detach().clone()
    optimizer = Optimizer(model, UNCLIPPED)
    gradients = [sparse_step(model, optimizer, rows, seed) for seed, rows in enumerate(([2, 5, 2], [2, 5]))]
    expected = before.double()
    expected[[2, 5]] = adam(before[[2, 5]], [gradient[[2, 5]] for gradient in gradients])
    torch.testing.assert_close(model.softmax.weight.detach().double(), expected, atol=1e-6, rtol=0)


def adagrad(weight: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    """Return a weight after one update for each gradient, with TensorFlow's Adagrad as bilm-tf uses it, in float64."""
    weight, total = weight.double(), torch.ones(())
    for gradient in gradients:
        total = total + gradient.double() ** 2
        weight = weight - RATE * gradient.double() / total.sqrt()
    return weight


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_recipe_of_bilm_tf_updates_with_adagrad(tiny_config: BiLMConfig, sparse: bool) -> None:
    model = make_model(tiny_config, sparse=sparse)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    steps = [random_gradients(model, seed) for seed in range(3)]
    optimizer = Optimizer(model, replace(RECIPES["bilm-tf"], clip_norm=1e9))
    for number, gradients in enumerate(steps):
        set_gradients(model, gradients)
        if sparse:
            model.softmax.weight.grad = sparse_gradient(model, [1, number, 1], number)
            place = next(i for i, p in enumerate(model.parameters()) if p is model.softmax.weight)
            gradients[place] = model.softmax.weight.grad.to_dense()
        optimizer.update(RATE)
    assert_weights(model, (adagrad(weight, own) for weight, *own in zip(before, *steps, strict=True)))


def test_the_scale_of_the_loss_is_taken_out_again(model: LanguageModel) -> None:
    gradients = random_gradients(model, 0)
    set_gradients(model, [gradient * 1024 for gradient in gradients])
    before = [parameter.detach().clone() for parameter in model.parameters()]
    assert Optimizer(model, UNCLIPPED).update(RATE, 1024.0) == pytest.approx(norm_of(gradients), rel=1e-5)
    assert_weights(model, (adam(weight, [own]) for weight, own in zip(before, gradients, strict=True)))


def test_a_sparse_update_leaves_the_other_rows_alone(tiny_config: BiLMConfig) -> None:
    model = make_model(tiny_config, sparse=True)
    optimizer = Optimizer(model, UNCLIPPED)
    sparse_step(model, optimizer, [1, 2], 0)
    before = model.softmax.weight.detach().clone()
    sparse_step(model, optimizer, [7], 1)
    changed = (model.softmax.weight != before).any(dim=1).nonzero().flatten()
    assert changed.tolist() == [7]


def test_the_norm_counts_a_row_that_stands_twice_by_its_sum(tiny_config: BiLMConfig) -> None:
    model = make_model(tiny_config, sparse=True)
    set_gradients(model, [torch.zeros_like(parameter) for parameter in model.parameters()])
    gradient = sparse_gradient(model, [3, 3], 0)
    model.softmax.weight.grad = gradient
    norm = Optimizer(model, UNCLIPPED).update(RATE)
    assert norm == pytest.approx(norm_of([gradient.to_dense()]), rel=1e-5)


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_a_state_that_was_taken_over_goes_on_as_if_never_stopped(tiny_config: BiLMConfig, sparse: bool) -> None:
    models = [make_model(tiny_config, sparse=sparse) for _ in range(2)]
    optimizers = [Optimizer(model, UNCLIPPED) for model in models]
    for number in range(4):
        if number == 2:
            tensors, steps = optimizers[1].state()
            optimizers[1] = Optimizer(models[1], UNCLIPPED)
            optimizers[1].load_state({name: tensor.clone() for name, tensor in tensors.items()}, steps)
        for model, optimizer in zip(models, optimizers, strict=True):
            set_gradients(model, random_gradients(model, number))
            if sparse:
                model.softmax.weight.grad = sparse_gradient(model, [1, number], number)
            optimizer.update(RATE)
    assert all(torch.equal(a, b) for a, b in zip(models[0].parameters(), models[1].parameters(), strict=True))


@pytest.mark.parametrize(
    ("step", "share_done", "rate"),
    [
        (0, 0.0, 0.04),
        (4, 0.0, 0.2),
        (9, 0.0, 0.4),
        (50, 0.0, 0.4),
        (50, 0.25, 0.3),
        (0, 0.5, 0.02),
        (50, 0.99, 0.008),
        (50, 1.0, 0.008),
        (50, 1.5, 0.008),
    ],
)
def test_the_rate_rises_over_the_warm_up_and_falls_to_a_fiftieth(step: int, share_done: float, rate: float) -> None:
    settings = TrainingSettings(learning_rate=0.4, warmup_steps=10)
    assert learning_rate(settings, step, share_done) == pytest.approx(rate)


def test_the_recipe_of_bilm_tf_has_one_rate_throughout() -> None:
    assert {learning_rate(RECIPES["bilm-tf"], step, step / 100) for step in (0, 50, 100)} == {0.2}


def test_without_a_warm_up_the_rate_begins_at_its_highest() -> None:
    assert learning_rate(TrainingSettings(learning_rate=0.4, warmup_steps=0), 0, 0.0) == 0.4
