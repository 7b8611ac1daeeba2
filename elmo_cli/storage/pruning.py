"""Cache folders that stay below a size: what was used longest ago is removed when something new is kept.

An entry is a file or folder named by its key. Whoever takes one marks it as used, and none that was used or written
within a day is removed: so no process loses what it works with, whatever others keep meanwhile.
"""

import os
import re
import secrets
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from elmo_cli.locks import is_free

LARGEST_BYTES: Final = 5_000_000_000  # of a folder; README.md says it, too
_STAYS_S: Final = 24 * 60 * 60  # longer than any command works with an entry
_LOCK: Final = "lock"  # shared by those who take an entry, held alone while it is settled what is removed
# Nothing of another name is ever removed, and no link: $ELMO_CACHE may name a folder that holds other things.
_KEY: Final = "[0-9a-f]{32}"


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file or folder, what it takes, and when it was last used or written."""

    path: Path
    size: int
    used: float


def mark_used(entry: Path) -> bool:
    """Mark an entry as used, so that it stays for a day; false if there is none, or if it may be removed right now."""
    with _locked(entry.parent, alone=False) as is_ours:
        if not is_ours:
            return False
        try:
            os.utime(entry)
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:  # of another user, who lets this one read it
            return True
        return True


def prune(folder: Path, ending: str = "") -> None:
    """Remove entries, those used longest ago first, until the folder is small enough, and what kills have left.

    Nothing that was used or written within a day is removed, however large the folder is. What cannot be removed
    stays; while another process uses the lock, all does.

    Args:
        folder: of the entries.
        ending: of their names, behind the key: ``.npy``; empty for folders.
    """
    with _locked(folder, alone=True) as is_ours:
        removed = _set_aside(folder, re.escape(ending)) if is_ours else []
    for path in removed:
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with suppress(OSError):
                path.unlink()


def _set_aside(folder: Path, ending: str) -> list[Path]:
    """Take the names from the entries that go, at once for each of them, and return what is to be removed."""
    entries = _entries(folder, _KEY + ending)
    # As `files.whole_file` and `files.whole_folder` name what they have not finished.
    leftovers = _entries(folder, rf"\.{_KEY}{ending}\.[0-9a-f]{{16}}\.(part|old)")
    newest = time.time() - _STAYS_S
    removed = [entry.path for entry in leftovers if entry.used < newest]
    size = sum(entry.size for entry in entries)
    for entry in sorted(entries, key=lambda entry: entry.used):
        if size <= LARGEST_BYTES or entry.used >= newest:
            break
        aside = folder / f".{entry.path.name}.{secrets.token_hex(8)}.old"
        with suppress(OSError):
            entry.path.rename(aside)
            removed.append(aside)
            size -= entry.size
    return removed


def _entries(folder: Path, name: str) -> list[_Entry]:
    with suppress(OSError):
        paths = [path for path in folder.iterdir() if re.fullmatch(name, path.name) and not path.is_symlink()]
        return [entry for path in paths if (entry := _entry(path)) is not None]
    return []


def _entry(path: Path) -> _Entry | None:
    """Return what is known of an entry; None if it has gone meanwhile."""
    try:
        found = [part.lstat() for part in (path, *path.rglob("*"))]
    except OSError:
        return None
    return _Entry(path, sum(part.st_size for part in found), max(part.st_mtime for part in found))


@contextmanager
def _locked(folder: Path, *, alone: bool) -> Iterator[bool]:
    """Hold the lock of a folder and say so; where there can be none, those who only take an entry go on without."""
    try:
        file = (folder / _LOCK).open("a", encoding="utf-8")
    except OSError:  # there is no folder yet, or it may only be read
        yield not alone
        return
    with file:
        yield is_free(file, alone=alone)
