"""A step of training on whole sentences: a batch, in as many parts as processes and memory ask for, to gradients."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from elmo_cli.bilm.softmax import Negatives, draw_negatives
from elmo_cli.training.batches import epoch_batches
from elmo_cli.training.distributed import Team
from elmo_cli.training.precision import reduced
from elmo_cli.training.session import Session


@dataclass(frozen=True, slots=True)
class StepLoss:
    """What a step has computed beside the gradients.

    Attributes:
        nats: this process's share of the mean loss over all targets, forward and backward; sampled where the softmax
            is sampled.
        tokens: of the whole step, markers not counted.
    """

    nats: Tensor
    tokens: int


@runtime_checkable  # the types of arguments are checked in tests
class Lessons(Protocol):
    """What a run learns from, step by step."""

    def epoch(self, epoch: int, first: int) -> Iterator[Any]:
        """Yield the steps of an epoch from number ``first`` on, both counted from 0."""

    def learn(self, lesson: Any, step: int, scale: float) -> StepLoss:  # noqa: ANN401 (what `epoch` yields)
        """Add the gradient of a step's mean loss, times ``scale``, to the weights' gradients."""

    def state(self) -> dict[str, Tensor]:
        """Return what goes from one step to the next beside the weights."""

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Take over what `state` returned."""


class SentenceLessons:
    """Batches of sentences of like length, each sentence from a state of zero: how `elmo train` reads a text.

    A batch is cut into parts, a sentence here and a sentence there, so that they are of like size. Each process
    computes the parts that are its turn. The negatives are the same in all parts, and each part's loss is divided by
    the targets of the whole batch: so the gradients' sum is that of the batch, whoever computes which part. Masks of
    dropout are a function of seed, step and part.

    Args:
        session: text and model.
        device: to train on.
        team: of processes.
    """

    def __init__(self, session: Session, device: torch.device, team: Team) -> None:
        self.session = session
        self.device = device
        self.team = team
        self.make_batch = session.batch_maker()
        # As many parts as the run began with, or more if there are more processes than that: none is idle.
        self.parts = team.size * -(-session.choices.parts // team.size)

    def epoch(self, epoch: int, first: int) -> Iterator[NDArray[np.int64]]:
        """Yield the numbers of the pieces of each batch."""
        lengths, budget = self.session.pieces.lengths, self.session.choices.step_tokens
        return islice(epoch_batches(lengths, budget, seed=self.session.settings.seed, epoch=epoch), first, None)

    def learn(self, lesson: NDArray[np.int64], step: int, scale: float) -> StepLoss:
        """Add the gradients of this process's parts."""
        model, seed = self.session.model, self.session.settings.seed
        lengths = self.session.pieces.lengths[lesson]
        targets = int(lengths.sum()) + len(lengths)  # a direction
        negatives = step_negatives(self.session, step, self.device)
        total = torch.zeros((), device=self.device)
        for part in range(self.team.rank, self.parts, self.team.size):
            numbers = lesson[part :: self.parts]
            if not len(numbers):
                continue
            model.bilm.dropout.seed(mixed_seed(seed, step, part), self.device)
            with reduced(self.session.settings.precision, self.device):
                forward, backward = model.losses(self.make_batch(numbers).to(self.device), negatives)
            loss = (forward.sum() + backward.sum()) / (2 * targets)
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        return StepLoss(total, int(lengths.sum()))

    def state(self) -> dict[str, Tensor]:
        """Return nothing: sentences have nothing to do with those before."""
        return {}

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Do nothing."""


def step_negatives(session: Session, step: int, device: torch.device) -> tuple[Negatives, Negatives] | None:
    """Draw a sample for each direction, a function of seed and step alone; None for the full softmax."""
    if not session.is_sampled:
        return None
    random = np.random.default_rng([session.settings.seed, step])
    size, count = len(session.vocabulary), session.settings.negatives
    forward, backward = (draw_negatives(size, count, random).to(device) for _ in range(2))
    return forward, backward


def mixed_seed(seed: int, step: int, part: int) -> int:
    """Return a seed for a part of a step of a run, far from its neighbours'."""
    numbers = [seed, step, part] if part else [seed, step]
    return int(np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0] >> np.uint64(1))
