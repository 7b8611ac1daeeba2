"""What Typer refuses of a command line, in the form that all errors have."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer

from elmo_cli.errors import ConfigError

# Typer does not offer its class for a wrong command line by name; a wrong value's is made from it.
UsageError: Final[Any] = typer.BadParameter.__mro__[1]
_SUGGESTION: Final = re.compile(r"(.*?)[.?]? (?:\(Possible options: (.*)\)|Did you mean (.*)\?)", re.DOTALL)


@contextmanager
def context_told(ctx: Any, words: Sequence[str]) -> Iterator[None]:  # noqa: ANN401
    """Say of which command and words a `UsageError` is: Typer leaves the command out where an option lacks its value.

    Args:
        ctx: of the command.
        words: of the command line, behind the command's name.
    """
    words = tuple(words)  # Typer takes them out of its list one after the other
    try:
        yield
    except UsageError as problem:
        problem.ctx = problem.ctx or ctx
        problem.words = getattr(problem, "words", words)
        raise


def usage_problem(problem: Any) -> ConfigError | None:  # noqa: ANN401
    """Return a `UsageError` as an error of our own; None for a command without arguments, whose message is its help."""
    if type(problem).__name__ == "NoArgsIsHelpError":
        return None
    message, near = problem.format_message(), ""
    if found := _SUGGESTION.fullmatch(message):
        message, near = found[1], (found[2] or found[3]).replace("'", "")
    fix = f"see {problem.ctx.command_path} {problem.ctx.help_option_names[0]}"
    if remark := _misplaced(problem):
        fix = f"{remark}; {fix}"
    elif near:
        fix = f"perhaps {near}; {fix}"
    return ConfigError(message[:1].lower() + message[1:].rstrip("."), fix=fix)


def _misplaced(problem: Any) -> str | None:  # noqa: ANN401
    """Return what to do about an option that stands in the wrong place, or that is the name of a file."""
    option = getattr(problem, "option_name", None)
    if option is None:
        return None
    root = problem.ctx.find_root()
    general = next((each for each in root.command.params if option in each.opts), None)
    if problem.ctx is not root and general is not None:
        command = problem.ctx.command_path.removeprefix(root.command_path)
        value = f" {general.metavar}" if general.metavar else ""
        return f"write it before the command: {root.command_path} {option}{value}{command}"
    for word in getattr(problem, "words", ()):
        if word.startswith(option) and _is_there(word):
            return f"if it is the file {word}, write ./{word}"
    return None


def _is_there(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # longer than a name may be, or a NUL in it
        return False
