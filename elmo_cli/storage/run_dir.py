"""A training run's folder: its settings, its metrics, and checkpoints from which it goes on exactly."""

import json
import os
import shutil
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_cli.errors import ModelError, OutputError, Place
from elmo_cli.storage.files import output_error, write_bytes_whole, write_text_whole
from elmo_cli.storage.registry import is_model

if TYPE_CHECKING:
    from torch import Tensor

RUN_FOLDER = "run"
SETTINGS_FILE = "settings.toml"
_KEPT_CHECKPOINTS = 2  # the newest may turn out damaged after a crash of the machine

Settings = Mapping[str, Mapping[str, Any]]  # TOML tables of plain values


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on: tensors by name, and plain values (position, counters, best so far)."""

    tensors: "dict[str, Tensor]"
    values: dict[str, Any]


class RunDir:
    """The folder ``run`` inside a model's folder.

    Args:
        model_folder: where the trained model goes.
    """

    def __init__(self, model_folder: Path) -> None:
        self.path = model_folder / RUN_FOLDER

    def create(self, settings: Settings) -> None:
        """Make the folder and write the settings down."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise output_error(self.path, error) from error
        # Names of files need not be UTF-8; `settings` reads their bytes back.
        write_bytes_whole(self.path / SETTINGS_FILE, to_toml(settings).encode("utf-8", errors="surrogateescape"))

    def remove(self) -> None:
        """Remove what an earlier run left here."""
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
        except (OSError, ValueError) as error:
            raise ModelError(f"cannot be read: {error}", where=Place(str(path))) from error

    def add_metrics(self, values: Mapping[str, Any]) -> None:
        """Append a line to ``metrics.jsonl``."""
        path = self.path / "metrics.jsonl"
        try:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(values) + "\n")
        except OSError as error:
            raise output_error(path, error) from error

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint beside the older ones, then remove all but the newest two.

        The folder gets its name only when everything in it is on the disk.
        """
        from safetensors.torch import save

        final = self.path / f"checkpoint-{checkpoint.values['step']:09d}"
        building = self.path / f".{final.name}.part"
        try:
            shutil.rmtree(building, ignore_errors=True)
            building.mkdir()
            write_bytes_whole(building / "tensors.safetensors", save(checkpoint.tensors))
            write_text_whole(building / "values.json", json.dumps(checkpoint.values, indent=2) + "\n")
            if final.exists():  # the same step saved twice, for instance at the end of a run and when it is resumed
                shutil.rmtree(final)
            os.rename(building, final)
        except OSError as error:
            raise output_error(final, error) from error
        finally:
            shutil.rmtree(building, ignore_errors=True)
        for old in self._checkpoints()[_KEPT_CHECKPOINTS:]:
            shutil.rmtree(old, ignore_errors=True)

    def keep_metrics(self, last_step: int) -> None:
        """Drop the metrics of later steps, which are about to be made again, and a line that a crash has cut short."""
        path = self.path / "metrics.jsonl"
        if not path.exists():
            return
        kept = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line]
        kept = [line for line in kept if (step := _step_of(line)) is not None and step <= last_step]
        write_text_whole(path, "".join(f"{line}\n" for line in kept))

    def load_newest(self) -> tuple[Checkpoint, list[str]] | None:
        """Return the newest checkpoint that can be read and the names of damaged newer ones; None if there is none.

        Raises:
            ModelError: there are checkpoints, and all of them are damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        damaged: list[str] = []
        for folder in self._checkpoints():
            try:
                values = json.loads((folder / "values.json").read_text(encoding="utf-8"))
                return Checkpoint(load((folder / "tensors.safetensors").read_bytes()), values), damaged
            except (OSError, ValueError, SafetensorError):
                damaged.append(folder.name)
        if damaged:
            raise ModelError(
                f"no checkpoint can be read; damaged: {', '.join(damaged)}",
                where=Place(str(self.path)),
                fix="start over with --force",
            )
        return None

    def _checkpoints(self) -> list[Path]:
        """Return the checkpoints' folders, newest first; the step in the name has a fixed width."""
        return sorted(self.path.glob("checkpoint-*"), reverse=True)


def _step_of(line: str) -> int | None:
    """Return the step of a line of metrics, None if the line is not whole."""
    try:
        return int(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError):
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

    Raises:
        OutputError: there is one.
    """
    if not force and (is_model(folder) or (folder / RUN_FOLDER).exists()):
        raise OutputError(
            "there is a model or a run already",
            where=Place(str(folder)),
            fix=f"go on with --resume {folder}, replace it with --force, or choose another -o",
        )
