"""The command line `elmo`: its commands, its errors and its exit codes."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from elmo_cli import settings
from elmo_cli.commands import console
from elmo_cli.commands.command import ElmoCommand, ElmoSubgroup
from elmo_cli.commands.convert import convert
from elmo_cli.commands.doctor import doctor
from elmo_cli.commands.embed import embed
from elmo_cli.commands.file_settings import remarks_on_file, use_settings_file
from elmo_cli.commands.finetune import finetune
from elmo_cli.commands.index import index
from elmo_cli.commands.info import info
from elmo_cli.commands.interrupts import interrupts
from elmo_cli.commands.mix import mix
from elmo_cli.commands.neighbors import neighbors
from elmo_cli.commands.occurrence_options import ManyCorpora
from elmo_cli.commands.perplexity import perplexity
from elmo_cli.commands.runs import runs
from elmo_cli.commands.senses import senses
from elmo_cli.commands.shown_settings import SHOW
from elmo_cli.commands.streams import open_closed_streams
from elmo_cli.commands.surprisal import surprisal
from elmo_cli.commands.train import train
from elmo_cli.commands.usage import UsageError, usage_problem
from elmo_cli.errors import DataError, ElmoError, OutputError, Place


class ElmoGroup(ElmoSubgroup):
    """The commands, with every error a user can cause turned into a message and an exit code."""

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401 (Typer's own types)
        """Run a command and hand on all of its answer.

        Overridden here, and not wrapped around the whole program, because Typer itself answers a closed pipe with
        exit code 1, and because tests that run commands in this process come this way too.
        """
        with _problems_told():
            return super().invoke(ctx)

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401
        """Read the options before the command; its help is an answer too, which may find the disk full."""
        with _problems_told():
            return super().make_context(info_name, args, parent, **extra)


@contextmanager
def _problems_told() -> Iterator[None]:
    """Turn problems into messages and exit codes, the problem of an answer that cannot be written included."""
    try:
        with interrupts.unmistaken():
            yield
            console.end_of_answer()
    except ElmoError as problem:
        if isinstance(problem, OutputError):
            _silence_stdout()
        console.error(problem)
        raise typer.Exit(problem.exit_code) from problem
    except UsageError as problem:
        told = usage_problem(problem)
        if told is None:
            raise
        console.error(told)
        raise typer.Exit(told.exit_code) from problem
    except BrokenPipeError as problem:
        _silence_stdout()
        raise typer.Exit(0) from problem
    except OSError as problem:
        _silence_stdout()
        where = Place(str(problem.filename)) if problem.filename else None
        console.error(DataError(problem.strerror or str(problem), where=where))
        raise typer.Exit(1) from problem
    except (MemoryError, RuntimeError) as problem:
        if not _is_lack_of_memory(problem):
            raise
        console.error(ElmoError("there is not enough memory", fix="close other programs, or ask for less at once"))
        raise typer.Exit(1) from problem
    except KeyboardInterrupt as problem:
        interrupts.forget()
        console.interrupted()
        raise typer.Exit(130) from problem


def _is_lack_of_memory(problem: Exception) -> bool:
    """Tell whether memory was refused; torch says so in words, of a processor's and of a GPU's."""
    return isinstance(problem, MemoryError) or bool(re.search("can't allocate memory|out of memory", str(problem)))


def _silence_stdout() -> None:
    """Point stdout at nothing, so that the interpreter's last flush cannot fail as this one did."""
    with suppress(OSError, ValueError):  # a stdout without a descriptor, as tests have it, needs no silencing
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


app = typer.Typer(
    cls=ElmoGroup,
    help="Deep contextual word vectors (ELMo) from a language model you own.\n\n"
    "Train a bidirectional language model on plain text, fit it to a domain, and turn text into vectors, one for each "
    "token, that depend on its sentence. Answers go to standard output, notes and progress to standard error.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    rich_markup_mode=None,  # half the start-up time, and help that a pipe and a screen reader can take
    pretty_exceptions_enable=False,
)
app.command(cls=ElmoCommand)(train)
app.command(cls=ElmoCommand)(finetune)
app.command(cls=ElmoCommand)(embed)
app.add_typer(mix, name="mix")
app.command(cls=ElmoCommand)(perplexity)
app.command(cls=ElmoCommand)(surprisal)
app.command(cls=ManyCorpora)(neighbors)
app.command(cls=ManyCorpora)(senses)
app.command(cls=ElmoCommand)(index)
app.command(cls=ElmoCommand)(convert)
app.command(cls=ElmoCommand)(info)
app.command(cls=ElmoCommand)(runs)
app.command(cls=ElmoCommand)(doctor)


def _print_version(value: bool) -> None:
    if value:
        from importlib.metadata import version

        with _problems_told():
            console.answer(f"elmo {version('elmo-cli')}")
        raise typer.Exit


def _read_settings(ctx: typer.Context, value: Path | None) -> Path | None:
    """Take the settings of a file before any other option is read."""
    if value is not None and not ctx.resilient_parsing:
        with _problems_told():
            use_settings_file(ctx, value)
    return value


@app.callback()
def _global_options(
    ctx: typer.Context,
    quiet: Annotated[
        bool, typer.Option("-q", "--quiet", envvar="ELMO_QUIET", help="Say nothing but warnings and errors.")
    ] = False,
    _config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            metavar="FILE",
            envvar="ELMO_CONFIG",
            is_eager=True,
            callback=_read_settings,
            help="Take options from a TOML file: at its top for all commands, in a table such as [embed] for one.",
        ),
    ] = None,
    show_settings: Annotated[
        bool, typer.Option("--show-settings", help="Print the command's settings and their origins, and do no more.")
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    ctx.obj = console.ConsoleReporter(quiet=quiet)
    ctx.meta[SHOW] = show_settings
    for remark in remarks_on_file(ctx):
        ctx.obj.warn(remark)


def main() -> None:
    """Run the command line."""
    interrupts.install()
    open_closed_streams()
    settings.calm_threads()
    try:
        app()
    except KeyboardInterrupt:  # between commands, as it were: while they are put together
        interrupts.forget()
        console.interrupted()
        _leave(130)
    except SystemExit as end:
        interrupts.forget()
        _leave(end.code)
        raise


def _leave(code: str | int | None) -> None:
    """End the process at once where all is written: to take torch and spaCy apart takes Python most of a second."""
    if isinstance(code, str):
        return  # Python prints it on its own way out
    with console.unheard():
        sys.stderr.flush()
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        return  # to be told by Python as ever
    os._exit(code or 0)
