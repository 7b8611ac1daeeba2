"""Dropout: its masks, and the places where bilm-tf has it."""

import pytest
import torch

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.dropout import SeededDropout
from elmo_cli.bilm.packing import pack
from elmo_cli.config import BiLMConfig

CPU = torch.device("cpu")


def make_dropout(rate: float, seed: int) -> SeededDropout:
    dropout = SeededDropout(rate)
    dropout.seed(seed, CPU)
    return dropout


def test_values_are_dropped_at_the_rate_and_the_others_scaled_up() -> None:
    found = make_dropout(0.25, seed=1)(torch.ones(100, 400))
    assert found.unique().tolist() == [0.0, pytest.approx(1 / 0.75)]
    # Four standard errors of 40,000 draws.
    assert (found == 0).double().mean().item() == pytest.approx(0.25, abs=4 * (0.25 * 0.75 / 40_000) ** 0.5)


def test_the_same_seed_gives_the_same_masks() -> None:
    one, other = make_dropout(0.5, seed=3), make_dropout(0.5, seed=3)
    x = torch.ones(50)
    first, second = one(x), one(x)
    assert torch.equal(other(x), first)
    assert torch.equal(other(x), second)
    assert not torch.equal(first, second)
    one.seed(3, CPU)
    assert torch.equal(one(x), first)


@pytest.mark.parametrize(("rate", "training"), [(0.5, False), (0.0, True)])
def test_without_rate_or_training_nothing_is_dropped(rate: float, training: bool) -> None:
    x = torch.randn(5)
    assert make_dropout(rate, seed=1).train(training)(x) is x


def test_dropout_stands_before_every_layer_and_behind_the_top_and_the_skip_path_carries_it(
    tiny_config: BiLMConfig,
) -> None:
    bilm = BiLM(tiny_config, dropout=0.3).train()
    bilm.initialise(torch.Generator().manual_seed(1))
    packing = pack([4, 2])
    tokens = torch.randn(6, 8, generator=torch.Generator().manual_seed(2))
    bilm.dropout.seed(5, CPU)
    forward, backward = bilm.language_model_states(tokens, packing)

    drop = make_dropout(0.3, seed=5)
    first = drop(torch.stack((tokens, tokens[packing.reverse])))
    second = drop(bilm.layers[0](first, packing))
    top = drop(bilm.layers[1](second, packing) + second)
    # The same operations on the same numbers.
    torch.testing.assert_close((forward, backward), (top[0], top[1][packing.reverse]), rtol=0, atol=1e-7)


def test_a_model_with_dropout_embeds_without_it(tiny_config: BiLMConfig) -> None:
    bilm, plain = BiLM(tiny_config, dropout=0.5), BiLM(tiny_config)
    bilm.initialise(torch.Generator().manual_seed(1))
    plain.load_state_dict(bilm.state_dict())
    tokens, types = torch.tensor([0, 1, 2]), torch.randn(3, 8, generator=torch.Generator().manual_seed(2))
    assert torch.equal(bilm.eval().embed(types, tokens, [3]), plain.embed(types, tokens, [3]))
