"""The biLSTM layer for training: a forward pass that keeps what is needed, and its gradient by hand.

Autograd would store a dozen tensors a time step and add up the weights' gradients step by step. Here the backward
pass only computes the gates' gradients in its loop over time; each weight's gradient is then one product over all
rows. Same arithmetic and layout as `lstm`.
"""

from functools import partial
from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.cell import advance
from elmo_cli.bilm.directions import add_product, add_product_, over_directions
from elmo_cli.bilm.packing import Packing

_sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
_tanh_backward = torch.ops.aten.tanh_backward.grad_input


class LSTMFunction(torch.autograd.Function):
    """``apply(x, input_weight, recurrent_weight, bias, projection, packing, cell_clip, projection_clip)``.

    Takes and returns what `lstm.run_lstm` does.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        x: Float[Tensor, "2 rows dim"],
        input_weight: Float[Tensor, "2 dim gates"],
        recurrent_weight: Float[Tensor, "2 dim gates"],
        bias: Float[Tensor, "2 gates"],
        projection: Float[Tensor, "2 cell dim"] | None,
        packing: Packing,
        cell_clip: float | None,
        projection_clip: float | None,
    ) -> Float[Tensor, "2 rows dim"]:
        """Run both directions and keep the gates' and cells' values of every row."""
        gates = torch.empty(2, x.shape[1], input_weight.shape[2], dtype=x.dtype, device=x.device)
        cells = torch.empty(2, x.shape[1], input_weight.shape[2] // 4, dtype=x.dtype, device=x.device)
        output = torch.empty_like(x)
        compute = partial(_forward, packing.step_sizes, cell_clip, projection_clip)
        over_directions(compute, x, input_weight, recurrent_weight, bias, projection, gates, cells, output)
        ctx.save_for_backward(x, input_weight, recurrent_weight, projection, gates, cells, output)
        ctx.packing, ctx.cell_clip, ctx.projection_clip = packing, cell_clip, projection_clip
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of the five tensors, and None for the three settings."""
        x, input_weight, recurrent_weight, projection, gates, cells, output = ctx.saved_tensors
        d_output = gradients[0].clone(memory_format=torch.contiguous_format)
        d_x = torch.empty_like(x)
        d_input_weight, d_recurrent_weight = torch.empty_like(input_weight), torch.empty_like(recurrent_weight)
        d_bias = torch.empty_like(input_weight[:, 0])
        d_projection = None if projection is None else torch.empty_like(projection)
        compute = partial(_backward, ctx.packing, ctx.cell_clip, ctx.projection_clip)
        weights = (input_weight, recurrent_weight, projection)
        d_weights = (d_input_weight, d_recurrent_weight, d_bias, d_projection)
        over_directions(compute, x, *weights, gates, cells, output, d_output, d_x, *d_weights)
        return d_x, *d_weights, None, None, None


def _forward(
    step_sizes: tuple[int, ...],
    cell_clip: float | None,
    projection_clip: float | None,
    x: Float[Tensor, "*directions rows dim"],
    input_weight: Float[Tensor, "*directions dim gates"],
    recurrent_weight: Float[Tensor, "*directions dim gates"],
    bias: Float[Tensor, "*directions gates"],
    projection: Float[Tensor, "*directions cell dim"] | None,
    gates: Float[Tensor, "*directions rows gates"],
    cells: Float[Tensor, "*directions rows cell"],
    output: Float[Tensor, "*directions rows dim"],
) -> None:
    """Compute one direction or both, into the last three: the gates after their activations, cells, hidden states."""
    gates.copy_(add_product(bias.unsqueeze(-2), x, input_weight))
    h = c = None
    start = 0
    for size in step_sizes:
        now = gates[..., start : start + size, :]
        if h is not None:
            add_product_(now, h[..., :size, :], recurrent_weight)
        h, c = advance(now, c, projection, cell_clip, projection_clip)
        cells[..., start : start + size, :] = c
        output[..., start : start + size, :] = h
        start += size


def _backward(
    packing: Packing,
    cell_clip: float | None,
    projection_clip: float | None,
    x: Float[Tensor, "*directions rows dim"],
    input_weight: Float[Tensor, "*directions dim gates"],
    recurrent_weight: Float[Tensor, "*directions dim gates"],
    projection: Float[Tensor, "*directions cell dim"] | None,
    gates: Float[Tensor, "*directions rows gates"],
    cells: Float[Tensor, "*directions rows cell"],
    output: Float[Tensor, "*directions rows dim"],
    d_output: Float[Tensor, "*directions rows dim"],
    d_x: Float[Tensor, "*directions rows dim"],
    d_input_weight: Float[Tensor, "*directions dim gates"],
    d_recurrent_weight: Float[Tensor, "*directions dim gates"],
    d_bias: Float[Tensor, "*directions gates"],
    d_projection: Float[Tensor, "*directions cell dim"] | None,
) -> None:
    """Compute the gradients of one direction or both, into the last five tensors; ``d_output`` is used up."""
    d_gates = _gate_gradients(
        packing.step_sizes, cell_clip, projection_clip, d_output, recurrent_weight, projection, gates, cells, output
    )
    before = output.index_select(-2, packing.previous)  # the hidden state each later row started from
    d_x.copy_(d_gates @ input_weight.mT)
    d_input_weight.copy_(x.mT @ d_gates)
    d_recurrent_weight.copy_(before.mT @ d_gates[..., packing.sentence_count :, :])
    d_bias.copy_(d_gates.sum(dim=-2))
    if d_projection is not None:
        o = gates[..., 2 * cells.shape[-1] : 3 * cells.shape[-1]]
        # By now d_output is the gradient before the clip, with what came from later steps.
        d_projection.copy_((o * torch.tanh(cells)).mT @ d_output)


def _gate_gradients(
    step_sizes: tuple[int, ...],
    cell_clip: float | None,
    projection_clip: float | None,
    d_output: Float[Tensor, "*directions rows dim"],
    recurrent_weight: Float[Tensor, "*directions dim gates"],
    projection: Float[Tensor, "*directions cell dim"] | None,
    gates: Float[Tensor, "*directions rows gates"],
    cells: Float[Tensor, "*directions rows cell"],
    output: Float[Tensor, "*directions rows dim"],
) -> Float[Tensor, "*directions rows gates"]:
    """Go back through time; return the gradients before the gates' activations.

    ``d_output`` is changed in place into the gradient before the projection's clip, later steps' part included.
    A value that was clipped equals its bound, and no gradient passes it.
    """
    cell_dim = cells.shape[-1]
    d_gates = torch.empty_like(gates)
    starts = list(accumulate(step_sizes, initial=0))
    d_next_gates = d_next_cell = None
    for t in range(len(step_sizes) - 1, -1, -1):
        size, rows = step_sizes[t], slice(starts[t], starts[t + 1])
        d_h, c = d_output[..., rows, :], cells[..., rows, :]
        if d_next_gates is not None:
            add_product_(d_h[..., : d_next_gates.shape[-2], :], d_next_gates, recurrent_weight.mT)
        d_m = d_h
        if projection is not None:
            if projection_clip is not None:
                d_h.masked_fill_(output[..., rows, :].abs() >= projection_clip, 0.0)
            d_m = d_h @ projection.mT
        i, f, o, j = gates[..., rows, :].split(cell_dim, dim=-1)
        now = d_gates[..., rows, :]
        d_i, d_f, d_o, d_j = now.split(cell_dim, dim=-1)
        tanh_c = torch.tanh(c)
        torch.mul(d_m, tanh_c, out=d_o)
        d_c = torch.mul(d_m, o)
        _tanh_backward(d_c, tanh_c, grad_input=d_c)
        if d_next_cell is not None:
            d_c[..., : d_next_cell.shape[-2], :] += d_next_cell
        if cell_clip is not None:
            d_c.masked_fill_(c.abs() >= cell_clip, 0.0)
        torch.mul(d_c, j, out=d_i)
        torch.mul(d_c, i, out=d_j)
        _tanh_backward(d_j, j, grad_input=d_j)
        if t > 0:
            torch.mul(d_c, cells[..., starts[t - 1] : starts[t - 1] + size, :], out=d_f)
        else:
            d_f.zero_()  # the cell before the first token is zero
        d_sigmoids = now[..., : 3 * cell_dim]
        _sigmoid_backward(d_sigmoids, gates[..., rows, : 3 * cell_dim], grad_input=d_sigmoids)
        d_next_gates, d_next_cell = now, d_c.mul_(f)
    return d_gates
