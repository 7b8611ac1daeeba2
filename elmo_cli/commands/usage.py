"""What Typer refuses of a command line, in the form that all errors have."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import typer

from elmo_cli.errors import ConfigError

# Typer does not offer its class for a wrong command line by name; a wrong value's is made from it.
UsageError: Final[Any] = typer.BadParameter.__mro__[1]
_SUGGESTION: Final = re.compile(r"(.*?)[.?]? (?:\(Possible options: (.*)\)|Did you mean (.*)\?)", re.DOTALL)


@contextmanager
def context_told(ctx: Any) -> Iterator[None]:  # noqa: ANN401
    """Say of which command a `UsageError` is: Typer's parser leaves it out where an option lacks its value."""
    try:
        yield
    except UsageError as problem:
        problem.ctx = problem.ctx or ctx
        raise


def usage_problem(problem: Any) -> ConfigError | None:  # noqa: ANN401
    """Return a `UsageError` as an error of our own; None for a command without arguments, whose message is its help."""
    if type(problem).__name__ == "NoArgsIsHelpError":
        return None
    message, near = problem.format_message(), ""
    if found := _SUGGESTION.fullmatch(message):
        message, near = found[1], (found[2] or found[3]).replace("'", "")
    fix = f"see {problem.ctx.command_path} {problem.ctx.help_option_names[0]}"
    if near:
        fix = f"perhaps {near}; {fix}"
    return ConfigError(message[:1].lower() + message[1:].rstrip("."), fix=fix)
