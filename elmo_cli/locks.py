"""Locks that go with their process, whatever ends it, and with them what a kill has left for somebody to remove."""

import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

# Locks of a file system that many machines share may hold on one of them alone: what somebody on another one is
# writing is known by its time.
_UNTOUCHED_S: Final = 30.0


def is_free(file: IO[Any] | int, *, alone: bool) -> bool:
    """Tell whether nobody else holds a lock, and hold it until the file is closed; where there are no locks, true.

    Args:
        file: open, or its descriptor.
        alone: whether nobody else may hold it then; those who only look share it.
    """
    return _lock(file, alone=alone) is not False


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a lock on a file or folder that is being written, as far as the system lets us: see `remove_abandoned`."""
    descriptor = None
    with suppress(OSError):
        if sys.platform != "win32":  # where what is open keeps its name
            descriptor = os.open(path, os.O_RDONLY)
            _lock(descriptor, alone=True)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def remove_abandoned(paths: Iterable[Path]) -> None:
    """Remove files and folders that somebody has begun to write, if that was a while ago and nobody holds them.

    Where this cannot be known for certain they stay.
    """
    for path in paths:
        with suppress(OSError):
            if time.time() - _last_change(path) < _UNTOUCHED_S:
                continue
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
            try:
                if _lock(descriptor, alone=True) is not True:
                    continue
                if path.is_dir():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()
            finally:
                os.close(descriptor)


def _last_change(path: Path) -> float:
    return max(part.lstat().st_mtime for part in (path, *path.rglob("*")))


def _lock(file: IO[Any] | int, *, alone: bool) -> bool | None:
    """Take a lock and say so; None where there are no locks."""
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None  # a file system that knows no locks
    return True
