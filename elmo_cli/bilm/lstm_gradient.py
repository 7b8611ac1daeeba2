"""The biLSTM layer for training: a forward pass that keeps what is needed, and its gradient by hand.

Autograd would store a dozen tensors a time step and add up the weights' gradients step by step. Here the backward
pass only computes the gates' gradients in its loop over time; each weight's gradient is then one product over all
rows. Same arithmetic and layout as `lstm`; as in `lstm_inference`, input and hidden state of a step are multiplied
together, and one sigmoid serves all four gates.
"""

from dataclasses import dataclass
from itertools import accumulate, zip_longest
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.directions import Direction, add_product_, each_direction
from elmo_cli.bilm.packing import Packing
from elmo_cli.bilm.products import prepare_gates

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input
_clip_backward = torch.ops.aten.hardtanh_backward.grad_input  # none passes where a value equals its bound


@dataclass(slots=True)
class _Kept:
    """What the backward pass needs of a direction, or of both stacked: rows of all steps, or a tensor a step.

    Attributes:
        inputs: [..., rows, 2 * dim], the layer's input and the hidden state from before the step.
        gates: [..., rows, 4 * cell] a step, after their activations.
        cells: [..., rows, cell] a step, after the clip.
        squashed: their tanh.
        unprojected: [..., rows, cell], what the projection reads.
        first_cell: [..., sentences, cell], before the first step; None for zeros.
    """

    inputs: Tensor
    gates: list[Tensor]
    cells: list[Tensor]
    squashed: list[Tensor]
    unprojected: Tensor
    first_cell: Tensor | None


@dataclass(frozen=True, slots=True)
class _Layer:
    """A layer's weights and the layout of its rows."""

    input_weight: Float[Tensor, "2 dim gates"]
    recurrent_weight: Float[Tensor, "2 dim gates"]
    bias: Float[Tensor, "2 gates"]
    projection: Float[Tensor, "2 cell dim"] | None
    packing: Packing
    cell_clip: float | None
    projection_clip: float | None


class LSTMFunction(torch.autograd.Function):
    """``apply(x, input_weight, recurrent_weight, bias, projection, packing, cell_clip, projection_clip, state)``.

    Takes and returns what `lstm.run_lstm` does. The state is a pair of hidden states and cells, or None; it is
    overwritten by where the sentences end, and takes no gradient.
    """

    @staticmethod
    def forward(ctx: Any, x: Float[Tensor, "2 rows dim"], *layer: Any) -> Float[Tensor, "2 rows dim"]:  # noqa: ANN401
        """Run both directions and keep what `_Kept` says."""
        *settings, state = layer
        ctx.layer = _Layer(*settings)
        ctx.kept = {}
        output = torch.empty_like(x)

        def run(direction: Direction) -> None:
            own = None if state is None else (state[0][direction], state[1][direction])
            ctx.kept[direction] = _forward(ctx.layer, direction, x[direction], output[direction], own)

        each_direction(run, x.device)
        ctx.save_for_backward(output)
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of the five tensors, and None for the three settings and the state."""
        layer: _Layer = ctx.layer
        (output,) = ctx.saved_tensors
        d_output = gradients[0].clone(memory_format=torch.contiguous_format)
        d_x = torch.empty_like(output)
        weights = (layer.input_weight, layer.recurrent_weight, layer.bias, layer.projection)
        d_weights = tuple(None if weight is None else torch.empty_like(weight) for weight in weights)

        def run(direction: Direction) -> None:
            found = _backward(layer, direction, ctx.kept[direction], output[direction], d_output[direction])
            for whole, part in zip((d_x, *d_weights), found, strict=True):
                if whole is not None and part is not None:
                    whole[direction] = part

        each_direction(run, output.device)
        return d_x, *d_weights, None, None, None, None


def _forward(
    layer: _Layer,
    direction: Direction,
    x: Float[Tensor, "*directions rows dim"],
    output: Float[Tensor, "*directions rows dim"],
    state: tuple[Tensor, Tensor] | None,
) -> _Kept:
    """Compute one direction or both, into ``output``, and the final state into ``state``."""
    dim, cell_dim = x.shape[-1], layer.bias.shape[-1] // 4
    gates_of = prepare_gates(layer.input_weight[direction], layer.recurrent_weight[direction], layer.bias[direction])
    projection = None if layer.projection is None else layer.projection[direction]
    inputs = x.new_empty(*x.shape[:-1], 2 * dim)
    inputs[..., :dim] = x
    inputs[..., : layer.packing.sentence_count, dim:] = 0 if state is None else state[0]
    first_cell = None if state is None else state[1].to(x.dtype, copy=True)
    kept = _Kept(inputs, [], [], [], x.new_empty(*x.shape[:-1], cell_dim), first_cell)
    c = first_cell
    sizes = layer.packing.step_sizes
    start = 0
    for size, next_size in zip_longest(sizes, sizes[1:], fillvalue=0):
        end = start + size
        gates = gates_of(inputs[..., start:end, :])
        i, f, o, j = gates.split(cell_dim, dim=-1)
        j.mul_(2).sub_(1)
        c = i * j if c is None else (c[..., :size, :] * f).addcmul_(i, j)
        if layer.cell_clip is not None:
            c.clamp_(-layer.cell_clip, layer.cell_clip)
        squashed = torch.mul(c, 2).sigmoid_().mul_(2).sub_(1)
        h = unprojected = torch.mul(o, squashed, out=kept.unprojected[..., start:end, :])
        if projection is not None:
            h = unprojected @ projection
            if layer.projection_clip is not None:
                h.clamp_(-layer.projection_clip, layer.projection_clip)
        output[..., start:end, :] = h
        if state is not None:  # a sentence that has ended keeps what it ended with
            state[0][..., :size, :], state[1][..., :size, :] = h, c
        inputs[..., end : end + next_size, dim:] = h[..., :next_size, :]
        kept.gates.append(gates)
        kept.cells.append(c)
        kept.squashed.append(squashed)
        start = end
    return kept


def _backward(
    layer: _Layer,
    direction: Direction,
    kept: _Kept,
    output: Float[Tensor, "*directions rows dim"],
    d_output: Float[Tensor, "*directions rows dim"],
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor | None]:
    """Return the gradients of x and of the four weights, of one direction or both; ``d_output`` is used up."""
    dim = output.shape[-1]
    d_gates = _gate_gradients(layer, direction, kept, output, d_output)
    d_weight = kept.inputs.mT @ d_gates
    # By now d_output is the gradient before the clip, with what came from later steps.
    d_projection = None if layer.projection is None else kept.unprojected.mT @ d_output
    d_x = d_gates @ layer.input_weight[direction].mT
    return d_x, d_weight[..., :dim, :], d_weight[..., dim:, :], d_gates.sum(dim=-2), d_projection


def _gate_gradients(
    layer: _Layer,
    direction: Direction,
    kept: _Kept,
    output: Float[Tensor, "*directions rows dim"],
    d_output: Float[Tensor, "*directions rows dim"],
) -> Float[Tensor, "*directions rows gates"]:
    """Go back through time; return the gradients before the gates' activations.

    ``d_output`` is changed in place into the gradient before the projection's clip, later steps' part included.
    """
    sizes, cell_dim = layer.packing.step_sizes, layer.bias.shape[-1] // 4
    recurrent = layer.recurrent_weight[direction].mT
    projection = None if layer.projection is None else layer.projection[direction].mT
    d_gates = output.new_empty(*output.shape[:-1], 4 * cell_dim)
    starts = list(accumulate(sizes, initial=0))
    d_next_gates = d_next_cell = None
    for t in range(len(sizes) - 1, -1, -1):
        rows = slice(starts[t], starts[t + 1])
        d_h, c, squashed = d_output[..., rows, :], kept.cells[t], kept.squashed[t]
        if d_next_gates is not None:
            add_product_(d_h[..., : d_next_gates.shape[-2], :], d_next_gates, recurrent)
        d_m = d_h
        if projection is not None:
            if layer.projection_clip is not None:
                clip = layer.projection_clip
                _clip_backward(d_h, output[..., rows, :], -clip, clip, grad_input=d_h)
            d_m = d_h @ projection
        i, f, o, j = kept.gates[t].split(cell_dim, dim=-1)
        now = d_gates[..., rows, :]
        d_i, d_f, d_o, d_j = now.split(cell_dim, dim=-1)
        torch.mul(d_m, squashed, out=d_o)
        d_c = torch.mul(d_m, o)
        _tanh_backward(d_c, squashed, grad_input=d_c)
        if d_next_cell is not None:
            d_c[..., : d_next_cell.shape[-2], :] += d_next_cell
        if layer.cell_clip is not None:
            _clip_backward(d_c, c, -layer.cell_clip, layer.cell_clip, grad_input=d_c)
        torch.mul(d_c, j, out=d_i)
        torch.mul(d_c, i, out=d_j)
        _tanh_backward(d_j, j, grad_input=d_j)
        before = kept.cells[t - 1] if t > 0 else kept.first_cell
        if before is not None:
            torch.mul(d_c, before[..., : sizes[t], :], out=d_f)
        else:
            d_f.zero_()  # the cell before the first token is zero
        d_sigmoids = now[..., : 3 * cell_dim]
        _sigmoid_backward(d_sigmoids, kept.gates[t][..., : 3 * cell_dim], grad_input=d_sigmoids)
        d_next_gates, d_next_cell = now, d_c.mul_(f)
    return d_gates
