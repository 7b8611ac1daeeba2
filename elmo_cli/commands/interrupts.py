"""Ctrl-C from the first moment to the last, whatever the program is doing."""

import signal
import sys
from types import FrameType
from typing import Final

_IMPORTING: Final = "<frozen importlib"  # file names of the code that imports


class Interrupts:
    """Makes SIGINT a `KeyboardInterrupt` that no import can swallow.

    Libraries catch every exception while they try what there is to import, and an interrupt at that moment would be
    lost: the command would go on as if nothing had been asked. So one that comes during an import is raised again by
    each later import, until `forget`.
    """

    def __init__(self) -> None:
        self._came_in_import = False

    def install(self) -> None:
        """Take over SIGINT, unless the shell has set it aside, as it does for jobs in the background."""
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
            signal.signal(signal.SIGINT, self.raise_it)
            sys.meta_path.insert(0, self)

    def raise_it(self, number: int, frame: FrameType | None) -> None:
        """Raise the interrupt, and remember it if the stack is one of an import."""
        while frame is not None:
            if frame.f_code.co_filename.startswith(_IMPORTING):
                self._came_in_import = True
            frame = frame.f_back
        raise KeyboardInterrupt

    def forget(self) -> None:
        """Let imports work again: the interrupt has arrived."""
        self._came_in_import = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Find nothing, as one of the finders that every import asks, but raise an interrupt that was swallowed."""
        if self._came_in_import:
            raise KeyboardInterrupt


interrupts: Final = Interrupts()
