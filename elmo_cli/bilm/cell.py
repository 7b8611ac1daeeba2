"""One time step of the LSTM: from the gates' inputs to the new cell and hidden state."""

import torch
from jaxtyping import Float
from torch import Tensor


def advance(
    gates: Float[Tensor, "*directions rows gates"],
    c: Float[Tensor, "*directions before cell"] | None,
    projection: Float[Tensor, "*directions cell dim"] | None,
    cell_clip: float | None,
    projection_clip: float | None,
) -> tuple[Float[Tensor, "*directions rows dim"], Float[Tensor, "*directions rows cell"]]:
    """Return the hidden state and the cell after a step.

    Args:
        gates: their inputs, in the order of `config.GATES`; turned into their activations in place.
        c: the cell before, which may have more rows, of sentences that have ended; None for zeros.
        projection: of the cell's output; None where there is none.
        cell_clip: bound of the cell; None for no clipping.
        projection_clip: bound of a projected state; None for no clipping.
    """
    rows, cell_dim = gates.shape[-2], gates.shape[-1] // 4
    gates[..., : 3 * cell_dim].sigmoid_()
    i, f, o, j = gates.split(cell_dim, dim=-1)
    j.tanh_()
    c = i * j if c is None else (c[..., :rows, :] * f).addcmul_(i, j)
    if cell_clip is not None:
        c.clamp_(-cell_clip, cell_clip)
    h = torch.tanh(c).mul_(o)
    if projection is not None:
        h = h @ projection
        if projection_clip is not None:
            h.clamp_(-projection_clip, projection_clip)
    return h, c
