"""The training loop: one page to read top to bottom."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.bilm.softmax import Negatives, draw_negatives
from elmo_cli.errors import Interrupted, TrainingDiverged
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.reporting import Reporter
from elmo_cli.storage.run_dir import Checkpoint, RunDir
from elmo_cli.training.batches import epoch_batches
from elmo_cli.training.optimizer import Optimizer, learning_rate
from elmo_cli.training.session import Session
from elmo_cli.training.signals import StopSignals

_MEASUREMENTS = 20  # of the held-out perplexity, over a run
_METRICS_STEPS = 50  # between lines of metrics
_FIRST_ESTIMATE_STEPS = 20  # after which the time left is told for the first time


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
    measured_step: int = -1


@runtime_checkable  # the types of arguments are checked in tests
class BestKeeper(Protocol):
    """Keeps a model that predicts the held-out text better than all before."""

    def __call__(self, model: LanguageModel, perplexity: Perplexity, position: Position) -> None:
        """Store the model."""


class Trainer:
    """One run over a session's text.

    Args:
        session: text and model.
        run: folder for metrics and checkpoints.
        device: to train on.
        keep_best: called with each model that is the best so far.
        reporter: told about progress.
    """

    def __init__(
        self, session: Session, run: RunDir, device: torch.device, *, keep_best: BestKeeper, reporter: Reporter
    ) -> None:
        self.session = session
        self.settings = session.settings
        self.run_dir = run
        self.device = device
        self.keep_best = keep_best
        self.reporter = reporter
        self.model = session.model.to(device)
        self.optimizer = Optimizer(self.model, self.settings)
        self.position = Position()
        self.total_steps = session.choices.epochs * session.choices.steps_an_epoch
        if self.settings.max_steps is not None:
            self.total_steps = min(self.total_steps, self.settings.max_steps)
        self._heldout = session.heldout_batches(whole=False)
        self._started = time.monotonic()

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go back to a checkpoint."""
        values = dict(checkpoint.values)
        updates = values.pop("updates")
        weights = {k.removeprefix("model."): t for k, t in checkpoint.tensors.items() if k.startswith("model.")}
        self.model.load_state_dict(weights)
        moments = {k.removeprefix("moment."): t for k, t in checkpoint.tensors.items() if k.startswith("moment.")}
        self.optimizer.load_state(moments, updates)
        values["best"] = math.inf if values["best"] is None else values["best"]
        self.position = Position(**values)

    def train(self) -> Position:
        """Train to the end of the plan, or until a signal or the time limit says stop.

        Returns:
            Where the run ended; the best model has been kept.

        Raises:
            Interrupted: by SIGINT or SIGTERM, after a checkpoint was saved.
            TrainingDiverged: the loss is no longer a number.
        """
        make_batch = self.session.batch_maker()
        self.model.train()
        if self.position.step == 0:
            self._measure()  # untrained: the curve's first point
        saved = time.monotonic()
        self._started = saved - self.position.seconds
        with StopSignals() as signals, self.reporter.progress("training", self.total_steps, "steps") as progress:
            for numbers in self._batches():
                if self._is_over() or signals.received is not None:
                    break
                loss = self._step(make_batch(numbers))
                progress.update(self.position.step, self._status(loss))
                if self._measurement_due():
                    self._measure()
                if time.monotonic() - saved > self.settings.checkpoint_s:
                    self.save()
                    saved = time.monotonic()
        if signals.received is not None:
            self.save()
            raise Interrupted(
                f"stopped at step {self.position.step:,} of {self.total_steps:,}; everything is saved",
                signal_number=signals.received,
                fix=f"go on with: elmo train --resume {self.run_dir.path.parent}",
            )
        if self.position.measured_step != self.position.step:
            self._measure()
        self.save()
        return self.position

    def save(self) -> None:
        """Write a checkpoint."""
        moments, updates = self.optimizer.state()
        tensors = {f"model.{name}": tensor.contiguous() for name, tensor in self.model.state_dict().items()}
        tensors |= {f"moment.{name}": tensor.contiguous() for name, tensor in moments.items()}
        values: dict[str, Any] = {**asdict(self.position), "updates": updates}
        values["best"] = self.position.best if math.isfinite(self.position.best) else None
        self.run_dir.save(Checkpoint(tensors, values))

    def _batches(self) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
        """Yield piece numbers from the position on, epoch after epoch, keeping the position up to date."""
        position, choices, lengths = self.position, self.session.choices, self.session.pieces.lengths
        while position.epoch < choices.epochs:
            batches = epoch_batches(lengths, choices.batch_tokens, seed=self.settings.seed, epoch=position.epoch)
            yield from islice(batches, position.batch, None)
            position.epoch += 1
            position.batch = 0

    def _step(self, batch: Batch) -> float:
        """Train on one batch and return its loss in nats a target, sampled where the softmax is sampled."""
        position, settings = self.position, self.settings
        self.model.bilm.dropout.seed(_mix(settings.seed, position.step), self.device)
        forward, backward = self.model.losses(batch.to(self.device), self._negatives())
        loss = (forward.mean() + backward.mean()) / 2
        loss.backward()  # type: ignore[no-untyped-call]
        rate = learning_rate(settings, position.step, self._share_done())
        norm = self.optimizer.update(rate)
        value = float(loss.detach())
        if not (math.isfinite(value) and math.isfinite(norm)):
            kept = "the best model so far is kept" if math.isfinite(position.best) else "no model is kept yet"
            raise TrainingDiverged(
                f"the loss is {value} and its gradient {norm} at step {position.step:,}; {kept}",
                fix="train again with a lower --learning-rate",
            )
        position.step += 1
        position.batch += 1
        position.tokens += len(batch.tokens) - 2 * len(batch.lengths)
        position.seconds = time.monotonic() - self._started
        if position.step % _METRICS_STEPS == 0 or position.step == self.total_steps:
            self._record(loss_nats=value, sampled=self.session.is_sampled, learning_rate=rate, gradient_norm=norm)
        if position.step == _FIRST_ESTIMATE_STEPS:
            self.reporter.note(f"about {self._minutes_left():.3g} minutes left at {self._rate():,.0f} tokens a second")
        return value

    def _negatives(self) -> tuple[Negatives, Negatives] | None:
        """Draw a sample for each direction, a function of seed and step alone."""
        if not self.session.is_sampled:
            return None
        random = np.random.default_rng([self.settings.seed, self.position.step])
        size, count = len(self.session.vocabulary), self.settings.negatives
        forward, backward = (draw_negatives(size, count, random).to(self.device) for _ in range(2))
        return forward, backward

    def _measure(self) -> None:
        """Measure the held-out text; keep the model if none was better."""
        position = self.position
        found = measure_perplexity(self.model, self._heldout, self.device)
        position.measured_step = position.step
        self._record(heldout=found.to_json())
        self.reporter.note(
            f"step {position.step:,}: held-out perplexity {found.both:,.1f} "
            f"(forward {found.forward:,.1f}, backward {found.backward:,.1f})"
        )
        if position.step and found.both < position.best:
            position.best = found.both
            self.keep_best(self.model, found, position)

    def _measurement_due(self) -> bool:
        position = self.position
        every = max(1, self.total_steps // _MEASUREMENTS)
        if self.settings.max_time_s is not None:
            # A limit may end the run long before its steps do.
            every = max(
                1,
                min(every, int(position.step / max(position.seconds, 1e-9) * self.settings.max_time_s / _MEASUREMENTS)),
            )
        return position.step - position.measured_step >= every

    def _is_over(self) -> bool:
        return self.position.step >= self.total_steps or self._share_done() >= 1

    def _share_done(self) -> float:
        """Return how much of the run is done, by steps or by the time limit, whichever is nearer its end."""
        share = self.position.step / self.total_steps
        if self.settings.max_time_s is not None:
            share = max(share, (time.monotonic() - self._started) / self.settings.max_time_s)
        return share

    def _rate(self) -> float:
        return self.position.tokens / max(self.position.seconds, 1e-9)

    def _minutes_left(self) -> float:
        share = max(self._share_done(), 1e-9)
        return self.position.seconds / share * (1 - share) / 60

    def _status(self, loss: float) -> str:
        kind = "sampled loss" if self.session.is_sampled else "loss"
        best = f", held-out perplexity {self.position.best:,.1f}" if math.isfinite(self.position.best) else ""
        return f"{kind} {loss:.2f}{best}, {self._rate():,.0f} tokens/s"

    def _record(self, **values: object) -> None:
        position = self.position
        head = {"step": position.step, "epoch": position.epoch, "tokens": position.tokens}
        self.run_dir.add_metrics({**head, "seconds": round(position.seconds, 3), **values})


def _mix(seed: int, step: int) -> int:
    """Return a seed for one step of one run, far from its neighbours'."""
    return int(np.random.SeedSequence([seed, step]).generate_state(1, np.uint64)[0] >> np.uint64(1))
