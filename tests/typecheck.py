"""The check of types that pytest puts on every function of the package (see `addopts` in pyproject.toml)."""

from typing import TypeVar

from beartype import BeartypeConf, beartype

Checked = TypeVar("Checked")

# A whole number passes for a float, as PEP 484 has it and mypy checks it.
_beartype = beartype(conf=BeartypeConf(is_pep484_tower=True))


def checked(thing: Checked) -> Checked:
    """Check the arguments and the result of a function; not of commands, which Typer calls with types of its own."""
    is_command = getattr(thing, "__module__", "").startswith("elmo_cli.commands.")
    return thing if is_command else _beartype(thing)
