"""The kinds of trouble a user can cause or meet, each with its place, its remedy and its exit code."""

import re
from dataclasses import dataclass
from typing import Final

# What steers a terminal, or turns the direction of the text behind it.
_CONTROLS: Final = re.compile("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def harmless(text: str, *, keep: str = "") -> str:
    r"""Return a text with escapes such as ``\x1b`` in the place of control characters.

    Texts, files and their names may hold what clears a screen, or looks like another message.

    Args:
        text: to be shown to a person.
        keep: control characters that stay.
    """
    return _CONTROLS.sub(lambda found: found[0] if found[0] in keep else ascii(found[0])[1:-1], text)


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the input something stands: a file (or ``<stdin>``) and, where known, a line counted from 1."""

    source: str
    line: int | None = None

    def __str__(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


class ElmoError(Exception):
    """Something a user can understand and mend.

    Args:
        message: what happened, with the actual value.
        where: the file and line, when there is one.
        fix: what to do about it, as an action.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: Place | None = None, fix: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.where = where
        self.fix = fix

    def __str__(self) -> str:
        first = harmless(self.message if self.where is None else f"{self.where}: {self.message}")
        return first if self.fix is None else f"{first}\n  fix: {harmless(self.fix)}"


class DataError(ElmoError):
    """An input that cannot be used: missing, unreadable, not text, of the wrong form."""


class ModelError(ElmoError):
    """A model that cannot be found or read, or that does not fit what is asked of it."""


class OutputError(ElmoError):
    """An answer that cannot be written: no space, no permission."""


class TargetExists(OutputError):
    """What would be written is there already, and nobody has said that it may be replaced: a wrong command line."""

    exit_code = 2


class ConfigError(ElmoError):
    """A setting that makes no sense, on the command line or in a file."""

    exit_code = 2


class TrainingDiverged(ElmoError):
    """The loss is no longer a number; the last good state is kept."""

    exit_code = 3


class Interrupted(ElmoError):
    """Stopped by a signal, after saving.

    Args:
        signal_number: 1 for SIGHUP, 2 for SIGINT, 15 for SIGTERM; the exit code is 128 more, as shells count.
    """

    def __init__(self, message: str, *, signal_number: int, fix: str | None = None) -> None:
        super().__init__(message, fix=fix)
        self.exit_code = 128 + signal_number


def damage(error: Exception) -> str:
    """Return what an error in reading a file says of it, in a line."""
    if isinstance(error, UnicodeDecodeError):  # whose own text holds the whole file
        return "it is not UTF-8"
    return f"{error!r:.200}"
