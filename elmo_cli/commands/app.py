"""The command line `elmo`: its commands, its errors and its exit codes."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from elmo_cli import settings
from elmo_cli.commands import console
from elmo_cli.commands.convert import convert
from elmo_cli.commands.embed import embed
from elmo_cli.commands.finetune import finetune
from elmo_cli.commands.info import info
from elmo_cli.commands.perplexity import perplexity
from elmo_cli.commands.runs import runs
from elmo_cli.commands.surprisal import surprisal
from elmo_cli.commands.train import train
from elmo_cli.errors import DataError, ElmoError, Place


class ElmoGroup(TyperGroup):
    """The commands, with every error a user can cause turned into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (Typer's own types)
        """Run a command and hand on all of its answer.

        Overridden here, and not wrapped around the whole program, because Typer itself answers a closed pipe with
        exit code 1, and because tests that run commands in this process come this way too.
        """
        with _problems_told():
            return super().invoke(ctx)


@contextmanager
def _problems_told() -> Iterator[None]:
    """Turn problems into messages and exit codes, the problem of an answer that cannot be written included."""
    try:
        yield
        sys.stdout.flush()  # a closed pipe or a full disk shows now, not when the interpreter ends
    except ElmoError as problem:
        console.error(problem)
        raise typer.Exit(problem.exit_code) from problem
    except BrokenPipeError as problem:
        _silence_stdout()
        raise typer.Exit(0) from problem
    except OSError as problem:
        _silence_stdout()
        where = Place(str(problem.filename)) if problem.filename else None
        console.error(DataError(problem.strerror or str(problem), where=where))
        raise typer.Exit(1) from problem
    except KeyboardInterrupt as problem:
        console.interrupted()
        raise typer.Exit(130) from problem


def _silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail as this one did."""
    with suppress(OSError, ValueError):  # a stdout without a descriptor, as tests have it, needs no silencing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=ElmoGroup,
    help="Deep contextual word vectors (ELMo) from a language model you own.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,  # half the start-up time, and help that a pipe and a screen reader can take
    pretty_exceptions_enable=False,
)
app.command()(train)
app.command()(finetune)
app.command()(embed)
app.command()(perplexity)
app.command()(surprisal)
app.command()(convert)
app.command()(info)
app.command()(runs)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        with _problems_told():
            console.answer(f"elmo {version('elmo-cli')}")
        raise typer.Exit


@app.callback()
def _global_options(
    ctx: typer.Context,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", envvar="ELMO_QUIET", help="Say nothing but warnings and errors.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    ctx.obj = console.ConsoleReporter(quiet=quiet)


def _stop(number: int, frame: FrameType | None) -> None:
    """Leave by an exception, so that half-written files are removed on the way."""
    sys.exit(128 + number)


def main() -> None:
    """Run the command line."""
    signal.signal(signal.SIGTERM, _stop)
    settings.calm_threads()
    try:
        app()
    except SystemExit as end:
        _leave(end.code)
        raise


def _leave(code: str | int | None) -> None:
    """End the process at once where all is written: to take torch and spaCy apart takes Python most of a second."""
    if isinstance(code, str):
        return  # Python prints it on its own way out
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError, AttributeError):
        return  # to be told by Python as ever
    os._exit(code or 0)
