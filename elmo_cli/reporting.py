"""How a procedure tells what it is doing, without knowing who listens: a terminal, a log, a test, nobody."""

from types import TracebackType
from typing import Protocol, runtime_checkable


@runtime_checkable  # the types of arguments are checked in tests
class Progress(Protocol):
    """One piece of work under way, used as a context manager."""

    def __enter__(self) -> "Progress": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def update(self, done: float, status: str = "") -> None:
        """Say how far the work is, in the unit it was announced with, and a few words on its state."""


@runtime_checkable  # the types of arguments are checked in tests
class Reporter(Protocol):
    """Takes notes, warnings and progress. Nothing it does may change a result."""

    def note(self, text: str) -> None:
        """Tell something the user may want to know."""

    def warn(self, text: str) -> None:
        """Tell something the user should look at."""

    def progress(self, title: str, total: float | None, unit: str) -> Progress:
        """Announce a piece of work of ``total`` units (None: not known)."""


def counted(number: int, noun: str) -> str:
    """Return how many there are of something: ``1 sentence``, ``2,000 sentences``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def figure(number: float, digits: int = 1) -> str:
    """Return a number with thousands separators; beyond a billion, as of a model that is lost, in powers of ten."""
    return f"{number:,.{digits}f}" if number < 1e9 else f"{number:.1e}"


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``0.5s``, ``45s``, ``6m``, ``2h 05m``."""
    if seconds < 60:
        return f"{seconds:.0f}s" if seconds >= 1 or not seconds else f"{seconds:.1g}s"
    minutes = round(seconds / 60)
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"


class SilentProgress:
    """A `Progress` that nobody watches."""

    def __enter__(self) -> "SilentProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, done: float, status: str = "") -> None:
        """Do nothing."""


class SilentReporter:
    """A `Reporter` that keeps everything to itself: the default of the Python API."""

    def note(self, text: str) -> None:
        """Do nothing."""

    def warn(self, text: str) -> None:
        """Do nothing."""

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        """Return a progress that nobody watches."""
        return SilentProgress()
