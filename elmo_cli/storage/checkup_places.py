"""The places on disk that elmo uses: models that can be found by name, the cache, temporary files."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from elmo_cli import settings
from elmo_cli.errors import ElmoError
from elmo_cli.storage.registry import find_model, is_model

Facts = list[dict[str, Any]]  # a folder each, under stable names
Told = list[dict[str, Any]]  # problems: message, fix, where

_LITTLE_ROOM: Final = 1_000_000_000  # bytes; a prepared corpus or the vectors of a book are soon as large
_MADE_AGAIN: Final = ("corpora", "layers", "neighbors")  # folders of the cache: what texts and models give again


def found_models() -> list[Path]:
    """Return the models that can be found by name, in the order of the search."""
    found = []
    for folder in _different(settings.model_folders()):
        try:
            found += sorted(path for path in folder.iterdir() if is_model(path))
        except OSError:
            continue  # told by `check_models`
    return found


def check_models(models: Sequence[Path], opened: dict[str, dict[str, Any]], default: str) -> tuple[Facts, Told]:
    """Return the places in which models are looked for, with the models in each, and what is wrong there.

    Args:
        models: the models there are.
        opened: what each is, or what is wrong with it, by its folder; nothing if none could be tried.
        default: the model that commands take when none is named.
    """
    places, told = [], list(_named_places_gone())
    taken: set[str] = set()
    for place in _different(settings.model_folders()):
        inside = []
        for path in (path for path in models if path.parent == place):
            found = opened.get(str(path), {})
            model: dict[str, Any] = {"name": path.name, "opens": "dim" in found if opened else None}
            model |= {key: found[key] for key in ("dim", "language", "bytes") if key in found}
            inside.append({**model, "hidden": path.name in taken})
            taken.add(path.name)
            if "problem" in found:
                fix = found["fix"] or f"copy or train the model again, or remove {shlex.quote(str(path))}"
                told.append({"message": found["problem"], "fix": fix, "where": found["where"] or str(path)})
        places.append({"folder": str(place), "there": place.is_dir(), "models": inside})
    try:
        find_model(default)
    except ElmoError as error:
        fix = error.fix or "name another with -m, or set ELMO_MODEL"
        told.append({"message": f"the default model is not there: {error.message}", "fix": fix, "where": None})
    return places, told


def _different(folders: Sequence[Path]) -> list[Path]:
    """Return folders without those that are there under another name already, as ``./models`` in a checkout."""
    found: dict[str, Path] = {}
    for folder in folders:
        found.setdefault(_real(folder), folder)
    return list(found.values())


def _named_places_gone() -> Iterator[dict[str, Any]]:
    """Yield what is wrong with the folders of ``$ELMO_MODELS``; all others need not be there."""
    for folder in settings.named_model_folders():
        if not folder.is_dir():
            what = "is a file, no folder" if folder.exists() else "no such folder"
        elif not os.access(folder, os.R_OK | os.X_OK):
            what = "the folder may not be read"
        else:
            continue
        yield {"message": f"ELMO_MODELS names it, but {what}", "fix": "take it out, or mend it", "where": str(folder)}


def check_folders() -> tuple[Facts, Told]:
    """Return the folders that are written to, with their sizes and the room there is, and what is wrong with them."""
    cache = settings.cache_folder()
    asked = {
        "cache": (cache, "set ELMO_CACHE to a folder that can be written"),
        "temporary": (_temporary_folder(), "set TMPDIR to a folder that can be written"),
        "working": (Path("."), "work in a folder that can be written, or name one with -o"),
    }
    folders, told = [], []
    for name, (folder, fix) in asked.items():
        trouble = _why_not_writable(folder)
        free = _free_bytes(folder)
        size = _size(folder) if name == "cache" else None
        found = {"name": name, "folder": _shown(folder), "writable": trouble is None, "free": free}
        folders.append(found if size is None else {**found, "bytes": size})
        if trouble is not None:
            told.append(
                {"message": f"the {name} folder cannot be written: {trouble}", "fix": fix, "where": str(folder)}
            )
        elif free is not None and free < _LITTLE_ROOM:
            message = f"only {free / 1e6:,.0f} MB are free on the disk of the {name} folder"
            told.append({"message": message, "fix": _more_room(name, cache), "where": str(folder)})
    return folders, told


def _more_room(name: str, cache: Path) -> str:
    """Return what to do where a folder's disk is nearly full: nothing else in the cache's folder need be ours."""
    sizes = {cache / kind: _size(cache / kind) for kind in _MADE_AGAIN} if name == "cache" else {}
    if not any(sizes.values()):
        return "make room there, or choose a folder on another disk"
    folders = shlex.join(str(folder) for folder, size in sizes.items() if size)
    return f"rm -r {folders} frees {sum(sizes.values()) / 1e6:,.0f} MB, which elmo makes again"


def _temporary_folder() -> Path:
    try:
        return Path(tempfile.gettempdir())
    except OSError:  # there is none that can be written, which is told below
        return Path("/tmp")


def _real(folder: Path) -> str:
    try:
        return os.path.realpath(folder)
    except OSError:  # the working folder has been removed, and the name begins there
        return str(folder)


def _shown(folder: Path) -> str:
    """Return the full name of a folder, as far as it has one: the working folder may have been removed."""
    try:
        return str(folder.absolute())
    except OSError:
        return str(folder)


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that is there."""
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if os.path.lexists(path))


def _why_not_writable(folder: Path) -> str | None:
    """Try to make a file where the folder is, or would be made; None if that works."""
    try:
        with tempfile.TemporaryFile(dir=_existing(folder)):
            return None
    except OSError as error:
        return error.strerror or str(error)


def _free_bytes(folder: Path) -> int | None:
    try:
        return shutil.disk_usage(_existing(folder)).free
    except OSError:
        return None


def _size(folder: Path) -> int:
    """Return the bytes of all files in a folder, as far as they can be seen."""
    total = 0
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(path, name)).st_size
            except OSError:
                continue  # gone in the meantime
    return total
