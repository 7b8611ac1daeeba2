"""Locks that go with their process, whatever ends it."""

import sys
from typing import IO


def is_free(file: IO[str], *, alone: bool) -> bool:
    """Tell whether nobody else holds a lock, and hold it until the file is closed; where there are no locks, true.

    Args:
        file: open.
        alone: whether nobody else may hold it then; those who only look share it.
    """
    if sys.platform == "win32":
        return True
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # a file system that knows no locks
    return True
