"""The LSTM layer's forward pass and hand-written gradient against plain loops, finite differences and torch's LSTM."""

from dataclasses import dataclass, replace

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from elmo_cli.bilm import lstm as lstm_module
from elmo_cli.bilm import lstm_gradient as gradient_module
from elmo_cli.bilm.lstm import BiLSTMLayer, LSTMState
from elmo_cli.bilm.lstm_gradient import LSTMFunction
from elmo_cli.bilm.packing import Packing, pack
from elmo_cli.config import LSTMConfig

# Float64 sums in another order: 1e-15 a value, a few dozen values and steps.
FLOAT64 = 1e-12
# Rounding to float32 is 6e-8 of a value; gradients sum up dozens of values of size 1 to 10.
FLOAT32 = 1e-5

RAGGED = (2, 5, 1, 5, 3)

PROJECTED = LSTMConfig(cell_dim=3, projection_dim=2, cell_clip=None, projection_clip=None)
UNPROJECTED = replace(PROJECTED, cell_dim=2, projection_dim=2)
CONFIGS = {
    "projection": PROJECTED,
    "no projection": UNPROJECTED,
    "both clips": replace(PROJECTED, cell_clip=0.7, projection_clip=0.3),
    "cell clip alone": replace(PROJECTED, cell_clip=0.7),
    "projection clip alone": replace(PROJECTED, projection_clip=0.3),
    "cell clip without projection": replace(UNPROJECTED, cell_clip=0.6),
}


@dataclass(frozen=True)
class Drawn:
    """A layer with large weights, its input and a gradient for its output."""

    layer: BiLSTMLayer
    x: Tensor
    d_output: Tensor
    packing: Packing


def draw(config: LSTMConfig, lengths: tuple[int, ...] = RAGGED, dtype: torch.dtype = torch.float64) -> Drawn:
    """Draw everything from one seed; the values are the same for both dtypes, up to rounding."""
    generator = torch.Generator().manual_seed(4)
    layer = BiLSTMLayer(config).to(dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    shape = (2, sum(lengths), config.projection_dim)
    x, d_output = (torch.randn(shape, generator=generator, dtype=torch.float64).to(dtype) for _ in range(2))
    return Drawn(layer, x.requires_grad_(), d_output, pack(lengths))


@pytest.fixture(params=CONFIGS)
def config(request: pytest.FixtureRequest) -> LSTMConfig:
    return CONFIGS[request.param]


@pytest.fixture(params=["one thread", "two threads", "stacked"])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compute one direction after the other, each in a thread of its own, or both stacked, as on a GPU."""
    torch.set_num_threads(2 if request.param == "two threads" else 1)  # the fixtures of all tests set it back
    if request.param == "stacked":
        for module in (lstm_module, gradient_module):
            monkeypatch.setattr(module, "each_direction", lambda compute, device: compute(...))


def loop(layer: BiLSTMLayer, x: Tensor, lengths: tuple[int, ...], state: LSTMState | None = None) -> Tensor:
    """Return the hidden states of packed ``x`` [2, rows, dim], one sentence, direction and step at a time.

    ``state``, in the order of the packing's columns, is started from and left as it is.
    """
    order = pack(lengths).order.tolist()
    row_of = {position: row for row, position in enumerate(order)}
    bias = layer.run_time_bias()
    found: dict[tuple[int, int], Tensor] = {}
    for direction in (0, 1):
        start = 0
        for sentence, length in enumerate(lengths):
            c, h = x.new_zeros(layer.config.cell_dim), x.new_zeros(layer.config.projection_dim)
            if state is not None:
                column = pack(lengths).columns.tolist().index(sentence)
                c, h = state.cell[direction, column], state.hidden[direction, column]
            for position in range(start, start + length):
                row = row_of[position]
                c, h = step(layer, direction, x=x[direction, row], bias=bias[direction], state=(c, h))
                found[direction, row] = h
            start += length
    return torch.stack([torch.stack([found[d, row] for row in range(len(order))]) for d in (0, 1)])


def step(
    layer: BiLSTMLayer, direction: int, *, x: Tensor, bias: Tensor, state: tuple[Tensor, Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the next cell and hidden state of one sentence, in the words of the formulas."""
    c, h = state
    config = layer.config
    gates = x @ layer.input_weight[direction] + h @ layer.recurrent_weight[direction] + bias
    i, f, o, j = gates.chunk(4)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(j)
    if config.cell_clip is not None:
        c = c.clamp(-config.cell_clip, config.cell_clip)
    h = torch.sigmoid(o) * torch.tanh(c)
    if layer.projection is not None:
        h = h @ layer.projection[direction]
        if config.projection_clip is not None:
            h = h.clamp(-config.projection_clip, config.projection_clip)
    return c, h


def gradients(output: Tensor, drawn: Drawn) -> list[Tensor]:
    """Return the gradients of the input and of every parameter."""
    return list(torch.autograd.grad(output, [drawn.x, *drawn.layer.parameters()], drawn.d_output))


def test_forget_gate_gets_one_at_run_time_and_no_other_gate() -> None:
    layer = BiLSTMLayer(PROJECTED)
    nn.init.constant_(layer.bias, 0.25)
    i, f, o, j = layer.run_time_bias().chunk(4, dim=1)
    assert [set(gate.flatten().tolist()) for gate in (i, f, o, j)] == [{0.25}, {1.25}, {0.25}, {0.25}]


@pytest.mark.usefixtures("threads")
def test_forward_pass_for_training_equals_a_plain_loop(config: LSTMConfig) -> None:
    drawn = draw(config)
    output = drawn.layer(drawn.x, drawn.packing)
    torch.testing.assert_close(output, loop(drawn.layer, drawn.x, RAGGED), rtol=0, atol=FLOAT64)


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("block_rows", [1, 6, 1024])
def test_forward_pass_for_inference_equals_that_for_training(
    config: LSTMConfig, block_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lstm_module, "_BLOCK_ROWS", block_rows)
    drawn = draw(config)
    training = drawn.layer(drawn.x, drawn.packing)
    with torch.no_grad():
        inference = drawn.layer(drawn.x, drawn.packing)
    torch.testing.assert_close(inference, training.detach(), rtol=0, atol=FLOAT64)


def test_inference_over_several_blocks_of_rows_equals_training() -> None:
    lengths = tuple(range(1, 80))  # 3,160 rows, three times the size of a block
    drawn = draw(CONFIGS["both clips"], lengths)
    training = drawn.layer(drawn.x, drawn.packing)
    with torch.no_grad():
        inference = drawn.layer(drawn.x, drawn.packing)
    torch.testing.assert_close(inference, training.detach(), rtol=0, atol=FLOAT64)


# Slow, for every number is moved by itself; the loop below covers the other clips.
@pytest.mark.parametrize("name", ["projection", "no projection", "both clips", "cell clip without projection"])
def test_gradients_equal_finite_differences(name: str) -> None:
    config = CONFIGS[name]
    drawn = draw(config, (1, 3))
    layer, clips = drawn.layer, (config.cell_clip, config.projection_clip)

    def apply(x: Tensor, *weights: Tensor) -> Tensor:
        projection = weights[3] if len(weights) > 3 else None
        return LSTMFunction.apply(x, *weights[:3], projection, drawn.packing, *clips, None)

    # Steps of 1e-6 would go wrong only at a value that lies as near to its clip, and none does.
    assert torch.autograd.gradcheck(apply, (drawn.x, *layer.parameters()))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("lengths", [RAGGED, (1,), (7,), (1, 1, 1), (4, 4)])
def test_gradients_equal_autograds_through_a_plain_loop(config: LSTMConfig, lengths: tuple[int, ...]) -> None:
    drawn = draw(config, lengths)
    found = gradients(drawn.layer(drawn.x, drawn.packing), drawn)
    expected = gradients(loop(drawn.layer, drawn.x, lengths), drawn)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=FLOAT64)


def test_gradients_stop_at_clips_that_float32_cannot_hold_exactly() -> None:
    config = CONFIGS["both clips"]  # 0.7 and 0.3
    single, double = draw(config, dtype=torch.float32), draw(config)
    found = gradients(single.layer(single.x, single.packing), single)
    expected = gradients(double.layer(double.x, double.packing), double)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=FLOAT32, atol=FLOAT32)


def test_clips_bite_on_some_values_and_leave_others() -> None:
    config = CONFIGS["both clips"]
    drawn = draw(config)
    clipped = drawn.layer(drawn.x, drawn.packing).abs() == config.projection_clip
    assert 0.1 < clipped.double().mean() < 0.9
    without_cell_clip = BiLSTMLayer(replace(config, cell_clip=None)).double()
    without_cell_clip.load_state_dict(drawn.layer.state_dict())
    difference = without_cell_clip(drawn.x, drawn.packing) - drawn.layer(drawn.x, drawn.packing)
    assert difference.abs().max() > 0.01


def test_the_mode_without_gradients_is_left_as_it_was_in_either_thread() -> None:
    drawn = draw(PROJECTED)
    with torch.inference_mode():
        assert drawn.layer(drawn.x.detach(), drawn.packing).is_inference()
    with torch.no_grad():
        assert not drawn.layer(drawn.x, drawn.packing).requires_grad
    assert drawn.layer(drawn.x, drawn.packing).requires_grad


def test_a_whole_clipped_output_passes_no_gradient() -> None:
    drawn = draw(replace(PROJECTED, projection_clip=1e-9))
    assert not any(bool(gradient.any()) for gradient in gradients(drawn.layer(drawn.x, drawn.packing), drawn))


def test_the_gradient_of_the_output_is_left_as_it_was() -> None:
    drawn = draw(CONFIGS["both clips"])
    before = drawn.d_output.clone()
    gradients(drawn.layer(drawn.x, drawn.packing), drawn)
    assert torch.equal(drawn.d_output, before)


def test_no_sentence_gives_no_row_and_zero_gradients(config: LSTMConfig) -> None:
    drawn = draw(config, ())
    output = drawn.layer(drawn.x, drawn.packing)
    assert output.shape == (2, 0, config.projection_dim)
    assert not any(bool(gradient.any()) for gradient in gradients(output, drawn))


def torch_lstm(layer: BiLSTMLayer, direction: int) -> nn.LSTM:
    """Return torch's own LSTM with the weights of one direction; its gates stand in the order i, f, g, o."""
    config = layer.config
    proj_size = config.projection_dim if config.has_projection else 0
    twin = nn.LSTM(config.projection_dim, config.cell_dim, proj_size=proj_size).double()

    def their_gates(columns: Tensor) -> Tensor:
        i, f, o, j = columns.chunk(4, dim=-1)
        return torch.cat((i, f, j, o), dim=-1)

    state = {
        "weight_ih_l0": their_gates(layer.input_weight[direction]).T,
        "weight_hh_l0": their_gates(layer.recurrent_weight[direction]).T,
        "bias_ih_l0": their_gates(layer.run_time_bias()[direction]),
        "bias_hh_l0": torch.zeros(4 * config.cell_dim),
    }
    if layer.projection is not None:
        state["weight_hr_l0"] = layer.projection[direction].T
    twin.load_state_dict(state)
    return twin


@pytest.mark.parametrize("direction", [0, 1])
@pytest.mark.parametrize("config", [PROJECTED, UNPROJECTED], ids=["projection", "no projection"])
def test_without_clips_a_direction_equals_torchs_lstm(config: LSTMConfig, direction: int) -> None:
    drawn = draw(config)
    position = torch.empty_like(drawn.packing.order)
    position[drawn.packing.order] = torch.arange(len(position))
    end_to_end = drawn.x[direction][position].split(RAGGED)
    padded = nn.utils.rnn.pad_sequence(list(end_to_end))
    packed = pack_padded_sequence(padded, torch.tensor(RAGGED), enforce_sorted=False)
    expected, _ = pad_packed_sequence(torch_lstm(drawn.layer, direction)(packed)[0])
    found = drawn.layer(drawn.x, drawn.packing)[direction][position].split(RAGGED)
    for sentence, (length, hidden) in enumerate(zip(RAGGED, found, strict=True)):
        torch.testing.assert_close(hidden, expected[:length, sentence], rtol=0, atol=FLOAT64)
