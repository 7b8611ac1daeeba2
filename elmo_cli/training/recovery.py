"""What a run does when its loss is lost: it goes back to the last good state and on from there at half the rate.

Good states are taken at fixed steps and lie in memory, not only on the disk: which one a run goes back to must not
depend on when it last happened to write a checkpoint, or a resumed run would differ from one that was never stopped.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any

from elmo_cli.storage.checkpoints import Checkpoint, checked_fields

GOOD_STATE_STEPS = 100  # between good states
TRIES = 3  # from one good state
_MEMORY = 0.98  # of the smoothed loss: about 50 steps, over which short and long sentences level out
_DIVERGING_NATS = 2.0  # above its lowest: every word seven times less likely than it was once
_DIVERGING_STEPS = 200  # in a row, so that a spike from which a run recovers by itself is none
_HEALTHY_NATS = 0.5  # above its lowest, at most, where a state is taken as good


@dataclass(slots=True)
class Health:
    """How a run's loss is doing. Kept in each checkpoint, as what happens next depends on it.

    Attributes:
        rate_scale: what the learning rate is multiplied with: 1, halved each time the run goes back.
        tries: times it went back since it last got past the step where it was lost.
        lost_step: that step; -1 while there was none.
        smoothed: the loss in nats, a mean that forgets; None before the first step.
        lowest: of the smoothed loss.
        steps_above: steps in a row for which it has been far above.
        good_step: step of the good state to go back to.
    """

    rate_scale: float = 1.0
    tries: int = 0
    lost_step: int = -1
    smoothed: float | None = None
    lowest: float = math.inf
    steps_above: int = 0
    good_step: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint holds them."""
        return {**asdict(self), "lowest": self.lowest if math.isfinite(self.lowest) else None}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Health":
        """Read what `to_json` returned."""
        return cls(
            **checked_fields(cls, {**values, "lowest": math.inf if values["lowest"] is None else values["lowest"]})
        )

    def note(self, loss: float) -> bool:
        """Take in a finite loss; return whether the run diverges: its smoothed loss is far above its lowest for long.

        A healthy run's does not rise by `_DIVERGING_NATS` in all of its course: batches come from the whole text in
        random order, and a text has no part so different from all others for that.
        """
        self.smoothed = loss if self.smoothed is None else _MEMORY * self.smoothed + (1 - _MEMORY) * loss
        self.lowest = min(self.lowest, self.smoothed)
        self.steps_above = self.steps_above + 1 if self.smoothed > self.lowest + _DIVERGING_NATS else 0
        return self.steps_above >= _DIVERGING_STEPS

    def is_good(self, step: int) -> bool:
        """Tell whether the state after ``step`` steps is one to come back to."""
        at_fixed_step = step % GOOD_STATE_STEPS == 0
        return at_fixed_step and (self.smoothed is None or self.smoothed <= self.lowest + _HEALTHY_NATS)

    def note_good(self, step: int) -> None:
        """Remember the state after ``step`` steps as the good one."""
        self.good_step = step
        if step > self.lost_step:
            self.tries = 0

    def after_loss(self, step: int, good: "Health") -> "Health":
        """Return what holds after going back from ``step`` to a state whose health was ``good``."""
        return Health(
            rate_scale=self.rate_scale / 2,
            tries=self.tries + 1,
            lost_step=max(step, self.lost_step),
            smoothed=good.smoothed,
            lowest=good.lowest,
            good_step=self.good_step,
        )


def copied(checkpoint: Checkpoint) -> Checkpoint:
    """Return a copy that training does not change, in the machine's own memory."""
    tensors = {name: tensor.detach().to("cpu", copy=True) for name, tensor in checkpoint.tensors.items()}
    return Checkpoint(tensors, dict(checkpoint.values))
