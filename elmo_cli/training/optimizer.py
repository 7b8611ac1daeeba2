"""One update of all weights: clipped by one global norm, Adam, a rate that rises and then falls to nearly zero."""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import TrainingSettings

_BETAS = (0.9, 0.99)  # a second-moment memory of 100 steps: runs of a few thousand steps have no time for 1,000
_FINAL_RATE = 0.02  # of the highest


class Optimizer:
    """Adam for all weights; for a softmax with sparse gradients, Adam on the rows that a step used.

    Args:
        model: whose weights are updated.
        settings: rates and clipping.
    """

    def __init__(self, model: LanguageModel, settings: TrainingSettings) -> None:
        self.settings = settings
        softmax_rows = [model.softmax.weight] if model.softmax.sparse else []
        dense = [p for p in model.parameters() if all(p is not row for row in softmax_rows)]
        self.parameters = [*dense, *softmax_rows]
        self.parts: list[torch.optim.Optimizer] = [torch.optim.Adam(dense, betas=_BETAS)]
        if softmax_rows:
            self.parts.append(torch.optim.SparseAdam(softmax_rows, betas=_BETAS))

    def update(self, learning_rate: float) -> float:
        """Apply the gradients and clear them.

        Returns:
            The gradient's norm before clipping; nothing is changed when it is not finite.
        """
        gradients = list(_gradient_values(self.parameters))
        norm = float(torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in gradients])))
        if math.isfinite(norm):
            if norm > self.settings.clip_norm:
                torch._foreach_mul_(gradients, self.settings.clip_norm / norm)
            for part in self.parts:
                part.param_groups[0]["lr"] = learning_rate
                part.step()
        for part in self.parts:
            part.zero_grad()
        return norm

    def state(self) -> tuple[dict[str, Tensor], int]:
        """Return the moments of every parameter, by name, and the number of updates made."""
        tensors: dict[str, Tensor] = {}
        steps = 0
        for number, parameter in enumerate(self.parameters):
            for part in self.parts:
                state = part.state.get(parameter, {})
                steps = int(state.get("step", steps))
                tensors |= {f"{number}.{name}": state[name] for name in ("exp_avg", "exp_avg_sq") if name in state}
        return tensors, steps

    def load_state(self, tensors: dict[str, Tensor], steps: int) -> None:
        """Take over a state returned by `state`."""
        for part in self.parts:
            sparse = isinstance(part, torch.optim.SparseAdam)
            for parameter in part.param_groups[0]["params"]:
                number = next(i for i, p in enumerate(self.parameters) if p is parameter)
                if f"{number}.exp_avg" in tensors:
                    part.state[parameter] = {
                        "step": steps if sparse else torch.tensor(float(steps)),
                        **{
                            name: tensors[f"{number}.{name}"].to(parameter.device) for name in ("exp_avg", "exp_avg_sq")
                        },
                    }


def learning_rate(settings: TrainingSettings, step: int, share_done: float) -> float:
    """Return the rate of a step: a linear rise over the warm-up, then a linear fall with the share of the run done.

    Args:
        settings: highest rate and length of the warm-up.
        step: counted from 0.
        share_done: 0 at the start of the run, 1 at its end.
    """
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
