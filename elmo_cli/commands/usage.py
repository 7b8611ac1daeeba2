"""What Typer refuses of a command line, in the form that all errors have."""

import re
from typing import Any, Final

import typer

from elmo_cli.errors import ConfigError

# Typer does not offer its class for a wrong command line by name; a wrong value's is made from it.
UsageError: Final[Any] = typer.BadParameter.__mro__[1]
_SUGGESTION: Final = re.compile(r"(.*?)[.?]? (?:\(Possible options: (.*)\)|Did you mean (.*)\?)", re.DOTALL)


def usage_problem(problem: Any) -> ConfigError | None:  # noqa: ANN401
    """Return a `UsageError` as an error of our own; None for a command without arguments, whose message is its help."""
    if type(problem).__name__ == "NoArgsIsHelpError":
        return None
    message, near = problem.format_message(), ""
    if found := _SUGGESTION.fullmatch(message):
        message, near = found[1], (found[2] or found[3]).replace("'", "")
    context = problem.ctx
    fix = None if context is None else f"see {context.command_path} {context.help_option_names[0]}"
    if near:
        fix = f"perhaps {near}" if fix is None else f"perhaps {near}; {fix}"
    return ConfigError(message[:1].lower() + message[1:].rstrip("."), fix=fix)
