"""A loss that is lost: when that is said, what a run goes back to, and that a resumed run does the same."""

import math
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from lives import place_of, start
from outcomes import result_of
from test_resume import Stopping

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import Interrupted, TrainingDiverged
from elmo_cli.training import recovery
from elmo_cli.training.loop import Trainer
from elmo_cli.training.recovery import Health
from elmo_cli.training.run import resume_training

SETTINGS = TrainingSettings(preset="tiny", max_steps=15, batch_tokens=36, warmup_steps=5)


def first_divergence(losses: Callable[[int], float], steps: int = 20_000) -> int | None:
    health = Health()
    return next((step for step in range(steps) if health.note(losses(step))), None)


def noise(seed: int, size: float) -> Callable[[], float]:
    numbers = random.Random(seed)
    return lambda: numbers.gauss(0, size)


def test_a_loss_that_falls_and_shakes_never_diverges() -> None:
    shake = noise(1, 1.0)
    assert first_divergence(lambda step: 3 + 5 * math.exp(-step / 500) + shake()) is None


def test_a_spike_from_which_a_run_recovers_is_no_divergence() -> None:
    assert first_divergence(lambda step: 20.0 if 5000 <= step < 5020 else 4.0) is None


def test_a_loss_that_rises_at_the_start_of_the_warm_up_is_no_divergence() -> None:
    assert first_divergence(lambda step: 7 + min(step, 100) / 60) is None


def test_a_loss_that_stays_far_above_its_lowest_diverges() -> None:
    step = first_divergence(lambda step: 4.0 if step < 3000 else 9.0)
    assert step is not None
    assert 3200 <= step < 3300


def test_a_state_is_good_at_fixed_steps_while_the_loss_is_near_its_lowest() -> None:
    health = Health()
    health.note(4.0)
    assert [step for step in range(301) if health.is_good(step)] == [0, 100, 200, 300]
    for _ in range(20):
        health.note(8.0)
    assert not health.is_good(100)


def test_health_reads_back_as_it_was_written() -> None:
    for health in (Health(), Health(0.25, 2, 7, 3.5, 3.25, 4, 100)):
        assert Health.from_json(health.to_json()) == health


@pytest.fixture
def lost_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a good state come every 4 steps, and weights be lost at step 6 while the rate is at its full height."""
    monkeypatch.setattr(recovery, "GOOD_STATE_STEPS", 4)
    step = Trainer._step

    def poisoned(trainer: Trainer, lesson: object) -> float | None:
        if trainer.position.step == 6 and trainer.health.rate_scale == 1:
            trainer.model.softmax.bias.data.fill_(math.nan)
        return step(trainer, lesson)

    monkeypatch.setattr(Trainer, "_step", poisoned)


def run_with(folder: Path, *stops: int) -> Stopping:
    """Train, stopping and going on at each step named; return who was told all of it."""
    reporter = Stopping()
    for number, step in enumerate([*stops, None]):
        reporter.step = step
        try:
            if number:
                resume_training(folder, place_of(folder, reporter), Limits())
            else:
                start(folder, SETTINGS, reporter)
        except Interrupted:
            assert step is not None
    return reporter


@pytest.mark.usefixtures("lost_once")
def test_a_lost_loss_goes_back_to_the_good_state_at_half_the_rate(tmp_path: Path) -> None:
    said = run_with(tmp_path / "model").said
    assert (
        "warning: the loss is nan and its gradient nan at step 6; going on from step 4 at 0.5 of the learning rate"
        in said
    )
    assert not math.isnan(result_of(tmp_path / "model")["perplexity"]["both"])  # type: ignore[index]


@pytest.mark.usefixtures("lost_once")
@pytest.mark.parametrize("stops", [[3], [5], [4, 7, 9], [6, 14]], ids=str)
def test_a_run_that_was_stopped_goes_back_as_one_that_was_not(stops: list[int], tmp_path: Path) -> None:
    run_with(tmp_path / "whole")
    run_with(tmp_path / "stopped", *stops)
    assert result_of(tmp_path / "stopped") == result_of(tmp_path / "whole")


def test_a_rate_that_is_far_too_high_is_halved_three_times_and_then_given_up(tmp_path: Path) -> None:
    reporter = Stopping()
    settings = TrainingSettings(preset="tiny", max_steps=15, batch_tokens=36, learning_rate=1e30)
    with pytest.raises(TrainingDiverged) as caught:
        start(tmp_path / "model", settings, reporter)
    scales = [text.rsplit(" at ", 1)[1] for text in reporter.said if text.startswith("warning: the loss is ")]
    assert scales == [f"{scale} of the learning rate" for scale in ("0.5", "0.25", "0.125")]
    assert caught.value.message.endswith(" at step 1, after 3 returns at ever lower rates; no model is kept yet")
    assert caught.value.exit_code == 3
