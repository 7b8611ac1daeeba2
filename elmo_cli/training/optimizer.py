"""One update of all weights, clipped by one global norm: Adam with a rate that rises and falls, or Adagrad."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import TrainingSettings
from elmo_cli.training.l2sp import Anchor

_BETAS = (0.9, 0.99)  # a second-moment memory of 100 steps: runs of a few thousand steps have no time for 1,000
_FINAL_RATE = 0.02  # of the highest
_MOMENTS = ("exp_avg", "exp_avg_sq", "sum")  # what the optimizers remember of each weight: Adam two, Adagrad one


class Optimizer:
    """Adam for all weights; for a softmax with sparse gradients, Adam on the rows that a step used.

    With the recipe ``bilm-tf``, Adagrad whose sums start at 1, for all weights: rows without a gradient do not move.

    Args:
        model: whose weights are updated.
        settings: recipe and clipping.
        anchor: draws the weights back to those of a base, after each of Adam's steps; None for no such thing.

    Attributes:
        dense: parameters whose gradient is a whole tensor.
        sparse: parameters whose gradient holds only the rows that a step used.
    """

    def __init__(self, model: LanguageModel, settings: TrainingSettings, anchor: Anchor | None = None) -> None:
        self.settings = settings
        self.anchor = anchor
        self.sparse = [model.softmax.weight] if model.softmax.sparse else []
        self.dense = [p for p in model.parameters() if all(p is not row for row in self.sparse)]
        self.parameters = [*self.dense, *self.sparse]
        self.parts: list[torch.optim.Optimizer] = []
        if settings.recipe == "bilm-tf":
            self.parts.append(torch.optim.Adagrad(self.parameters, initial_accumulator_value=1.0, eps=0.0))
        else:
            self.parts.append(torch.optim.Adam(self.dense, betas=_BETAS))
            if self.sparse:
                self.parts.append(torch.optim.SparseAdam(self.sparse, betas=_BETAS))

    def update(self, learning_rate: float, loss_scale: float = 1.0) -> float:
        """Apply the gradients and clear them.

        Args:
            learning_rate: of this update.
            loss_scale: what the loss was multiplied with; the gradients are divided by it.

        Returns:
            The gradient's norm before clipping; nothing is changed when it is not finite.
        """
        gradients = list(_gradient_values(self.parameters))
        norms = torch.stack([torch.linalg.vector_norm(g) for g in gradients])
        norm = float(torch.linalg.vector_norm(norms)) / loss_scale
        if math.isfinite(norm):
            factor = min(1.0, self.settings.clip_norm / norm if norm else 1.0) / loss_scale
            if factor != 1:
                torch._foreach_mul_(gradients, factor)
            with torch.sparse.check_sparse_tensor_invariants(False):  # said aloud, or Adagrad warns that it is so
                for part in self.parts:
                    part.param_groups[0]["lr"] = learning_rate
                    part.step()
            if self.anchor is not None:
                self.anchor.pull(learning_rate)
        self.clear()
        return norm

    def clear(self) -> None:
        """Forget the gradients."""
        for part in self.parts:
            part.zero_grad()

    def state(self) -> tuple[dict[str, Tensor], int]:
        """Return the moments of every parameter, by name, and the number of updates made."""
        tensors: dict[str, Tensor] = {}
        steps = 0
        for number, parameter in enumerate(self.parameters):
            for part in self.parts:
                state = part.state.get(parameter, {})
                steps = int(state.get("step", steps))
                tensors |= {f"{number}.{name}": state[name] for name in _MOMENTS if name in state}
        return tensors, steps

    def load_state(self, tensors: dict[str, Tensor], steps: int) -> None:
        """Take over a copy of a state returned by `state`."""
        for part in self.parts:
            part.state.clear()
            sparse = isinstance(part, torch.optim.SparseAdam)
            for parameter in part.param_groups[0]["params"]:
                number = next(i for i, p in enumerate(self.parameters) if p is parameter)
                moments = {
                    name: tensors[f"{number}.{name}"].to(parameter.device, copy=True)
                    for name in _MOMENTS
                    if f"{number}.{name}" in tensors
                }
                if any(moment.shape != parameter.shape for moment in moments.values()):
                    raise ValueError(f"a moment of the optimizer has not the shape {list(parameter.shape)}")
                if moments:
                    part.state[parameter] = {"step": steps if sparse else torch.tensor(float(steps)), **moments}


def learning_rate(settings: TrainingSettings, step: int, share_done: float) -> float:
    """Return the rate of a step: a linear rise over the warm-up, then a linear fall with the share of the run done.

    The recipe ``bilm-tf`` has one rate throughout: Adagrad's own sums let its steps shrink.

    Args:
        settings: recipe, highest rate and length of the warm-up.
        step: counted from 0.
        share_done: 0 at the start of the run, 1 at its end.
    """
    if settings.recipe == "bilm-tf":
        return settings.learning_rate
    rise = min(1.0, (step + 1) / settings.warmup_steps) if settings.warmup_steps else 1.0
    return settings.learning_rate * rise * max(_FINAL_RATE, 1.0 - share_done)


def _gradient_values(parameters: Iterable[Tensor]) -> Iterable[Tensor]:
    """Yield the values of each gradient; sparse ones are first brought to one entry a row."""
    for parameter in parameters:
        if parameter.grad is None:
            continue
        if parameter.grad.is_sparse:
            parameter.grad = parameter.grad.coalesce()
            yield parameter.grad.values()
        else:
            yield parameter.grad
