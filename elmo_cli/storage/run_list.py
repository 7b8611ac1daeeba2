"""The runs that lie in some folders, each told from its files alone."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.run_dir import FINETUNE_TABLE, METRICS_FILE, RUN_FOLDER, SETTINGS_FILE, RunDir


@dataclass(frozen=True, slots=True)
class RunSummary:
    """How far a run is and how well its models predict.

    Attributes:
        folder: of the model.
        steps: made.
        tokens: read, every epoch anew.
        seconds: of training.
        curve: (step, held-out perplexity of both directions) of each measurement that is finite, the untrained model's
            first.
        from_base: whether the first of these is of a base's weights, as fine-tuning begins with, and so of a model.
        state: ``running``, ``finished`` or ``interrupted``.
        changed: time of the last line of metrics, in seconds since 1970.
    """

    folder: Path
    steps: int
    tokens: int
    seconds: float
    curve: tuple[tuple[int, float], ...]
    from_base: bool
    state: str
    changed: float

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.folder.resolve().name

    @property
    def best(self) -> float | None:
        """Lowest held-out perplexity of a model; fresh weights are none. None before the first measurement of one."""
        return min((perplexity for step, perplexity in self.curve if step or self.from_base), default=None)

    def to_json(self) -> dict[str, Any]:
        """Return plain values under stable names."""
        return {
            "name": self.name,
            "folder": str(self.folder),
            "state": self.state,
            "steps": self.steps,
            "tokens": self.tokens,
            "seconds": self.seconds,
            "best_heldout_perplexity": self.best,
            "changed": datetime.fromtimestamp(int(self.changed), UTC).isoformat(),
            "heldout": [{"step": step, "both": perplexity} for step, perplexity in self.curve],
        }


def find_runs(folders: Sequence[Path]) -> list[RunSummary]:
    """Return the runs of some folders, by the time of their last change, the latest last.

    Args:
        folders: each a model's folder, or one that holds such folders.

    Raises:
        ModelError: there is no such folder, or a run cannot be read.
    """
    models: dict[Path, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            what = "is a file, no folder" if folder.exists() else "no such folder"
            raise ModelError(what, where=Place(str(folder)), fix="name a model's folder, or one of models")
        found = [folder] if _has_run(folder) else filter(_has_run, sorted(folder.iterdir()))
        models.update((path.resolve(), path) for path in found)
    return sorted(map(read_run, models.values()), key=lambda run: (run.changed, run.name))


def read_run(folder: Path) -> RunSummary:
    """Return what the run of a model's folder says.

    Raises:
        ModelError: it cannot be read.
    """
    run = RunDir(folder)
    path = run.path / METRICS_FILE
    if not path.exists():  # nothing is measured yet
        return RunSummary(folder, 0, 0, 0.0, (), False, run.state, (run.path / SETTINGS_FILE).stat().st_mtime)
    changed, lines = path.stat().st_mtime, run.metrics()
    try:
        last = lines[-1] if lines else {"step": 0, "tokens": 0, "seconds": 0.0}
        measured = [(int(line["step"]), line["heldout"]["both"]) for line in lines if "heldout" in line]
        curve = [(step, float(both)) for step, both in measured if both is not None]
        position = (int(last["step"]), int(last["tokens"]), float(last["seconds"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelError(f"is damaged: {error!r}", where=Place(str(path))) from error
    finite = tuple((step, perplexity) for step, perplexity in curve if math.isfinite(perplexity))
    from_base = FINETUNE_TABLE in run.settings()
    return RunSummary(folder, *position, finite, from_base, run.state, changed)


def _has_run(folder: Path) -> bool:
    return any((folder / RUN_FOLDER / name).is_file() for name in (METRICS_FILE, SETTINGS_FILE))
