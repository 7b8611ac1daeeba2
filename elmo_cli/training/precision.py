"""Training in fewer bits: which products are computed in them, and the scaling that keeps small gradients from zero."""

import math
from contextlib import AbstractContextManager
from dataclasses import dataclass

import torch

from elmo_cli.bilm.products import has_bfloat16
from elmo_cli.config import TrainingPrecision
from elmo_cli.errors import ConfigError

_FIRST_SCALE = 2.0**16
_STEPS_TO_RISE = 2000  # without an overflow, before a larger scale is tried
_LARGEST_SCALE = 2.0**24


def check_training_precision(precision: TrainingPrecision, device: torch.device) -> None:
    """Refuse what the device cannot do.

    Raises:
        ConfigError: with what to choose instead.
    """
    if precision == "float16" and device.type != "cuda":
        raise ConfigError("float16 is for training on a GPU", fix="choose --precision float32 or bfloat16")
    if precision == "bfloat16" and device.type == "cpu" and not has_bfloat16():
        raise ConfigError("this processor has no instructions for bfloat16", fix="choose --precision float32")


def reduced(precision: TrainingPrecision, device: torch.device) -> AbstractContextManager[object]:
    """Compute the products of char CNN and LSTMs in fewer bits while entered; weights and softmax stay float32."""
    dtype = torch.float16 if precision == "float16" else torch.bfloat16
    return torch.autocast(device.type, dtype, enabled=precision != "float32")


@dataclass(slots=True)
class LossScale:
    """What the loss is multiplied with in float16, whose smallest number is 6e-8; 1 in other precisions.

    Halved when a gradient overflows, whose step is then left out, and doubled when none did for long. Kept in each
    checkpoint.
    """

    value: float = 1.0
    steps: int = 0  # since it was last changed
    is_fixed: bool = True

    @classmethod
    def of(cls, precision: TrainingPrecision) -> "LossScale":
        """Return the scale that a run begins with."""
        return cls(_FIRST_SCALE, is_fixed=False) if precision == "float16" else cls()

    def explains(self, norm: float) -> bool:
        """Tell whether a gradient's norm is not finite, and a smaller scale may mend it."""
        return not math.isfinite(norm) and self.value > 1

    def note(self, norm: float) -> None:
        """Take in how a step went."""
        if self.is_fixed:
            return
        self.steps += 1
        if self.explains(norm):
            self.value, self.steps = self.value / 2, 0
        elif self.steps >= _STEPS_TO_RISE:
            self.value, self.steps = min(_LARGEST_SCALE, self.value * 2), 0
