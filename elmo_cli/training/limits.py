"""New limits for a run that is resumed: refused if they leave it nothing to do, else written down for good."""

from dataclasses import asdict

from elmo_cli.config import TrainingSettings
from elmo_cli.errors import ConfigError, Place
from elmo_cli.reporting import duration_text
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.training.position import Position
from elmo_cli.training.run_text import Choices
from elmo_cli.training.workplace import Workplace


def take_limits(
    run: RunDir, settings: TrainingSettings, choices: Choices, max_time_s: float | None, place: Workplace
) -> None:
    """Write a run's settings down anew, in which limits have changed.

    Args:
        run: to be resumed. If it is under way nothing is done, as it is going to be refused for that.
        settings: of all its stages together, the new limits among them.
        choices: of its last stage, under these limits.
        max_time_s: of its last stage; None for no limit.
        place: to work in; in a team the first process looks and writes.

    Raises:
        ConfigError: the run has come as far already; it is left as it was.
        ModelError: the run cannot be read.
    """
    writes = place.team.is_writer and run.state != "running"
    problem = place.team.tell(_nothing_left(run, choices, max_time_s) if writes else None)
    if problem is not None:
        raise ConfigError(
            problem,
            where=Place(str(run.path.parent)),
            fix="allow more by --epochs, --max-steps or --max-time, or leave them out",
        )
    if writes:
        run.create({**run.settings(), "training": asdict(settings)})


def _nothing_left(run: RunDir, choices: Choices, max_time_s: float | None) -> str | None:
    """Return what to say of a run whose last stage is at its end; None if it is not."""
    found = run.load_newest()
    if found is None:
        return None
    try:
        position = Position.from_json(found[0].values)
    except (KeyError, TypeError, ValueError):  # loading it will tell
        return None
    # The epochs' numbers of steps differ a little, so the last one may end before the steps do.
    has_read_all = position.epoch >= choices.epochs
    if not has_read_all and position.share_done(choices.steps, max_time_s) < 1:
        return None
    end = f"step {min(position.step, choices.steps) if has_read_all else choices.steps:,}"
    time = "" if max_time_s is None else f" or after {duration_text(max_time_s)}"
    return (
        f"nothing is left to do: the run is at step {position.step:,} after {duration_text(position.seconds)}, "
        f"and with these limits it ends at {end}{time}"
    )
