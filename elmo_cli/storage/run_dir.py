"""A training run's folder: its settings, its metrics, and checkpoints from which it goes on exactly."""

import errno
import json
import os
import shlex
import shutil
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from elmo_cli.errors import ModelError, OutputError, Place, TargetExists
from elmo_cli.locks import is_free
from elmo_cli.storage.checkpoints import (
    Checkpoint,
    forget_checkpoints,
    has_checkpoint,
    load_checkpoint,
    load_newest_checkpoint,
    save_checkpoint,
    with_remedy,
)
from elmo_cli.storage.files import output_error, write_bytes_whole, write_text_whole
from elmo_cli.storage.registry import is_model
from elmo_cli.storage.strict_json import strict_json
from elmo_cli.storage.tensorboard import EventWriter

RUN_FOLDER = "run"
SETTINGS_FILE = "settings.toml"
METRICS_FILE = "metrics.jsonl"
FINETUNE_TABLE = "finetune"  # of the settings of a run that starts from a model
_LOCK_FILE = "lock"
_FINISHED_FILE = "finished"

Settings = Mapping[str, Mapping[str, Any]]  # TOML tables of plain values


class RunDir:
    """The folder ``run`` inside a model's folder.

    Args:
        model_folder: where the trained model goes.
    """

    def __init__(self, model_folder: Path) -> None:
        self.path = model_folder / RUN_FOLDER
        self._events: EventWriter | None = None

    def create(self, settings: Settings) -> None:
        """Make the folder and write the settings down."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(self.path, error) from error
        # Names of files need not be UTF-8; `settings` reads their bytes back.
        write_bytes_whole(self.path / SETTINGS_FILE, to_toml(settings).encode("utf-8", errors="surrogateescape"))

    def refuse_unwritable(self) -> None:
        """Refuse a folder, there or yet to be made, that may not be written, before hours go into what it is to hold.

        Raises:
            OutputError: it, or the nearest folder above it, may not be written.
        """
        nearest = next(path for path in self.path.absolute().parents if path.exists())
        if not nearest.is_dir():
            raise output_error(self.path, NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)))
        if not os.access(nearest, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
            raise output_error(self.path.parent, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))

    @contextmanager
    def under_way(self) -> Iterator[None]:
        """Mark the run as under way while the block runs, and as finished if it ends without an exception.

        The mark is a lock that goes with its process, whatever ends that; so nobody has to guess from times of files.

        Raises:
            OutputError: another process has this run under way, or the folder cannot be written.
        """
        try:
            lock = (self.path / _LOCK_FILE).open("a")
        except OSError as error:
            raise output_error(self.path / _LOCK_FILE, error) from error
        with lock:
            if not is_free(lock, alone=True):
                raise self._running()
            (self.path / _FINISHED_FILE).unlink(missing_ok=True)
            yield
            write_text_whole(self.path / _FINISHED_FILE, "")

    @property
    def state(self) -> str:
        """``running``, ``finished`` or ``interrupted``."""
        with suppress(OSError), (self.path / _LOCK_FILE).open() as lock:
            if not is_free(lock, alone=False):
                return "running"
        return "finished" if (self.path / _FINISHED_FILE).exists() else "interrupted"

    def _running(self) -> OutputError:
        return OutputError(
            "another process has this run under way",
            where=Place(str(self.path.parent)),
            fix="wait for it or stop it, or choose another -o",
        )

    def remove(self) -> None:
        """Remove what an earlier run left here.

        Raises:
            OutputError: the run is still under way, or cannot be removed.
        """
        if self.state == "running":
            raise self._running()
        try:
            if self.path.exists():
                shutil.rmtree(self.path)
        except OSError as error:
            raise output_error(self.path, error) from error

    def settings(self) -> dict[str, dict[str, Any]]:
        """Read the settings back.

        Raises:
            ModelError: there is no run here.
        """
        path = self.path / SETTINGS_FILE
        try:
            return tomllib.loads(path.read_text(encoding="utf-8", errors="surrogateescape"))
        except FileNotFoundError as error:
            raise ModelError("holds no run to resume", where=Place(str(self.path.parent))) from error
        except (OSError, ValueError, RecursionError) as error:
            raise ModelError(f"cannot be read: {error}", where=Place(str(path))) from error

    def metrics(self) -> list[dict[str, Any]]:
        """Return the lines of ``metrics.jsonl``; one that a crash has cut short, or that is being written, is left out.

        Raises:
            ModelError: the file cannot be read.
        """
        path = self.path / METRICS_FILE
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError as error:
            raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
        return [json.loads(line) for line in lines if _step_of(line) is not None]

    def add_metrics(self, values: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``, null for what is no number, and the same to the events of TensorBoard."""
        path = self.path / METRICS_FILE
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(strict_json(values) + "\n")
            if self._events is not None:
                self._events.add(values)
        except OSError as error:
            raise output_error(path, error) from error

    def write_events(self, step: int) -> None:
        """Write metrics from now on as TensorBoard's events too; those of later steps than ``step`` no longer count."""
        try:
            self._events = EventWriter(self.path, first_step=step + 1)
        except OSError as error:
            raise output_error(self.path, error) from error

    @property
    def has_events(self) -> bool:
        """Whether an earlier part of the run has written events."""
        return any(self.path.glob("events.out.tfevents.*"))

    def save(self, checkpoint: Checkpoint, *, keep: Collection[int] = ()) -> None:
        """Write a checkpoint, as `save_checkpoint` does; beside the newest two, those of the steps ``keep`` are kept.

        Raises:
            OutputError: it cannot be written; the older ones are as they were.
        """
        save_checkpoint(self.path, checkpoint, keep=keep)

    def with_remedy(self, problem: OutputError, go_on: str) -> OutputError:
        """Return a problem that stops the run, with what is kept of it and how to go on."""
        return with_remedy(self.path, problem, go_on)

    def keep_metrics(self, last_step: int) -> None:
        """Drop the metrics of later steps, which are about to be made again, and a line that a crash has cut short."""
        path = self.path / METRICS_FILE
        if not path.exists():
            return
        kept = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line]
        kept = [line for line in kept if (step := _step_of(line)) is not None and step <= last_step]
        write_text_whole(path, "".join(f"{line}\n" for line in kept))

    def load_newest(self) -> tuple[Checkpoint, list[str]] | None:
        """Return the newest checkpoint that is undamaged and the names of damaged newer ones; None if there is none.

        Raises:
            ModelError: there are checkpoints, and all of them are damaged.
        """
        return load_newest_checkpoint(self.path)

    def has_checkpoint(self, step: int) -> bool:
        """Tell whether there is a checkpoint of a step."""
        return has_checkpoint(self.path, step)

    def load(self, step: int) -> Checkpoint | None:
        """Return the checkpoint of a step; None if there is none or it is damaged."""
        return load_checkpoint(self.path, step)

    def go_back(self, step: int) -> None:
        """Drop metrics and checkpoints of later steps, which are about to be made again."""
        self.keep_metrics(step)
        forget_checkpoints(self.path, step)
        if self._events is not None:
            self.write_events(step)


def _step_of(line: str) -> int | None:
    """Return the step of a line of metrics, None if the line is not whole."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None


def to_toml(settings: Settings) -> str:
    """Return TOML for tables of strings, numbers, truth values and lists of strings; None is left out."""
    return "\n".join("\n".join(_table(name, table)) + "\n" for name, table in settings.items())


def _table(name: str, table: Mapping[str, Any]) -> Iterator[str]:
    yield f"[{name}]"
    for key, value in table.items():
        if value is not None:
            # JSON's strings, numbers, truth values and lists are TOML's too; DEL is the one character that is not.
            yield f"{key} = {json.dumps(value, ensure_ascii=False)}".replace("\x7f", "\\u007f")


def _has_begun(run: RunDir) -> bool:
    return run.state == "running" or any(path.name not in (SETTINGS_FILE, _LOCK_FILE) for path in run.path.glob("*"))


def find_run(name: str) -> Path:
    """Return the folder of the model whose run is to go on: a path, or a name under ``models/``.

    Raises:
        ModelError: there is no run.
    """
    for folder in (Path(name), Path("models") / name):
        if (folder / RUN_FOLDER / SETTINGS_FILE).is_file():
            return folder
    raise ModelError("there is no run to go on with", where=Place(name), fix="name the folder of a model in training")


def refuse_existing_model(folder: Path, *, force: bool) -> None:
    """Refuse to train over a model or a run, unless forced.

    A run that was stopped before it measured or saved anything is none: there is nothing to lose, and who stops at the
    sight of the plan wants to begin anew.

    Raises:
        TargetExists: there is one.
    """
    if not force and (is_model(folder) or _has_begun(RunDir(folder))):
        raise TargetExists(
            "there is a model or a run already",
            where=Place(str(folder)),
            fix=f"go on with --resume {shlex.quote(str(folder))}, replace it with --force, or choose another -o",
        )
