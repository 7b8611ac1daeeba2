"""How far a run is, and what is done with each model that is better than all before."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Protocol, runtime_checkable

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.evaluation.perplexity import Perplexity
from elmo_cli.storage.checkpoints import checked_fields


@dataclass(slots=True)
class Position:
    """How far a run is. With the weights and the optimizer's state, all it takes to go on exactly.

    Masks and negatives are drawn from the seed and the step's number, the order of batches from the seed and the
    epoch's number, so no generator's state has to be kept.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0  # in the epoch
    tokens: int = 0
    seconds: float = 0.0  # of training, in earlier parts of the run too
    best: float = math.inf  # held-out perplexity of the model kept
    best_step: int = 0  # of that model
    measured_step: int = -1

    def to_json(self) -> dict[str, Any]:
        """Return plain values, as a checkpoint holds them."""
        return {**asdict(self), "best": self.best if math.isfinite(self.best) else None}

    def share_done(self, steps: int, max_time_s: float | None) -> float:
        """Return how much is done of a run of so many steps or so much time, whichever is nearer its end."""
        share = self.step / steps
        return share if max_time_s is None else max(share, self.seconds / max_time_s)

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> "Position":
        """Read what `to_json` returned, whatever else stands beside it."""
        known = checked_fields(cls, {**values, "best": math.inf if values["best"] is None else values["best"]})
        return cls(**known)


@runtime_checkable  # the types of arguments are checked in tests
class BestKeeper(Protocol):
    """Keeps a model that predicts the held-out text better than all before."""

    def __call__(self, model: LanguageModel, perplexity: Perplexity, position: Position) -> None:
        """Store the model."""
