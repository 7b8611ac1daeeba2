"""Settings that a user keeps in a TOML file, each with the line on which it stands."""

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_cli.errors import ConfigError, Place


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """What a file of settings says.

    Attributes:
        source: the file, as it was named.
        tables: its keys, values and tables.
        lines: of each key and table by its path, such as ``("embed", "layers")``, counted from 1.
        remarks: what of the file is passed over, and why.
    """

    source: str
    tables: Mapping[str, Any]
    lines: Mapping[tuple[str, ...], int]
    remarks: tuple[str, ...] = ()

    def place(self, path: Sequence[str]) -> Place:
        """Return where a key or table stands."""
        return Place(self.source, self.lines.get(tuple(path)))


def read_settings_file(path: Path) -> SettingsFile:
    """Read a TOML file.

    Raises:
        ConfigError: it cannot be read, or is no TOML; with line and column.
    """
    try:
        # Names of files need not be UTF-8; a run's settings hold their bytes.
        text = path.read_bytes().decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    except OSError as error:
        what = "no such file of settings" if isinstance(error, FileNotFoundError) else error.strerror or str(error)
        raise ConfigError(what, where=Place(str(path)), fix="check --config or the variable ELMO_CONFIG") from error
    try:
        return SettingsFile(str(path), tomllib.loads(text), dict(_lines(text)))
    except tomllib.TOMLDecodeError as error:
        raise _no_toml(path, text, str(error)) from error
    except (ValueError, RecursionError) as error:  # a number of more than 4,300 digits; lists within lists within lists
        raise ConfigError(
            "holds what no setting is", where=Place(str(path)), fix="shorten its numbers and lists"
        ) from error


def _no_toml(path: Path, text: str, problem: str) -> ConfigError:
    """Return the error of a file that is no TOML; the parser tells the place at the end of its message alone."""
    found = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", problem)
    what = problem[: found.start()] if found else problem
    if found and found[1]:
        line, column = int(found[1]), int(found[2])
    else:
        lines = text.rstrip("\n").split("\n")
        line, column = len(lines), len(lines[-1]) + 1
    return ConfigError(
        f"{what[:1].lower()}{what[1:]}",
        where=Place(f"{path}:{line}:{column}"),
        fix='write TOML: key = value, text in quotes ("top")',
    )


def _lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield each key and table of a TOML text with its line.

    The parser keeps no places. But no beginning of a statement is TOML unless the statement is whole, so lines are
    gathered until they parse alone.
    """
    header: tuple[str, ...] = ()
    statement = ""
    first = 1
    for number, line in enumerate(text.split("\n"), start=1):
        statement += line + "\n"
        try:
            parsed = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        paths = list(_paths(parsed))
        if statement.lstrip().startswith("["):
            header = max(paths, key=len)
            yield header, first
        else:
            yield from ((header + path, first) for path in paths)
        statement, first = "", number + 1


def _paths(tables: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of all keys, those of tables before what is in them."""
    for key, value in tables.items():
        yield (key,)
        inner = value[0] if isinstance(value, list) and value and isinstance(value[0], dict) else value
        if isinstance(inner, dict):
            yield from ((key, *path) for path in _paths(inner))
