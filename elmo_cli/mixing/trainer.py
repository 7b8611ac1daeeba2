"""The one loop in which anything is learned from labels on top of frozen layers: mixes now, task models next.

It knows neither layers nor labels: a learner computes the loss of a batch, and a function scores it on the dev text.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor, nn

from elmo_cli.errors import TrainingDiverged
from elmo_cli.mixing.learn_settings import FitSettings

Batch = TypeVar("Batch")


@dataclass(frozen=True, slots=True)
class DevResult:
    """How good a learner is on the dev text.

    Attributes:
        score: larger is better.
        loss: mean, in nats a label; it decides where scores are equal, as while no span has been found yet.
    """

    score: float
    loss: float

    def is_better_than(self, other: "DevResult") -> bool:
        """Tell whether this is the better one."""
        return (self.score, -self.loss) > (other.score, -other.loss)


def fit(
    learner: nn.Module,
    loss: Callable[[Batch], Tensor],
    batches: Callable[[], Iterable[Batch]],
    evaluate: Callable[[], DevResult],
    settings: FitSettings,
    *,
    on_epoch: Callable[[int, float], None],
) -> None:
    """Learn until the dev score gets no better, and leave the learner with the weights of its best epoch.

    Args:
        learner: whose parameters are learned, but for those that need no gradient.
        loss: of a batch, by the learner.
        batches: of an epoch, in an order of its own each time.
        evaluate: on the dev text; called with the learner in inference mode.
        settings: how long and how fast.
        on_epoch: told the number of the epoch, from 1, and the score.

    Raises:
        TrainingDiverged: a loss is not finite.
    """
    parameters = [parameter for parameter in learner.parameters() if parameter.requires_grad]
    optimizer = torch.optim.Adam(parameters, lr=settings.learning_rate)
    best: DevResult | None = None
    best_epoch, state = 0, {}
    epoch = 0
    while epoch < settings.epochs and epoch - best_epoch < settings.patience:
        epoch += 1
        learner.train()
        for batch in batches():
            optimizer.zero_grad()
            value = loss(batch)
            if not torch.isfinite(value):
                raise TrainingDiverged(f"the loss is {value.item()} in epoch {epoch}", fix="set a lower --rate")
            value.backward()
            nn.utils.clip_grad_norm_(parameters, settings.clip_norm)
            optimizer.step()
        learner.eval()
        with torch.inference_mode():
            found = evaluate()
        if best is None or found.is_better_than(best):
            best, best_epoch = found, epoch
            state = {name: tensor.detach().clone() for name, tensor in learner.state_dict().items()}
        on_epoch(epoch, found.score)
    if best is None:
        raise ValueError("there has to be an epoch")
    learner.load_state_dict(state)
    learner.eval()
