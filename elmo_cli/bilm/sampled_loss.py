"""The sampled softmax with its gradient by hand: the logits are held once and turned into probabilities in place.

Autograd would hold them four times and pass over them some fifteen times; at thousands of negatives that is most of a
training step.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

_BLOCK_ROWS = 128  # worked on at once, so that they stay in the processor's cache


class SampledLoss(torch.autograd.Function):
    """``apply(h, own, others, own_offsets, other_offsets, hits)``: the loss in nats of each row.

    A row's candidates are its own word type and the negatives, which all rows share::

        loss = logsumexp(logits) - logits[own],  logits = h . w + offset

    Args (of ``apply``):
        h: [rows, dim].
        own, own_offsets: [rows, dim] and [rows], of each row's target.
        others, other_offsets: [negatives, dim] and [negatives].
        hits: rows and negatives that are left out, as the negative is the row's target.
    """

    @staticmethod
    def forward(
        ctx: Any,  # noqa: ANN401
        h: Float[Tensor, "rows dim"],
        own: Float[Tensor, "rows dim"],
        others: Float[Tensor, "negatives dim"],
        own_offsets: Float[Tensor, " rows"],
        other_offsets: Float[Tensor, " negatives"],
        hits: tuple[Tensor, Tensor],
    ) -> Float[Tensor, " rows"]:
        """Compute the losses and keep ``exp(logits - largest)`` of the negatives."""
        own_logits = (h * own).sum(dim=1).add_(own_offsets)
        largest, total = torch.empty_like(own_logits), torch.empty_like(own_logits)
        kept = h.new_empty(len(h), len(others))
        hit_rows, hit_negatives = hits
        for start in range(0, len(h), _BLOCK_ROWS):
            rows = slice(start, min(start + _BLOCK_ROWS, len(h)))
            logits = torch.addmm(other_offsets, h[rows], others.t(), out=kept[rows])
            here = (hit_rows >= rows.start) & (hit_rows < rows.stop)
            logits[hit_rows[here] - start, hit_negatives[here]] = -torch.inf
            torch.maximum(logits.amax(dim=1), own_logits[rows], out=largest[rows])
            logits.sub_(largest[rows, None]).exp_()
            torch.sum(logits, dim=1, out=total[rows])
        own_share = (own_logits - largest).exp_()
        total += own_share
        ctx.save_for_backward(h, own, others, kept, own_share.div_(total), total)
        return total.log() + largest - own_logits

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor | None, ...]:  # noqa: ANN401
        """Return the gradients of the five tensors, and None for the hits."""
        h, own, others, kept, own_share, total = ctx.saved_tensors
        (gradient,) = gradients
        d_own_logits = gradient * (own_share - 1)
        d_h = d_own_logits[:, None] * own
        d_others, d_other_offsets = torch.zeros_like(others), total.new_zeros(len(others))
        scale = (gradient / total)[:, None]
        for start in range(0, len(h), _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            d_logits = kept[rows] * scale[rows]
            d_h[rows].addmm_(d_logits, others)
            d_others.addmm_(d_logits.mT, h[rows])
            d_other_offsets += d_logits.sum(dim=0)
        return d_h, d_own_logits[:, None] * h, d_others, d_own_logits, d_other_offsets, None
