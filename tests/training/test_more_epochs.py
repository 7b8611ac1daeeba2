"""A finished run that is given more to do goes on where it was, and remembers what it was given."""

import tomllib
from pathlib import Path

import pytest
from lives import place_of, start
from test_resume import Stopping

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import Interrupted
from elmo_cli.reporting import SilentReporter
from elmo_cli.training.position import Position
from elmo_cli.training.run import resume_training

STEPS_AN_EPOCH = 5


def resume(folder: Path, limits: Limits, reporter: SilentReporter | None = None) -> Position:
    result = resume_training(folder, place_of(folder, reporter or SilentReporter()), limits)
    assert result is not None
    return result.position


@pytest.fixture
def finished(tmp_path: Path) -> Path:
    """The folder of a run of 9 epochs."""
    settings = TrainingSettings(preset="tiny", epochs=9, batch_tokens=36)
    start(tmp_path / "model", settings, SilentReporter())
    return tmp_path / "model"


def test_one_epoch_more_is_one_epoch_more(finished: Path) -> None:
    before = resume(finished, Limits())
    after = resume(finished, Limits(epochs=10))
    assert (before.step, after.step) == (9 * STEPS_AN_EPOCH, 10 * STEPS_AN_EPOCH)
    assert after.tokens == before.tokens * 10 // 9


def test_the_epochs_it_was_given_hold_also_for_later_parts_of_the_run(finished: Path) -> None:
    with pytest.raises(Interrupted):
        resume(finished, Limits(epochs=10), Stopping(9 * STEPS_AN_EPOCH + 2))
    assert tomllib.loads((finished / "run" / "settings.toml").read_text())["training"]["epochs"] == 10
    assert resume(finished, Limits()).step == 10 * STEPS_AN_EPOCH
