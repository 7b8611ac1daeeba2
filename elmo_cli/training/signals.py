"""SIGINT, SIGTERM and SIGHUP as a wish to stop, which training grants when it has saved."""

import signal
import threading
from types import FrameType, TracebackType


def stopping_signals() -> list[signal.Signals]:
    """Return the signals that ask to stop, but those set aside, as by a shell for jobs in the background or `nohup`."""
    # Windows has no SIGHUP, which comes when a terminal or a connection goes.
    numbers = [signal.Signals[name] for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    return [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]


class StopSignals:
    """While entered, the first of these signals is only noted; a second SIGINT interrupts at once.

    A second SIGTERM does not: batch systems and launchers send several, and the first may be followed by others while
    its checkpoint is being written. One that was ignored, as ``nohup`` does with SIGHUP, stays ignored. Outside the
    main thread, where no handler can be set, nothing is changed.

    Attributes:
        received: number of the first signal; None as long as there was none.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._interrupted = False
        self._old: dict[signal.Signals, object] = {}

    def __enter__(self) -> "StopSignals":
        if threading.current_thread() is threading.main_thread():
            for number in stopping_signals():
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
