"""The LSTM layer in training, from a state that is carried on, and in fewer bits under autocast."""

from collections.abc import Callable

import pytest
import torch
from test_lstm_gradient import CONFIGS, FLOAT64, RAGGED, Drawn, draw, gradients, loop
from torch import Tensor

from elmo_cli.bilm import lstm as lstm_module
from elmo_cli.bilm import lstm_gradient as gradient_module
from elmo_cli.bilm.lstm import LSTMState
from elmo_cli.bilm.packing import pack
from elmo_cli.config import LSTMConfig

BFLOAT16 = 0.05  # 8 bits of mantissa, over sums of a few values and five steps


@pytest.fixture(params=["projection", "no projection", "both clips"])
def config(request: pytest.FixtureRequest) -> LSTMConfig:
    return CONFIGS[request.param]


@pytest.fixture(params=["one thread", "two threads", "stacked"], autouse=True)
def _threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.set_num_threads(2 if request.param == "two threads" else 1)
    if request.param == "stacked":
        for module in (lstm_module, gradient_module):
            monkeypatch.setattr(module, "each_direction", lambda compute, device: compute(...))


def draw_state(drawn: Drawn, sentences: int) -> LSTMState:
    generator = torch.Generator().manual_seed(5)
    state = drawn.layer.zero_state(sentences)
    for part in (state.hidden, state.cell):
        part.copy_(torch.randn(part.shape, generator=generator, dtype=part.dtype) * 0.2)
    return state


def copy_of(state: LSTMState) -> LSTMState:
    return LSTMState(state.hidden.detach().clone(), state.cell.detach().clone())


def test_outputs_and_gradients_from_a_state_are_those_of_a_plain_loop(config: LSTMConfig) -> None:
    drawn = draw(config)
    state = draw_state(drawn, len(RAGGED))
    expected = loop(drawn.layer, drawn.x, RAGGED, copy_of(state))
    found = drawn.layer(drawn.x, drawn.packing, state)
    torch.testing.assert_close(found, expected, rtol=0, atol=FLOAT64)
    for one, other in zip(gradients(found, drawn), gradients(expected, drawn), strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=FLOAT64)


def test_the_state_is_left_where_inference_leaves_it(config: LSTMConfig) -> None:
    drawn = draw(config)
    state = draw_state(drawn, len(RAGGED))
    other = copy_of(state)
    drawn.layer(drawn.x, drawn.packing, state)
    with torch.no_grad():
        drawn.layer(drawn.x, drawn.packing, other)
    torch.testing.assert_close(state.hidden, other.hidden, rtol=0, atol=FLOAT64)
    torch.testing.assert_close(state.cell, other.cell, rtol=0, atol=FLOAT64)
    assert not state.hidden.requires_grad


def test_two_windows_with_the_state_carried_on_are_one(config: LSTMConfig) -> None:
    drawn = draw(config, (6, 6, 6))
    whole = drawn.layer(drawn.x, drawn.packing)
    state = drawn.layer.zero_state(3)
    rows = 3 * 3  # three steps of three streams
    windows = [drawn.layer(part, pack((3, 3, 3)), state) for part in (drawn.x[:, :rows], drawn.x[:, rows:])]
    torch.testing.assert_close(torch.cat(windows, dim=1), whole, rtol=0, atol=FLOAT64)


def computed(drawn: Drawn, context: Callable[[], torch.autocast]) -> tuple[Tensor, list[Tensor]]:
    with context():
        output = drawn.layer(drawn.x, drawn.packing)
    return output, gradients(output.float(), drawn)


def test_under_autocast_the_layer_computes_in_fewer_bits_and_keeps_whole_weights() -> None:
    # Without clips: a value that rounding moves across one changes its gradient to zero, or from it.
    drawn = draw(CONFIGS["projection"], dtype=torch.float32)
    output, found = computed(drawn, lambda: torch.autocast("cpu", torch.bfloat16))
    whole, expected = computed(drawn, lambda: torch.autocast("cpu", torch.bfloat16, enabled=False))
    assert (output.dtype, whole.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(output.float(), whole, rtol=0, atol=BFLOAT16)
    for one, other in zip(found, expected, strict=True):
        assert one.dtype == torch.float32
        assert float((one - other).norm() / other.norm()) < 2 * BFLOAT16
