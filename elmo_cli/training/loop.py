"""The training loop: one page to read top to bottom."""

import math
import time
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import torch

from elmo_cli.errors import Interrupted, OutputError, TrainingDiverged
from elmo_cli.evaluation.perplexity import measure_perplexity
from elmo_cli.reporting import Reporter, duration_text, figure
from elmo_cli.storage.checkpoints import Checkpoint, checked_fields
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.training.distributed import ALONE, Team
from elmo_cli.training.optimizer import Optimizer, learning_rate
from elmo_cli.training.position import BestKeeper, Position
from elmo_cli.training.precision import LossScale
from elmo_cli.training.recovery import TRIES, Health, copied
from elmo_cli.training.sentences import Lessons, SentenceLessons
from elmo_cli.training.session import Session
from elmo_cli.training.signals import StopSignals
from elmo_cli.training.streams import StreamLessons

_MEASUREMENTS = 20  # of the held-out perplexity, over a run
_REST = 9  # times as long as a measurement, before the next one, where the time is limited
_METRICS_STEPS = 50  # between lines of metrics
_FIRST_ESTIMATE_STEPS = 20  # after which the time left is told for the first time


class Trainer:
    """One run over a session's text.

    Args:
        session: text and model.
        run: folder for metrics and checkpoints.
        device: to train on.
        keep_best: called with each model that is the best so far.
        reporter: told about progress.
        go_on: the command that goes on with the run once it is stopped; None for that of `elmo train`.
        team: the processes that train together.
    """

    def __init__(
        self,
        session: Session,
        run: RunDir,
        device: torch.device,
        *,
        keep_best: BestKeeper,
        reporter: Reporter,
        go_on: str | None = None,
        team: Team = ALONE,
    ) -> None:
        self.session = session
        self.settings = session.settings
        self.run_dir = run
        self.device = device
        self.keep_best = keep_best
        self.reporter = reporter
        self.go_on = go_on or f"elmo train --resume {run.path.parent}"
        self.team = team
        self.model = session.model.to(device)
        self.optimizer = Optimizer(self.model, self.settings, session.anchor())
        self.lessons: Lessons = (
            StreamLessons(session, device) if self.settings.stream else SentenceLessons(session, device, team)
        )
        self.loss_scale = LossScale.of(self.settings.precision)
        self.position = Position()
        self.health = Health()
        self.total_steps = session.choices.steps
        self._rest_until = 0.0  # on the clock, until when nothing is measured
        self._heldout = session.heldout_sample() if team.is_writer else []
        self._good: Checkpoint | None = None
        self._started = time.monotonic()

    def resume(self, checkpoint: Checkpoint, good: Checkpoint | None = None) -> None:
        """Go back to a checkpoint.

        Args:
            checkpoint: to go on from.
            good: of the state to come back to if the loss is lost; None for the same.
        """
        self._load(checkpoint)
        if good is None:
            self.health.good_step = checkpoint.step
        self._good = copied(good or checkpoint)

    def train(self) -> Position:
        """Train to the end of the plan, or until a signal or the time limit says stop.

        Returns:
            Where the run ended; the best model has been kept.

        Raises:
            Interrupted: by SIGINT, SIGTERM or SIGHUP, after a checkpoint was saved.
            TrainingDiverged: the loss was lost again and again, at ever lower rates.
            OutputError: a file cannot be written; the newest checkpoint is kept.
        """
        try:
            self._train()
        except OutputError as problem:
            raise self.run_dir.with_remedy(problem, self.go_on) from problem
        return self.position

    def _train(self) -> None:
        self.model.train()
        if self.position.measured_step < 0:
            self._measure()  # before any step: the curve's first point
        self._good = self._good or copied(self._state())
        saved = time.monotonic()
        self._started = saved - self.position.seconds
        lessons = self._lessons()
        with StopSignals() as signals, self.reporter.progress("training", self.total_steps, "steps") as progress:
            while True:
                stop, self.position.seconds = self.team.agree(signals.received, time.monotonic() - self._started)
                lesson = None if stop is not None or self._share_done() >= 1 else next(lessons, None)
                if lesson is None:
                    break
                loss = self._step(lesson)
                if loss is None:
                    lessons = self._lessons()
                    continue
                progress.update(self.position.step, self._status(loss))
                if self._measurement_due():
                    self._measure()
                if self.health.is_good(self.position.step):
                    self.health.note_good(self.position.step)
                    self._good = copied(self._state())
                if time.monotonic() - saved > self.settings.checkpoint_s:
                    self.save()
                    saved = time.monotonic()
            self.save()  # now, as a batch system that has sent its signal may not wait for what is left to do
            if stop is not None:
                raise Interrupted(
                    f"stopped at step {self.position.step:,} of {self.total_steps:,}; everything is saved",
                    signal_number=stop,
                    fix=f"go on with: {self.go_on}",
                )
            if self.position.measured_step != self.position.step:
                self._measure()
                self.save()

    def save(self) -> None:
        """Write a checkpoint, and the good state to come back to if it is another one and not on the disk yet."""
        if not self.team.is_writer:
            return
        good = self.health.good_step
        self.run_dir.save(self._state(), keep=[good])
        if self._good is not None and not self.run_dir.has_checkpoint(good):
            self.run_dir.save(self._good)

    def _state(self) -> Checkpoint:
        """Return all it takes to go on, with the tensors that training goes on changing."""
        moments, updates = self.optimizer.state()
        parts = {"model": self.model.state_dict(), "moment": moments, "lesson": self.lessons.state()}
        tensors = {f"{part}.{name}": t.contiguous() for part, named in parts.items() for name, t in named.items()}
        more = {"updates": updates, "health": self.health.to_json(), "loss_scale": asdict(self.loss_scale)}
        return Checkpoint(tensors, {**self.position.to_json(), **more})

    def _load(self, checkpoint: Checkpoint) -> None:
        values = checkpoint.values

        def part(name: str) -> dict[str, torch.Tensor]:
            tensors = checkpoint.tensors.items()
            return {key.removeprefix(f"{name}."): tensor for key, tensor in tensors if key.startswith(f"{name}.")}

        self.model.load_state_dict(part("model"))
        self.optimizer.load_state(part("moment"), values["updates"])
        self.lessons.load_state(part("lesson"))
        self.position = Position.from_json(values)
        self.health = Health.from_json(values["health"])
        self.loss_scale = LossScale(**checked_fields(LossScale, values["loss_scale"]))

    def _lessons(self) -> Iterator[Any]:
        """Yield what is to be learned from the position on, epoch after epoch, keeping the position up to date."""
        position = self.position
        while position.epoch < self.session.choices.epochs:
            yield from self.lessons.epoch(position.epoch, position.batch)
            position.epoch += 1
            position.batch = 0

    def _step(self, lesson: Any) -> float | None:  # noqa: ANN401 (what the lessons yield)
        """Train on one batch and return its loss in nats a target, sampled where the softmax is sampled.

        None if the loss was lost, and the run went back to its good state.
        """
        position, settings, scale = self.position, self.settings, self.loss_scale.value
        found = self.lessons.learn(lesson, position.step, scale * settings.gradient_factor)
        loss = float(self.team.add_up(self.optimizer.dense, self.optimizer.sparse, found.nats))
        rate = learning_rate(settings, position.step, self._share_done()) * self.health.rate_scale
        norm = self.optimizer.update(rate, scale) if math.isfinite(loss) else math.nan
        explained = self.loss_scale.explains(norm) and math.isfinite(loss)
        self.loss_scale.note(norm)
        if not (math.isfinite(loss) and (explained or math.isfinite(norm))):
            self._go_back(f"the loss is {loss} and its gradient {norm}")
            return None
        if self.health.note(loss):
            self._go_back(f"the loss has risen from {self.health.lowest:.2f} to {self.health.smoothed:.2f}")
            return None
        position.step += 1
        position.batch += 1
        position.tokens += found.tokens
        if position.step % _METRICS_STEPS == 0 or position.step == self.total_steps:
            self._record(loss_nats=loss, sampled=self.session.is_sampled, learning_rate=rate, gradient_norm=norm)
        if position.step == _FIRST_ESTIMATE_STEPS:
            self.reporter.note(f"about {self._time_left()} left at {self._rate():,.0f} tokens a second")
        return loss

    def _go_back(self, reason: str) -> None:
        """Return to the good state and go on from there at half the rate.

        Raises:
            TrainingDiverged: that has been tried often enough.
        """
        lost, health = self.position, self.health
        if health.tries >= TRIES or self._good is None:
            kept = "the best model so far is kept" if math.isfinite(lost.best) else "no model is kept yet"
            raise TrainingDiverged(
                f"{reason} at step {lost.step:,}, after {TRIES} returns at ever lower rates; {kept}",
                fix="train again with a lower --learning-rate",
            )
        self.optimizer.clear()
        self._load(self._good)
        self.health = health.after_loss(lost.step, self.health)
        # The model that is kept was none the worse for what came after it.
        self.position.best, self.position.best_step, self.position.seconds = lost.best, lost.best_step, lost.seconds
        if self.team.is_writer:
            self.run_dir.go_back(self.position.step)
        self.reporter.warn(
            f"{reason} at step {lost.step:,}; going on from step {self.position.step:,} "
            f"at {self.health.rate_scale:g} of the learning rate"
        )

    def _measure(self) -> None:
        """Measure the held-out text; keep the model if none was better."""
        position = self.position
        position.measured_step = position.step
        if not self.team.is_writer:
            return
        started = time.monotonic()
        found = measure_perplexity(self.model, self._heldout, self.device)
        self._rest_until = time.monotonic() + _REST * (time.monotonic() - started)
        self._record(heldout=found.to_json())
        self.reporter.note(
            f"step {position.step:,}: held-out perplexity {figure(found.both)} "
            f"(forward {figure(found.forward)}, backward {figure(found.backward)})"
        )
        # Fresh weights are no model worth keeping; those of a base are, until others are better.
        if (position.step or self.session.start) and found.both < position.best:
            position.best, position.best_step = found.both, position.step
            self.keep_best(self.model, found, position)

    def _measurement_due(self) -> bool:
        position = self.position
        every = max(1, self.total_steps // _MEASUREMENTS)
        if self.settings.max_time_s is not None:
            # What measures does not train: of a short time it may take no more than a tenth.
            if time.monotonic() < self._rest_until:
                return False
            # A limit may end the run long before its steps do.
            every = max(
                1,
                min(every, int(position.step / max(position.seconds, 1e-9) * self.settings.max_time_s / _MEASUREMENTS)),
            )
        return position.step - position.measured_step >= every

    def _share_done(self) -> float:
        return self.position.share_done(self.total_steps, self.settings.max_time_s)

    def _rate(self) -> float:
        return self.position.tokens / max(self.position.seconds, 1e-9)

    def _time_left(self) -> str:
        share = max(self._share_done(), 1e-9)
        return duration_text(self.position.seconds / share * (1 - share))

    def _status(self, loss: float) -> str:
        kind = "sampled loss" if self.session.is_sampled else "loss"
        best = f", held-out perplexity {figure(self.position.best)}" if math.isfinite(self.position.best) else ""
        return f"{kind} {loss:.2f}{best}, {self._rate():,.0f} tokens/s"

    def _record(self, **values: object) -> None:
        if not self.team.is_writer:
            return
        position = self.position
        head = {"step": position.step, "epoch": position.epoch, "tokens": position.tokens}
        self.run_dir.add_metrics({**head, "seconds": round(position.seconds, 3), **values})
