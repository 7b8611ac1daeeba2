"""SIGINT, SIGTERM and SIGHUP as a wish to stop, which training grants when it has saved."""

import signal
import threading
from types import FrameType, TracebackType
from typing import Final

_STOPPING: Final = ("SIGINT", "SIGTERM", "SIGHUP")  # the last when a terminal or a connection closes


class StopSignals:
    """While entered, the first signal is only noted; a second SIGINT interrupts at once.

    A second SIGTERM does not: batch systems and launchers send several, and the first may be followed by others while
    its checkpoint is being written. A SIGHUP that is set aside, as `nohup` does, stays so. Outside the main thread,
    where no handler can be set, nothing is changed.

    Attributes:
        received: number of the first signal; None as long as there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._interrupted = False
        self._old: dict[signal.Signals, object] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in (getattr(signal, name, None) for name in _STOPPING):
                is_hang_up = number not in (None, signal.SIGINT, signal.SIGTERM)
                if number is None or (is_hang_up and signal.getsignal(number) is signal.SIG_IGN):
                    continue
                self._old[number] = signal.signal(number, self._note)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._old.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGINT:
            if self._interrupted:
                raise KeyboardInterrupt
            self._interrupted = True
        self.received = self.received or number
