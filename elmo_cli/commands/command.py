"""How every command looks and is run: its usage and help in plain words, its settings, the places of its errors."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from textwrap import shorten
from typing import Any, Final

from typer.core import TyperCommand, TyperGroup

from elmo_cli.commands import console
from elmo_cli.commands.file_settings import errors_placed
from elmo_cli.commands.shown_settings import SHOW, settings_shown
from elmo_cli.commands.usage import context_told
from elmo_cli.errors import ConfigError

# Contexts, formatters and parameters are of Typer's own types, which it does not offer by name: Any, below.
_TYPE: Final = re.compile(r"<(.*?)>|\b(?:INTEGER|FLOAT)(?: RANGE)?\b")  # as Typer 0.29 and 0.26 show it
_SENTENCE: Final = 1000  # characters that none is longer than
_METAVARS: Final = {"int": "N", "integer": "N", "float": "NUMBER", "str": "TEXT", "text": "TEXT"}


class ElmoCommand(TyperCommand):
    """A command whose options may come from a file of settings."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the usage line behind the command's name, as a person writes it."""
        return usage_pieces(self, ctx)

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the sections of arguments and options."""
        _write_sections(self, ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, all of it: lists of commands wrap it."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the command line; a wrong value from a file is told with its line."""
        if ctx.meta.get(SHOW):
            for parameter in self.params:
                parameter.required = False  # nothing is going to be done with it
        words = tuple(args)
        with errors_placed(ctx), context_told(ctx, words):
            rest: list[str] = super().parse_args(ctx, args)
            _refuse_empty_names(self, ctx, words)
            return rest

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401
        """Return the options that begin with what has been typed."""
        return _in_one_line(super().shell_complete(ctx, incomplete))

    def invoke(self, ctx: Any) -> Any:  # noqa: ANN401
        """Run the command, or only show its settings."""
        if ctx.meta.get(SHOW):
            for line in settings_shown(ctx):
                console.answer(line)
            return None
        with errors_placed(ctx):
            _refuse_nul(self, ctx)
            return super().invoke(ctx)


class ElmoSubgroup(TyperGroup):
    """A group of commands, such as `elmo mix`."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ANN401
        """Return the usage line behind the group's name."""
        return [*usage_pieces(self, ctx), "COMMAND ..."]

    def format_options(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
        """Write the sections of options and commands."""
        _write_sections(self, ctx, formatter)
        self.format_commands(ctx, formatter)

    def get_short_help_str(self, limit: int = 45) -> str:
        """Return the first sentence of the help, as of every command."""
        return super().get_short_help_str(max(limit, _SENTENCE))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401
        """Read the options before the name of a command."""
        with context_told(ctx, args):
            return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:  # noqa: ANN401
        """Return the commands and options that begin with what has been typed."""
        return _in_one_line(super().shell_complete(ctx, incomplete))


def usage_pieces(command: Any, ctx: Any) -> list[str]:  # noqa: ANN401
    """Return ``[OPTIONS]``, the arguments (``FILE``, ``[FILE]``, ``FILE...``, ``[FILE...]``), and required options."""
    pieces = ["[OPTIONS]"]
    for argument in command.get_params(ctx):
        if argument.param_type_name == "argument" and not argument.hidden:
            name = _name_of(argument) + ("..." if argument.nargs != 1 else "")
            pieces.append(name if argument.required else f"[{name}]")
    for option in command.get_params(ctx):
        if option.param_type_name == "option" and option.required:
            pieces.append(f"{min(option.opts, key=len)} {option.metavar or 'VALUE'}")
    return pieces


def help_records(command: Any, ctx: Any, kind: str) -> Iterable[tuple[str, str]]:  # noqa: ANN401
    """Yield name and help of each ``argument`` or ``option``, without the names of Python's types."""
    for parameter in command.get_params(ctx):
        if parameter.param_type_name == kind and (record := parameter.get_help_record(ctx)) is not None:
            name, text = record
            yield _name_of(parameter) if kind == "argument" else _TYPE.sub(_metavar, name), _plain(text)


def _refuse_nul(command: Any, ctx: Any) -> None:  # noqa: ANN401
    """Refuse a NUL, which no name of a file may hold; a shell cannot pass one on, but a file of settings can."""
    for parameter in command.params:
        if any("\0" in str(each) for each in _values(ctx.params.get(parameter.name))):
            raise ConfigError(f"{_called(parameter)} holds a NUL character", fix="leave it out")


def _refuse_empty_names(command: Any, ctx: Any, words: Sequence[str]) -> None:  # noqa: ANN401
    """Refuse an empty name, as of a shell's variable that is not set: `Path` would take it for the working folder.

    Args:
        command: whose options and arguments have been read.
        ctx: that holds their values.
        words: that they were read from.
    """
    doubtful = [each for each in command.params if _may_be_empty_name(each, _values(ctx.params.get(each.name)))]
    if not doubtful:
        return
    typed, _, _ = command.make_parser(ctx).parse_args(list(words))
    for parameter in doubtful:
        if "" in _values(typed.get(parameter.name, ctx.lookup_default(parameter.name))):
            raise ConfigError(
                f"{_called(parameter)}: the name is empty", fix="check the quotes or the shell variable it comes from"
            )


def _may_be_empty_name(parameter: Any, values: Sequence[object]) -> bool:  # noqa: ANN401
    named = parameter.param_type_name == "option" and re.search("FILE|DIR", parameter.metavar or "")
    return Path() in values or bool(named and "" in values)


def _values(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else [value]


def _called(parameter: Any) -> str:  # noqa: ANN401
    return max(parameter.opts, key=len) if parameter.param_type_name == "option" else _name_of(parameter)


def _in_one_line(found: list[Any]) -> list[Any]:
    """Return completions whose help is short: Typer folds it at 80 columns, and fish takes each line for a word."""
    for item in found:
        sentence = re.sub(r"(?<=\w)'(?=\w)", "\u2019", (item.help or "").partition(". ")[0])  # zsh drops apostrophes
        item.help = shorten(sentence.rstrip("."), 60, placeholder=" ...")
    return found


def _write_sections(command: Any, ctx: Any, formatter: Any) -> None:  # noqa: ANN401
    for heading, kind in (("Arguments", "argument"), ("Options", "option")):
        if rows := list(help_records(command, ctx, kind)):
            with formatter.section(heading):
                formatter.write_dl(rows)


def _name_of(argument: Any) -> str:  # noqa: ANN401
    return str(argument.metavar or argument.name.upper()).removesuffix("...")


def _metavar(found: re.Match[str]) -> str:
    """Return ``N`` for ``<int range>``."""
    word = (found[1] or found[0]).lower().removeprefix("list[").rstrip("]").split()[0]
    return _METAVARS.get(word, word.upper())


def _plain(text: str) -> str:
    """Return help whose remarks in brackets are one, with one default, and whose ranges are words."""
    text = re.sub(r"\]\s*\[(?=env var|default|(?:[\w.-]+<=)?x[<>]|required)", "; ", text)
    text = re.sub(r"(\[default: [^\]]*?); default: [^;\]]*", r"\1", text)
    return re.sub(r"(?:([\w.-]+)<=)?x(?:(<=|>=)([\w.-]+))(?=[;\]])", _range, text)


def _range(found: re.Match[str]) -> str:
    """Return ``at least 1`` for ``x>=1``, and ``0 to 0.95`` for ``0.0<=x<=0.95``."""
    low, sign, bound = found.groups()
    number = bound.removesuffix(".0")
    if low is not None:
        return f"{low.removesuffix('.0')} to {number}"
    return f"at {'least' if sign == '>=' else 'most'} {number}"
