"""Models by name: where ``-m NAME`` is looked up and where a new model is put."""

import difflib
import os
from collections.abc import Iterator
from pathlib import Path

from elmo_cli import settings
from elmo_cli.errors import ConfigError, ModelError, Place

CONFIG_FILE = "config.json"


def find_model(name: str) -> Path:
    """Return the folder of a model.

    Args:
        name: a path (with a slash, or a folder that holds a model), or a name under one of
            `settings.model_folders`.

    Raises:
        ModelError: there is no such model; the message lists the names there are.
        ConfigError: the name is empty.
    """
    _refuse_empty(name)
    path = Path(name)
    if is_model(path):
        return path
    if _is_path(name):
        raise ModelError(_why_no_model(path), where=Place(name), fix="name the folder that holds config.json")
    for folder in settings.model_folders():
        if is_model(folder / name):
            return folder / name
    if os.path.exists(path):
        raise ModelError(_why_no_model(path), where=Place(name), fix=f"choose a folder that holds {CONFIG_FILE}")
    names = model_names()
    near = difflib.get_close_matches(name, names, n=1)
    if not names:
        raise ModelError(
            f"no model {name!r}; there is none yet", fix="train one with `elmo train`, or name the folder of one"
        )
    raise ModelError(
        f"no model {name!r}; there are: {', '.join(names)}",
        fix=f"did you mean {near[0]}?" if near else "name one of them, or a folder",
    )


def model_names() -> list[str]:
    """Return the names of all models that can be found by name, sorted."""
    return sorted({path.name for folder in settings.model_folders() for path in _models_in(folder)})


def new_model_folder(name: str) -> Path:
    """Return the folder in which a model of this name is to be written: a path as it is, a name under ``models/``.

    Raises:
        ConfigError: the name is empty.
    """
    _refuse_empty(name)
    path = Path(name)
    return path if _is_path(name) or os.path.isdir(path) else Path("models") / name


def is_model(path: Path) -> bool:
    """Tell whether a folder holds a model; one that may not be entered holds none for us."""
    try:
        return (path / CONFIG_FILE).is_file()
    except OSError:
        return False


def _refuse_empty(name: str) -> None:
    if not name:
        raise ConfigError("a model's name is empty", fix="check the quotes or the shell variable it comes from")


def _is_path(name: str) -> bool:
    return os.sep in name or name in (".", "..") or (os.altsep is not None and os.altsep in name)


def _models_in(folder: Path) -> Iterator[Path]:
    try:
        yield from (path for path in folder.iterdir() if is_model(path))
    except OSError:
        return  # a folder of the search path that is not there, or that may not be read, holds nothing for us


def _why_no_model(path: Path) -> str:
    if not os.path.exists(path):  # unlike Path.exists, also of a name that is too long, or behind a closed folder
        return "no such folder"
    if not path.is_dir():
        return "is a file, not a model's folder"
    if not os.access(path, os.R_OK | os.X_OK):
        return "the folder may not be read"
    return f"the folder holds no model (no {CONFIG_FILE})"
