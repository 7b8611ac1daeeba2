"""Where a command's text comes from and where its answer goes."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO, cast

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import is_named
from elmo_cli.reporting import Reporter
from elmo_cli.text.compression import PACKED_SUFFIXES
from elmo_cli.text.reader import SUFFIXES
from elmo_cli.text.sources import STDIN


def note_terminal(sources: Sequence[str], reporter: Reporter) -> None:
    """Say how to end the text, where it is typed."""
    if STDIN in sources and sys.stdin.isatty():
        reporter.note("reading text from the terminal; end it with Ctrl-D")
        _leave_out_bars(reporter)  # which would wipe away what is typed


def show_answer_alone(output: Path | None, reporter: Reporter) -> None:
    """Show no bar while lines of an answer go to standard output, if a terminal shows them as they come.

    The bar would stand among them, or in the window of a pager: of a pipe nobody knows where its reader writes.
    """
    if is_stdout(output) and (sys.stdout.isatty() or stat.S_ISFIFO(mode_of_stdout())):
        _leave_out_bars(reporter)


def _leave_out_bars(reporter: Reporter) -> None:
    if isinstance(reporter, console.ConsoleReporter):
        reporter.bars = False


def is_stdout(output: Path | None) -> bool:
    """Tell whether a target is standard output, by one of its names or by none."""
    return output is None or str(output) in (STDIN, "/dev/stdout")


def mode_of_stdout() -> int:
    """Return what `stat` tells kinds of files by; 0, which is none, where standard output is closed or in memory."""
    try:
        return os.fstat(sys.stdout.fileno()).st_mode
    except (OSError, ValueError):
        return 0


def note_form(sources: Sequence[str], mode: str, ctx: typer.Context, reporter: Reporter) -> None:
    """Say that a file is read as lines of text although its name tells of another form, and nobody has said how."""
    if is_named(ctx, "input_mode"):
        return
    for source in sources:
        path = PurePath(source)
        suffix = (path.with_suffix("") if path.suffix in PACKED_SUFFIXES else path).suffix
        form = next((form for form, suffixes in SUFFIXES.items() if suffix in (*suffixes, f".{form}")), mode)
        if form != mode:
            reporter.warn(f"{source} is read as {mode} of text; if it is what its name says, add --input {form}")
            return


def open_closed_streams() -> None:
    """Put something in the place of standard streams that the shell has closed (``>&-``).

    Then no file opened later takes their numbers, and what reads or writes them fails as it would anyway, with an
    error: their replacements are open the other way round. Messages alone go nowhere.
    """
    if sys.stdin is None:
        sys.stdin = open(os.open(os.devnull, os.O_WRONLY), encoding="utf-8")
    if sys.stdout is None:
        sys.stdout = open(os.open(os.devnull, os.O_RDONLY), "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = open(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8")


@contextmanager
def output_stream(output: Path | None) -> Iterator[BinaryIO]:
    """Open the target: a file that appears whole or not at all, or standard output for None and ``-``."""
    from elmo_cli.storage.files import whole_file

    if output is not None and str(output) != "-":
        with whole_file(output) as file:
            yield file
        return
    with console.answer_errors():
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.buffer.flush()
