"""What the commands say: answers on stdout, everything else on stderr. The only module that prints."""

import json
import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from elmo_cli.errors import ElmoError, Interrupted

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_LINE_S = 30.0  # between progress lines where stderr is no terminal


def answer(text: str) -> None:
    """Print a line of the command's answer."""
    print(_encodable(text, sys.stdout))


def answer_json(value: dict[str, Any]) -> None:
    """Print an object as one line of JSON."""
    answer(json.dumps(value, ensure_ascii=False, allow_nan=False))


def answer_table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
    """Print rows of cells in aligned columns: those of words to the left, the others, which are numbers, to the right.

    Args:
        rows: the header first.
        left: numbers of the columns of words, from 0.
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.ljust(width) if number in left else cell.rjust(width)
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        answer("  ".join(cells).rstrip())


def error(problem: ElmoError | str) -> None:
    """Print what went wrong; what was stopped on purpose went as it should."""
    _say(f"elmo: {problem}" if isinstance(problem, Interrupted) else f"elmo: error: {problem}")


def interrupted() -> None:
    """Say that the user stopped the command."""
    _say("elmo: interrupted")


def _say(text: str) -> None:
    print(_encodable(text, sys.stderr), file=sys.stderr, flush=True)


def _encodable(text: str, stream: TextIO) -> str:
    """Return text that a stream in another encoding takes, and with it file names that are not UTF-8."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


class ConsoleReporter:
    """A `Reporter` on stderr: notes as lines; progress as a bar on a terminal, else as a line now and then.

    Args:
        quiet: say nothing but warnings.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._live: RichProgress | None = None

    def note(self, text: str) -> None:
        """Print a line, above the progress bar if there is one."""
        if not self.quiet:
            self._line(text)

    def warn(self, text: str) -> None:
        """Print a warning, also when quiet."""
        self._line(f"elmo: warning: {text}")

    def progress(self, title: str, total: float | None, unit: str) -> "PlainProgress | BarProgress":
        """Announce a piece of work."""
        if self.quiet or not sys.stderr.isatty():
            return PlainProgress(self, title, total, unit)
        return BarProgress(self, title, total, unit)

    def _line(self, text: str) -> None:
        if self._live is None:
            _say(text)
        else:
            self._live.console.print(text, markup=False, highlight=False)


class PlainProgress:
    """A line every half minute: ``training 1,200/8,000 steps, ..., eta 6m``."""

    def __init__(self, reporter: ConsoleReporter, title: str, total: float | None, unit: str) -> None:
        self._reporter = reporter
        self._title, self._total, self._unit = title, total, unit
        self._first: float | None = None  # what was done before, in an earlier part of a resumed run
        self._started = self._told = time.monotonic()

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, done: float, status: str = "") -> None:
        """Print a line if it is time for one."""
        now = time.monotonic()
        if self._first is None:
            self._first = done
        if now - self._told < _LINE_S:
            return
        self._told = now
        of = "" if self._total is None else f"/{self._total:,.0f}"
        parts = [f"{self._title} {done:,.0f}{of} {self._unit}"]
        rate = (done - self._first) / max(now - self._started, 1e-9)
        if self._total is None and rate:
            parts.append(f"{rate:,.0f} {self._unit}/s")
        if status:
            parts.append(status)
        if self._total is not None and rate > 0:
            parts.append(f"eta {duration_text((self._total - done) / rate)}")
        self._reporter.note(", ".join(parts))


class BarProgress:
    """A rich progress bar with rate or time left."""

    def __init__(self, reporter: ConsoleReporter, title: str, total: float | None, unit: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        left = [TimeRemainingColumn(compact=True)] if total is not None else [TimeElapsedColumn()]
        self._reporter = reporter
        self._unit = unit
        self._of = "" if total is None else f"/{total:,.0f}"
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[count]}"),
            *left,
            TextColumn("{task.fields[status]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(title, total=total, count="", status="")

    def __enter__(self) -> "BarProgress":
        self._reporter._live = self._bar
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()
        self._reporter._live = None

    def update(self, done: float, status: str = "") -> None:
        """Move the bar."""
        self._bar.update(self._task, completed=done, count=f"{done:,.0f}{self._of} {self._unit}", status=status)


def duration_text(seconds: float) -> str:
    """Return a duration in its two largest units: ``45s``, ``6m``, ``2h 05m``."""
    if seconds < 60:
        return f"{seconds:.0f}s"
    minutes = round(seconds / 60)
    return f"{minutes}m" if minutes < 60 else f"{minutes // 60}h {minutes % 60:02d}m"
