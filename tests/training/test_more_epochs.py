"""A run that is given more to do goes on where it was and remembers it; left nothing to do, it stays as it is."""

import tomllib
from pathlib import Path

import pytest
from lives import place_of, start
from test_resume import Stopping

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import ConfigError, Interrupted
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.training.position import Position
from elmo_cli.training.run import resume_training

STEPS_AN_EPOCH = 5


def resume(folder: Path, limits: Limits, reporter: SilentReporter | None = None) -> Position:
    result = resume_training(folder, place_of(folder, reporter or SilentReporter()), limits)
    assert result is not None
    return result.position


def settings_of(folder: Path) -> dict[str, object]:
    return tomllib.loads((folder / "run" / "settings.toml").read_text())["training"]


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
    assert settings_of(finished)["epochs"] == 10
    assert resume(finished, Limits()).step == 10 * STEPS_AN_EPOCH


@pytest.mark.parametrize(
    ("limits", "end"),
    [
        (Limits(max_steps=7), "step 7"),
        (Limits(max_steps=999), "step 45"),  # the epochs end it before
        (Limits(epochs=8), "step 40"),
        (Limits(max_time_s=0.001), "step 45 or after 0.001s"),
    ],
    ids=["steps", "more steps than epochs have", "epochs", "time"],
)
def test_limits_that_leave_nothing_to_do_are_refused_and_change_nothing(
    limits: Limits, end: str, finished: Path
) -> None:
    before = settings_of(finished)
    with pytest.raises(ConfigError) as caught:
        resume(finished, limits)
    assert caught.value.message.startswith("nothing is left to do: the run is at step 45 after ")
    assert caught.value.message.endswith(f", and with these limits it ends at {end}")
    assert settings_of(finished) == before
    assert RunDir(finished).state == "finished"


def test_a_stopped_run_may_be_ended_sooner_than_it_was_to_be(tmp_path: Path) -> None:
    settings = TrainingSettings(preset="tiny", epochs=9, batch_tokens=36)
    with pytest.raises(Interrupted):
        start(tmp_path / "model", settings, Stopping(3))
    assert resume(tmp_path / "model", Limits(max_steps=4)).step == 4
