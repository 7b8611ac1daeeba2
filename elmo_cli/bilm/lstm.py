"""One biLSTM layer with projection and clipping, both directions side by side in every tensor.

The arithmetic is that of bilm-tf's ``LSTMCell`` (Sak et al. 2014, with clipping)::

    [i f o j] = x W_input + h W_recurrent + b
    c = clip(sigmoid(f + 1) * c + sigmoid(i) * tanh(j))
    h = clip((sigmoid(o) * tanh(c)) W_projection)

Axis 0 of every tensor here is the direction, 0 forward and 1 backward, so that one batched product serves both.
Rows are packed (see `packing`), the backward direction's in its own reading order.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_cli.bilm.cell import advance
from elmo_cli.bilm.directions import Direction, add_product, add_product_, each_direction
from elmo_cli.bilm.lstm_gradient import LSTMFunction
from elmo_cli.bilm.lstm_graph import PreparedPair
from elmo_cli.bilm.lstm_inference import PreparedDirection
from elmo_cli.bilm.packing import Packing
from elmo_cli.config import LSTMConfig, Precision

FORGET_BIAS = 1.0  # added at run time, never stored
_BLOCK_ROWS = 1024  # rows whose input products are computed at once: large enough for a fast product, small to hold


@dataclass(frozen=True, slots=True)
class LSTMState:
    """Where both directions of a layer stand in each sentence: the hidden state, after its clip, and the cell."""

    hidden: Float[Tensor, "2 sentences dim"]
    cell: Float[Tensor, "2 sentences cell"]


class BiLSTMLayer(nn.Module):
    """Both directions of one layer; they share nothing but their shape.

    Args:
        config: the shape. The input is as wide as the output, ``projection_dim``.
    """

    def __init__(self, config: LSTMConfig) -> None:
        super().__init__()
        self.config = config
        dim, gates = config.projection_dim, 4 * config.cell_dim
        self.input_weight = nn.Parameter(torch.empty(2, dim, gates))
        self.recurrent_weight = nn.Parameter(torch.empty(2, dim, gates))
        self.bias = nn.Parameter(torch.empty(2, gates))
        self.projection = nn.Parameter(torch.empty(2, config.cell_dim, dim)) if config.has_projection else None
        self._prepared: tuple[PreparedDirection, ...] | PreparedPair | None = None

    def prepare(self, precision: Precision) -> None:
        """Make inference faster on the device where the weights are, which must never change again."""
        clips = (self.config.cell_clip, self.config.projection_clip)
        input_weight, recurrent_weight = self.input_weight.detach(), self.recurrent_weight.detach()
        bias = self.run_time_bias().detach()
        projection = None if self.projection is None else self.projection.detach()
        if bias.device.type != "cpu":
            self._prepared = PreparedPair(input_weight, recurrent_weight, bias, projection, clips, precision)
            return
        self._prepared = tuple(
            PreparedDirection(
                input_weight[direction],
                recurrent_weight[direction],
                bias[direction],
                None if projection is None else projection[direction],
                clips,
                precision,
            )
            for direction in (0, 1)
        )

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights as bilm-tf does: Glorot uniform over each whole matrix, biases 0."""
        dim, gates = self.config.projection_dim, 4 * self.config.cell_dim
        bound = (6 / (2 * dim + gates)) ** 0.5  # the kernel holds input and recurrent rows together
        nn.init.uniform_(self.input_weight, -bound, bound, generator=generator)
        nn.init.uniform_(self.recurrent_weight, -bound, bound, generator=generator)
        nn.init.zeros_(self.bias)
        if self.projection is not None:
            bound = (6 / (self.config.cell_dim + dim)) ** 0.5
            nn.init.uniform_(self.projection, -bound, bound, generator=generator)

    def forward(
        self, x: Float[Tensor, "2 rows dim"], packing: Packing, state: LSTMState | None = None
    ) -> Float[Tensor, "2 rows dim"]:
        """Run both directions over packed rows and return the hidden states.

        Args:
            x: the layer's input, each direction in its own reading order.
            packing: layout of the rows.
            state: to start from, overwritten by where each sentence ends; None for zeros. No gradient goes into it.
        """
        bias = self.run_time_bias()
        clips = (self.config.cell_clip, self.config.projection_clip)
        weights = (self.input_weight, self.recurrent_weight, bias, self.projection)
        if torch.is_grad_enabled():
            carried = None if state is None else (state.hidden, state.cell)
            output: Tensor = LSTMFunction.apply(  # type: ignore[no-untyped-call]
                *_reduced(x, *weights), packing, *clips, carried
            )
            return output
        if isinstance(self._prepared, PreparedPair):
            state = state or self.zero_state(packing.sentence_count)
            return self._prepared.run(x, packing.step_sizes, state.hidden, state.cell)
        if self._prepared is not None:
            return self._run_prepared(self._prepared, x, packing, state or self.zero_state(packing.sentence_count))
        return run_lstm(x, *weights, packing.step_sizes, *clips, state)

    def _run_prepared(
        self,
        directions: tuple[PreparedDirection, ...],
        x: Float[Tensor, "2 rows dim"],
        packing: Packing,
        state: LSTMState,
    ) -> Float[Tensor, "2 rows dim"]:
        """Run the steps of many sentences on the prepared weights, and the others as ever."""
        output = torch.empty_like(x)
        sizes = packing.step_sizes

        def run(direction: Direction) -> None:
            prepared = directions[cast(int, direction)]  # as always on a CPU
            steps = prepared.wide_steps(sizes)
            rows = sum(sizes[:steps])
            carried = (state.hidden[direction], state.cell[direction])
            prepared.run(x[direction, :rows], sizes[:steps], output[direction, :rows], *carried)
            input_weight, recurrent_weight, bias, projection = prepared.weights
            weights = (input_weight, recurrent_weight, bias)
            tail = x[direction, rows:], output[direction, rows:]
            _run(sizes[steps:], *prepared.clips, tail[0], *weights, projection, tail[1], *carried)

        each_direction(run, x.device)
        return output

    def zero_state(self, sentences: int) -> LSTMState:
        """Return the state in which a layer starts."""
        shape = (2, sentences)
        return LSTMState(
            self.bias.new_zeros(*shape, self.config.projection_dim), self.bias.new_zeros(*shape, self.config.cell_dim)
        )

    def run_time_bias(self) -> Float[Tensor, "2 gates"]:
        """Return the bias with `FORGET_BIAS` added to the forget gate's slice."""
        cell_dim = self.config.cell_dim
        offset = torch.zeros_like(self.bias)
        offset[:, cell_dim : 2 * cell_dim] = FORGET_BIAS
        return self.bias + offset


def _reduced(*tensors: Tensor | None) -> tuple[Tensor | None, ...]:
    """Return tensors in the type that autocast asks for, if it is on: it does not look into functions of our own."""
    kind = next(tensor.device.type for tensor in tensors if tensor is not None)
    if not torch.is_autocast_enabled(kind):
        return tensors
    dtype = torch.get_autocast_dtype(kind)
    return tuple(None if tensor is None else tensor.to(dtype) for tensor in tensors)


def run_lstm(
    x: Float[Tensor, "2 rows dim"],
    input_weight: Float[Tensor, "2 dim gates"],
    recurrent_weight: Float[Tensor, "2 dim gates"],
    bias: Float[Tensor, "2 gates"],
    projection: Float[Tensor, "2 cell dim"] | None,
    step_sizes: Sequence[int],
    cell_clip: float | None,
    projection_clip: float | None,
    state: LSTMState | None = None,
) -> Float[Tensor, "2 rows dim"]:
    """Return the hidden states [2, rows, dim]; nothing is kept for a backward pass.

    ``state``, in the order of the packing's columns, is started from and overwritten by where each sentence ends.
    """
    output = torch.empty_like(x)

    def run(direction: Direction) -> None:
        weights = (input_weight[direction], recurrent_weight[direction], bias[direction])
        p = None if projection is None else projection[direction]
        carried = (None, None) if state is None else (state.hidden[direction], state.cell[direction])
        _run(step_sizes, cell_clip, projection_clip, x[direction], *weights, p, output[direction], *carried)

    each_direction(run, x.device)
    return output


def _run(
    step_sizes: Sequence[int],
    cell_clip: float | None,
    projection_clip: float | None,
    x: Float[Tensor, "*directions rows dim"],
    input_weight: Float[Tensor, "*directions dim gates"],
    recurrent_weight: Float[Tensor, "*directions dim gates"],
    bias: Float[Tensor, "*directions gates"],
    projection: Float[Tensor, "*directions cell dim"] | None,
    output: Float[Tensor, "*directions rows dim"],
    hidden: Float[Tensor, "*directions sentences dim"] | None,
    cell: Float[Tensor, "*directions sentences cell"] | None,
) -> None:
    """Compute one direction or both, into ``output``, and the final state into ``hidden`` and ``cell``.

    Input products do not depend on the state, so they are computed for many time steps at once.
    """
    h, c = hidden, cell
    for first, last, steps in step_blocks(step_sizes, _BLOCK_ROWS):
        from_input = add_product(bias.unsqueeze(-2), x[..., first:last, :], input_weight)
        start = 0
        for size in steps:
            gates = from_input[..., start : start + size, :]
            if h is not None:
                add_product_(gates, h[..., :size, :], recurrent_weight)
            h, c = advance(gates, c, projection, cell_clip, projection_clip)
            output[..., first + start : first + start + size, :] = h
            if hidden is not None and cell is not None:  # a sentence that has ended keeps what it ended with
                hidden[..., :size, :], cell[..., :size, :] = h, c
            start += size


def step_blocks(step_sizes: Sequence[int], rows: int) -> Iterator[tuple[int, int, list[int]]]:
    """Cut the time steps into blocks of at least ``rows`` rows (the last may be smaller).

    Yields:
        First row, row after the last, and the step sizes of each block.
    """
    first, last, steps = 0, 0, []
    for size in step_sizes:
        steps.append(size)
        last += size
        if last - first >= rows:
            yield first, last, steps
            first, steps = last, []
    if steps:
        yield first, last, steps
