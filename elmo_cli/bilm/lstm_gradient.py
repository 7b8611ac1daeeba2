"""The biLSTM layer for training: a forward pass that keeps what is needed, and its gradient by hand.

Autograd would store a dozen tensors a time step and add up the weights' gradients step by step. Here the backward
pass only computes the gates' gradients in its loop over time; each weight's gradient is then one product over all
rows. Same arithmetic and layout as `lstm`.
"""

from itertools import accumulate
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

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
        cell_dim = input_weight.shape[2] // 4
        gates = torch.baddbmm(bias.unsqueeze(1), x, input_weight)  # [2, rows, 4 cell], turned into activations below
        cells = x.new_empty(2, x.shape[1], cell_dim)
        output = torch.empty_like(x)
        h = c = None
        start = 0
        for size in packing.step_sizes:
            rows = slice(start, start + size)
            now = gates[:, rows]
            if h is not None:
                now.baddbmm_(h[:, :size], recurrent_weight)
            now[..., : 3 * cell_dim].sigmoid_()
            i, f, o, j = now.split(cell_dim, dim=2)
            j.tanh_()
            c = torch.mul(i, j) if c is None else (c[:, :size] * f).addcmul_(i, j)
            if cell_clip is not None:
                c.clamp_(-cell_clip, cell_clip)
            cells[:, rows] = c
            h = torch.tanh(c).mul_(o)
            if projection is not None:
                h = torch.bmm(h, projection)
                if projection_clip is not None:
                    h.clamp_(-projection_clip, projection_clip)
            output[:, rows] = h
            start += size
        ctx.save_for_backward(x, input_weight, recurrent_weight, projection, gates, cells, output)
        ctx.packing, ctx.cell_clip, ctx.projection_clip = packing, cell_clip, projection_clip
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of the five tensors, and None for the three settings."""
        x, input_weight, recurrent_weight, projection, gates, cells, output = ctx.saved_tensors
        packing: Packing = ctx.packing
        d_output = gradients[0].clone(memory_format=torch.contiguous_format)
        d_gates = _gate_gradients(
            d_output,
            recurrent_weight,
            projection,
            gates,
            cells,
            output,
            packing.step_sizes,
            ctx.cell_clip,
            ctx.projection_clip,
        )
        d_input_weight = torch.bmm(x.transpose(1, 2), d_gates)
        before = output.index_select(1, packing.previous)  # the hidden state each later row started from
        d_recurrent_weight = torch.bmm(before.transpose(1, 2), d_gates[:, packing.sentence_count :])
        d_projection = None
        if projection is not None:
            m = gates[..., 2 * cells.shape[2] : 3 * cells.shape[2]] * torch.tanh(cells)
            d_projection = torch.bmm(m.transpose(1, 2), d_output)  # d_output: by now masked and with later steps' part
        d_x = torch.bmm(d_gates, input_weight.transpose(1, 2)) if ctx.needs_input_grad[0] else None
        return d_x, d_input_weight, d_recurrent_weight, d_gates.sum(dim=1), d_projection, None, None, None


def _gate_gradients(
    d_output: Float[Tensor, "2 rows dim"],
    recurrent_weight: Float[Tensor, "2 dim gates"],
    projection: Float[Tensor, "2 cell dim"] | None,
    gates: Float[Tensor, "2 rows gates"],
    cells: Float[Tensor, "2 rows cell"],
    output: Float[Tensor, "2 rows dim"],
    step_sizes: tuple[int, ...],
    cell_clip: float | None,
    projection_clip: float | None,
) -> Float[Tensor, "2 rows gates"]:
    """Go back through time; return the gradients before the gates' activations.

    ``d_output`` is changed in place into the gradient before the projection's clip, later steps' part included.
    A value that was clipped equals its bound, and no gradient passes it.
    """
    cell_dim = cells.shape[2]
    d_gates = torch.empty_like(gates)
    starts = list(accumulate(step_sizes, initial=0))
    d_next_gates = d_next_cell = None
    for t in range(len(step_sizes) - 1, -1, -1):
        size, rows = step_sizes[t], slice(starts[t], starts[t + 1])
        d_h, c = d_output[:, rows], cells[:, rows]
        if d_next_gates is not None:
            d_h[:, : d_next_gates.shape[1]].baddbmm_(d_next_gates, recurrent_weight.transpose(1, 2))
        d_m = d_h
        if projection is not None:
            if projection_clip is not None:
                d_h.masked_fill_(output[:, rows].abs() >= projection_clip, 0.0)
            d_m = torch.bmm(d_h, projection.transpose(1, 2))
        i, f, o, j = gates[:, rows].split(cell_dim, dim=2)
        now = d_gates[:, rows]
        d_i, d_f, d_o, d_j = now.split(cell_dim, dim=2)
        tanh_c = torch.tanh(c)
        torch.mul(d_m, tanh_c, out=d_o)
        d_c = torch.mul(d_m, o)
        _tanh_backward(d_c, tanh_c, grad_input=d_c)
        if d_next_cell is not None:
            d_c[:, : d_next_cell.shape[1]] += d_next_cell
        if cell_clip is not None:
            d_c.masked_fill_(c.abs() >= cell_clip, 0.0)
        torch.mul(d_c, j, out=d_i)
        torch.mul(d_c, i, out=d_j)
        _tanh_backward(d_j, j, grad_input=d_j)
        if t > 0:
            torch.mul(d_c, cells[:, starts[t - 1] : starts[t - 1] + size], out=d_f)
        else:
            d_f.zero_()  # the cell before the first token is zero
        sigmoids = slice(0, 3 * cell_dim)
        _sigmoid_backward(now[..., sigmoids], gates[:, rows, sigmoids], grad_input=now[..., sigmoids])
        d_next_gates, d_next_cell = now, d_c.mul_(f)
    return d_gates
