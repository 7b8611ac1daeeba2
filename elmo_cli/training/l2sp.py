"""Fine-tuned weights drawn back to those they started from, so that what was known before is not forgotten."""

import torch
from torch import Tensor, nn

from elmo_cli.bilm.language_model import LanguageModel


class Anchor:
    """The penalty ``strength / 2 * sum((w - w0)^2)`` over all weights taken from a base (L2-SP, Li et al. 2018).

    Its gradient is ``strength * (w - w0)``. It goes past Adam, as weight decay does in AdamW: beside Adam's step each
    weight moves by ``learning_rate * strength`` of its way back to w0. Inside Adam the pull would be divided by the
    size of the loss's own gradient, and be strongest where the text says least.

    Of a softmax whose gradient holds only the rows that a step used, those rows are drawn back and no others: the
    others have not moved in this step.

    Args:
        model: with the weights w0; those that are frozen need no anchor.
        strength: of the penalty, above 0.
        softmax_rows: first rows of the softmax that come from the base; what was added to them is free to move.
    """

    def __init__(self, model: LanguageModel, strength: float, softmax_rows: int) -> None:
        self.strength = strength
        self._whole = [_with_origin(parameter) for parameter in model.bilm.parameters() if parameter.requires_grad]
        rows = (model.softmax.weight, model.softmax.bias) if softmax_rows else ()
        self._rows = [_with_origin(parameter, softmax_rows) for parameter in rows if parameter.requires_grad]

    @torch.no_grad()
    def pull(self, learning_rate: float) -> None:
        """Draw the weights back, while the gradients of the step are still there to tell which rows it used."""
        share = min(1.0, learning_rate * self.strength)  # past w0 the pull would push
        for parameter, origin in self._whole:
            parameter.lerp_(origin, share)
        for parameter, origin in self._rows:
            if parameter.grad is not None and parameter.grad.is_sparse:
                used = parameter.grad.indices()[0]
                used = used[used < len(origin)]
                parameter[used] = parameter[used].lerp_(origin[used], share)
            else:
                parameter[: len(origin)].lerp_(origin, share)


def _with_origin(parameter: nn.Parameter, rows: int | None = None) -> tuple[nn.Parameter, Tensor]:
    return parameter, parameter.detach()[:rows].clone()
