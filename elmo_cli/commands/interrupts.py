"""Ctrl-C and the other signals that ask to stop, from the first moment to the last, whatever the program is doing."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

from elmo_cli.training.signals import stopping_signals

_IMPORTING: Final = "<frozen importlib"  # file names of the code that imports
_LOOK_AGAIN_S: Final = 0.2
_PATIENCE_S: Final = 10.0  # for what is removed on the way out; who asks again after that wants out now


class Interrupts:
    """Makes a signal that asks to stop an exception, so that half-written files are removed on the way out.

    SIGINT becomes a `KeyboardInterrupt`, another signal a `SystemExit` with 128 more than its number, as shells count.
    Libraries lose such exceptions: code that tries what there is to import catches all of them; code in C makes an
    error of its own out of one, or drops it; and in C++ that is being imported it aborts the process. So a signal that
    comes during an import waits for the next one that begins, or for the end of all; an exception that was dropped is
    raised again; and one that was turned into another error is known by `unmistaken`. While the program is on its
    way out, it is not disturbed by a second signal.
    """

    def __init__(self) -> None:
        self._number: int | None = None  # of the first signal
        self._came = 0.0

    def install(self) -> None:
        """Take over the signals that ask to stop."""
        for number in stopping_signals():
            signal.signal(number, self.stop)
        if hasattr(signal, "setitimer"):
            signal.signal(signal.SIGALRM, self._look_again)
        sys.meta_path.insert(0, self)

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Raise the exception of a signal, unless it has to wait, or an earlier one is on its way out."""
        if self._number is None:
            self._number, self._came = number, time.monotonic()
        self._look_again(number, frame)

    def _look_again(self, number: int, frame: FrameType | None) -> None:
        if self._number is None:
            return
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, _LOOK_AGAIN_S)
        if not self._is_leaving() and not _is_importing(frame):
            raise self._exception(self._number)

    def _is_leaving(self) -> bool:
        """Tell whether code runs that an exception of ours has come through, such as a ``finally``."""
        error = sys.exception()
        while error is not None:
            if isinstance(error, KeyboardInterrupt | SystemExit):
                return time.monotonic() - self._came < _PATIENCE_S
            error = error.__context__
        return False

    @staticmethod
    def _exception(number: int) -> BaseException:
        return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)

    def forget(self) -> None:
        """Do no more: the exception has arrived."""
        self._number = None
        if hasattr(signal, "setitimer"):
            signal.setitimer(signal.ITIMER_REAL, 0)

    @contextmanager
    def unmistaken(self) -> Iterator[None]:
        """Take any error of the block for what it comes from, once a signal has come."""
        try:
            yield
        except Exception as error:
            if self._number is None:
                raise
            raise self._exception(self._number) from error

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing, as one of the finders that every import asks, but raise what has waited for it."""
        if self._number is not None and not self._is_leaving():
            raise self._exception(self._number)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTING):
            return True
        frame = frame.f_back
    return False


interrupts: Final = Interrupts()
