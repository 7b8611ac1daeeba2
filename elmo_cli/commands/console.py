"""What the commands say: answers on stdout, everything else on stderr. The only module that prints."""

import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, TextIO

from elmo_cli.errors import ElmoError, Interrupted, harmless
from elmo_cli.reporting import duration_text

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress

_WIDE = 80  # columns of a terminal that has room for a long bar
_NAME_WIDTH = 15  # of facts
_LINE_S = 30.0  # between progress lines where stderr is no terminal


def answer(text: str) -> None:
    """Print a line of the command's answer."""
    with answer_errors():
        print(encodable(harmless(text, keep="\n\t") if sys.stdout.isatty() else text, sys.stdout))


def end_of_answer() -> None:
    """Hand on all of the answer: a closed pipe or a full disk shows now, not when the interpreter ends."""
    with answer_errors():
        sys.stdout.flush()


@contextmanager
def answer_errors() -> Iterator[None]:
    """Tell of an answer that cannot be written; the reader's closed pipe is no error and stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        from elmo_cli.storage.files import output_error

        raise output_error(Path("standard output"), error) from error


def answer_json(value: dict[str, Any]) -> None:
    """Print an object as one line of JSON; null stands for what JSON has no number for, NaN and infinity."""
    from elmo_cli.storage.strict_json import strict_json

    answer(strict_json(value))


def answer_table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> None:
    """Print rows of cells in aligned columns: those of words to the left, the others, which are numbers, to the right.

    Args:
        rows: the header first.
        left: numbers of the columns of words, from 0.
    """
    from elmo_cli.neighbors.widths import width

    shown = _shown(rows)
    widths = _widths(shown)
    for row in shown:
        cells = []
        for number, cell in enumerate(row):
            padding = " " * (widths[number] - width(cell))
            cells.append(cell + padding if number in left else padding + cell)
        answer("  ".join(cells).rstrip())


def room_beside(rows: Sequence[Sequence[str]]) -> int | None:
    """Return the columns that a terminal has left beside such a table for one more column, None where it is none."""
    if not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns - sum(width + 2 for width in _widths(_shown(rows)))


def _shown(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return cells as they are going to be seen, so that columns stay columns whatever a file's name holds."""
    return [[encodable(harmless(cell), sys.stdout) for cell in row] for row in rows]


def _widths(rows: Sequence[Sequence[str]]) -> list[int]:
    from elmo_cli.neighbors.widths import width

    return [max(map(width, column)) for column in zip(*rows, strict=True)]


def answer_facts(rows: Sequence[tuple[str, str]]) -> None:
    """Print names and what is known of each, wrapped beside them on a terminal; elsewhere a fact is a line."""
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    width = max(shutil.get_terminal_size().columns - _NAME_WIDTH - 1, 20) if is_terminal else 0
    for name, raw in rows:
        value = harmless(raw)
        for line in _wrapped(value, width) if width else [value]:
            answer(f"{name:<{_NAME_WIDTH}} {line}".rstrip())
            name = ""


def _wrapped(text: str, columns: int) -> list[str]:
    """Return a text in lines of at most so many columns, whatever its script, where no word is wider."""
    from elmo_cli.neighbors.widths import width

    if width(text) <= columns:
        return [text]
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".lstrip()
        if width(longer) <= columns or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def error(problem: ElmoError | str) -> None:
    """Print what went wrong; what was stopped on purpose went as it should."""
    _say(f"elmo: {problem}" if isinstance(problem, Interrupted) else f"elmo: error: {problem}")


def interrupted() -> None:
    """Say that the user stopped the command."""
    _say("elmo: interrupted")


def _say(text: str) -> None:
    with unheard():
        print(encodable(harmless(text, keep="\n\t"), sys.stderr), file=sys.stderr, flush=True)


@contextmanager
def unheard() -> Iterator[None]:
    """Go on with the work where a message cannot be written: its reader may have left, or the disk of a log be full."""
    with suppress(OSError):
        yield


def encodable(text: str, stream: TextIO) -> str:
    """Return text that a stream in another encoding takes, and with it file names that are not UTF-8."""
    encoding = stream.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _is_redrawn() -> bool:
    """Tell whether stderr is a terminal that can erase what it shows: one called dumb shows nothing of a bar."""
    if not sys.stderr.isatty():
        return False
    from rich.console import Console

    return Console(stderr=True).is_interactive


def can_show(characters: str) -> bool:
    """Tell whether stdout takes some characters as they are."""
    return encodable(characters, sys.stdout) == characters


class ConsoleReporter:
    """A `Reporter` on stderr: notes as lines; progress as a bar on a terminal, else as a line now and then.

    Attributes:
        quiet: say nothing but warnings.
        bars: may be shown; not where others write on the same terminal meanwhile.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self.bars = True
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
        if self.quiet or not self.bars or not _is_redrawn():
            return PlainProgress(self, title, total, unit)
        return BarProgress(self, title, total, unit)

    def _line(self, text: str) -> None:
        text = harmless(text)  # a message is one line, whatever the names of files hold
        if self._live is None:
            _say(text)
        else:
            # Not wrapped here: the terminal does it, and what is copied from there keeps its lines.
            with unheard():
                shown = encodable(text, sys.stderr)
                self._live.console.print(shown, markup=False, highlight=False, soft_wrap=True)


class Rate:
    """How much is done a second, since this was made; what an earlier part of a resumed run did is left out."""

    def __init__(self) -> None:
        self._first: float | None = None
        self._started = time.monotonic()

    def of(self, done: float) -> float:
        """Return the rate, of what was done so far."""
        if self._first is None:
            self._first = done
        return (done - self._first) / max(time.monotonic() - self._started, 1e-9)


class PlainProgress:
    """A line every half minute: ``training 1,200/8,000 steps, ..., eta 6m``."""

    def __init__(self, reporter: ConsoleReporter, title: str, total: float | None, unit: str) -> None:
        self._reporter = reporter
        self._title, self._total, self._unit = title, total, unit
        self._rate = Rate()
        self._told = time.monotonic()

    def __enter__(self) -> "PlainProgress":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def update(self, done: float, status: str = "") -> None:
        """Print a line if it is time for one."""
        now = time.monotonic()
        rate = self._rate.of(done)
        if now - self._told < _LINE_S:
            return
        self._told = now
        of = "" if self._total is None else f"/{self._total:,.0f}"
        parts = [f"{self._title} {done:,.0f}{of} {self._unit}"]
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
        from rich.table import Column

        console = Console(stderr=True)
        left = TimeRemainingColumn(compact=True) if total is not None else TimeElapsedColumn()
        # In a narrow terminal the words on the state are cut short, and not the figures before them. No ellipsis
        # where it would be written out as an escape, too wide for the line.
        cut: Literal["ellipsis", "crop"] = "ellipsis" if console.encoding.startswith("utf") else "crop"
        whole, rest = Column(no_wrap=True), Column(no_wrap=True, overflow=cut, ratio=1)
        self._reporter = reporter
        self._unit = unit
        self._total = total
        self._rate = Rate()
        self._bar = Progress(
            TextColumn("{task.description}", markup=False, table_column=whole),
            BarColumn(bar_width=20 if console.width >= _WIDE else 8),
            TextColumn("{task.fields[count]}", markup=False, table_column=whole),
            left,
            TextColumn("{task.fields[status]}", markup=False, table_column=rest),
            console=console,
            transient=True,
            expand=True,
        )
        self._task = self._bar.add_task(encodable(harmless(title), sys.stderr), total=total, count="", status="")

    def __enter__(self) -> "BarProgress":
        self._reporter._live = self._bar
        with unheard():
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with unheard():
            self._bar.stop()
        self._reporter._live = None

    def update(self, done: float, status: str = "") -> None:
        """Move the bar; where no end is known, tell the rate."""
        count = f"{done:,.0f} {self._unit}" if self._total is None else f"{done:,.0f}/{self._total:,.0f} {self._unit}"
        rate = self._rate.of(done)
        if self._total is None and rate:
            status = ", ".join(filter(None, (f"{rate:,.0f} {self._unit}/s", status)))
        self._bar.update(self._task, completed=done, count=count, status=status)
