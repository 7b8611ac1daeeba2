"""Checkpoints of a run: folders that appear whole, tell damage by their sums, and outlive a full disk and any kill."""

import hashlib
import json
import os
import shutil
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elmo_cli.errors import ModelError, OutputError, Place
from elmo_cli.storage.files import output_error

if TYPE_CHECKING:
    from torch import Tensor

_TENSORS: Final = "tensors.safetensors"
_VALUES: Final = "values.json"
_SUMS: Final = "SHA256SUMS"  # as `sha256sum -c` reads it
_REPLACED: Final = ".old"  # the ending of a checkpoint that another of the same step is taking the place of
_LARGEST_COUNT: Final = 1 << 53  # above it not every whole number is a float
_KEPT: Final = 2  # the newest may turn out damaged after a crash of the machine


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """All that a run needs to go on: tensors by name, and plain values (position, counters, best so far)."""

    tensors: "dict[str, Tensor]"
    values: dict[str, Any]

    @property
    def step(self) -> int:
        """Steps made by then."""
        return int(self.values["step"])


def save_checkpoint(folder: Path, checkpoint: Checkpoint, *, keep: Collection[int]) -> None:
    """Write a checkpoint beside the older ones, then remove the oldest.

    It gets its name only when everything in it is on the disk. Until then no older one is touched.

    Args:
        folder: of the run.
        checkpoint: to write.
        keep: steps whose checkpoints stay, beside this one and the newest two.

    Raises:
        OutputError: it cannot be written; the older ones are as they were.
    """
    from safetensors.torch import save

    final = folder / _name(checkpoint.step)
    replaced = final.with_name(final.name + _REPLACED)
    for left_by_a_kill in folder.glob(".checkpoint-*.part"):
        shutil.rmtree(left_by_a_kill, ignore_errors=True)
    building = folder / f".{final.name}.part"
    try:
        building.mkdir()
        values = (json.dumps(checkpoint.values, indent=2) + "\n").encode()
        sums = [_write(building / _TENSORS, save(checkpoint.tensors)), _write(building / _VALUES, values)]
        _write(building / _SUMS, "".join(sums).encode())
        _settle(building)
        if final.is_dir():  # the same step saved twice, for instance at the end of a run and when it is resumed
            shutil.rmtree(replaced, ignore_errors=True)
            final.rename(replaced)
        building.rename(final)
        _settle(folder)
    except OSError as error:
        raise output_error(final, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)
    _remove_old(folder, {checkpoint.step, *keep})


def load_newest_checkpoint(folder: Path) -> tuple[Checkpoint, list[str]] | None:
    """Return the newest checkpoint that is undamaged and the names of damaged newer ones; None if there is none.

    Raises:
        ModelError: there are checkpoints, and all of them are damaged.
    """
    damaged: list[str] = []
    for path in _found(folder):
        checkpoint = _read(path)
        if checkpoint is not None:
            return checkpoint, damaged
        damaged.append(path.name)
    if damaged:
        raise ModelError(
            f"no checkpoint can be read; damaged: {', '.join(damaged)}",
            where=Place(str(folder)),
            fix="start over with --force",
        )
    return None


def load_checkpoint(folder: Path, step: int) -> Checkpoint | None:
    """Return the checkpoint of a step; None if there is none or it is damaged."""
    return next((found for path in _found(folder) if _step(path) == step and (found := _read(path))), None)


def with_remedy(folder: Path, problem: OutputError, go_on: str) -> OutputError:
    """Return a problem that stops a run, with what is kept of it and how to go on.

    Args:
        folder: of the run.
        problem: that a file cannot be written.
        go_on: command that goes on with the run.
    """
    found = _found(folder)
    if not found:
        return problem
    remedy = (problem.fix or "mend that").split(", or ")[0]  # there is no other place for a run's files to go
    kept = f"{problem.message}; {found[0].name} is kept"
    return OutputError(kept, where=problem.where, fix=f"{remedy}, then go on with: {go_on}")


def checked_fields(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass's fields that a checkpoint holds, whatever else stands beside them.

    Raises:
        KeyError: one is missing.
        ValueError: one is not of its kind, or larger than any count.
    """
    found = {part.name: values[part.name] for part in fields(kind)}
    for part in fields(kind):
        value = found[part.name]
        is_missing = value is None and part.type == float | None
        fits = (part.type,) if part.type in (int, bool) else (int, float)
        if (type(value) not in fits and not is_missing) or (type(value) is int and abs(value) > _LARGEST_COUNT):
            raise ValueError(f"{part.name} is {value!r:.40}")
    return found


def has_checkpoint(folder: Path, step: int) -> bool:
    """Tell whether there is a checkpoint of a step."""
    return any(_step(path) == step for path in _found(folder))


def forget_checkpoints(folder: Path, last_step: int) -> None:
    """Remove the checkpoints of steps after ``last_step``, which are going to be made again in another way."""
    for path in _found(folder):
        if _step(path) > last_step:
            shutil.rmtree(path, ignore_errors=True)


def _name(step: int) -> str:
    return f"checkpoint-{step:09d}"


def _step(path: Path) -> int:
    return int(path.name.removesuffix(_REPLACED).rpartition("-")[2])


def _found(folder: Path) -> list[Path]:
    """Return the checkpoints' folders, newest first; one that was being replaced comes after the one in its place."""
    names = (path for path in folder.glob("checkpoint-*") if path.name.removesuffix(_REPLACED)[11:].isdecimal())
    return sorted(filter(Path.is_dir, names), key=lambda path: (-_step(path), path.name))


def _write(path: Path, content: bytes) -> str:
    """Write a file down to the disk and return its line of sums."""
    with path.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return _sum(content, path.name)


def _sum(content: bytes, name: str) -> str:
    return f"{hashlib.sha256(content).hexdigest()}  {name}\n"


def _settle(folder: Path) -> None:
    """Bring the names in a folder to the disk, where the system lets us."""
    if sys.platform == "win32":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _remove_old(folder: Path, keep: Collection[int]) -> None:
    found = _found(folder)
    replaced = [path for path in found if path.name.endswith(_REPLACED)]
    current = [path for path in found if path not in replaced]
    old = [path for path in current[_KEPT:] if _step(path) not in keep]
    for path in [*replaced, *old]:
        shutil.rmtree(path, ignore_errors=True)


def _read(path: Path) -> Checkpoint | None:
    """Return a checkpoint, None if it is damaged."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        contents = {name: (path / name).read_bytes() for name in (_TENSORS, _VALUES)}
        if "".join(_sum(content, name) for name, content in contents.items()) != (path / _SUMS).read_text("utf-8"):
            return None
        checkpoint = Checkpoint(load(contents[_TENSORS]), dict(json.loads(contents[_VALUES])))
        return checkpoint if checkpoint.step == _step(path) else None
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError, SafetensorError):
        return None
