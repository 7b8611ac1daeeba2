"""The packages that elmo stands on: which are there, and whether their versions are ones it works with."""

import platform
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from itertools import zip_longest
from typing import Final

_OURS: Final = "elmo-cli"
_OTHER_EXTRAS: Final = ("test", "dev")  # for those who work on elmo
_FIRST_PYTHON: Final = (3, 11)


@dataclass(frozen=True, slots=True)
class Package:
    """A package that elmo needs, or can use.

    Attributes:
        name: as pip knows it.
        bounds: of its version, such as ``>=2.6,<2.14``.
        extra: of elmo-cli that brings it; None for one that is always needed.
        version: the one that is installed; None if there is none.
    """

    name: str
    bounds: str
    extra: str | None
    version: str | None

    @property
    def is_missing(self) -> bool:
        """Whether it must be there and is not."""
        return self.version is None and self.extra is None

    @property
    def is_out_of_bounds(self) -> bool:
        """Whether its version is one that elmo was not made for."""
        return self.version is not None and not is_within(self.version, self.bounds)

    @property
    def install(self) -> str:
        """The command that mends it."""
        wanted = f"{_OURS}[{self.extra}]" if self.extra else self.name + self.bounds
        return f"pip install '{wanted}'"


def programs() -> dict[str, str]:
    """Return the versions of elmo, Python and the system."""
    return {
        "elmo": installed(_OURS) or "unknown",
        "python": f"{platform.python_version()} ({sys.executable})",
        "system": f"{platform.system()} {platform.machine()}",
    }


def python_is_too_old() -> bool:
    """Tell whether this Python is older than elmo allows."""
    return sys.version_info < _FIRST_PYTHON


def packages() -> list[Package]:
    """Return the packages that elmo needs, and those of its extras, each once."""
    found: dict[tuple[str, str | None], Package] = {}
    for line in _requirements():
        match = re.match(r"([\w.-]+)(?:\[[^]]*\])?\s*([^;]*)", line)
        named = re.search(r"extra == ['\"]([\w.-]+)['\"]", line)
        extra = named[1] if named else None
        if match is None or extra in _OTHER_EXTRAS:
            continue
        name, bounds = match[1], match[2].strip(" ()")
        found.setdefault((name, extra), Package(name, bounds, extra, installed(name)))
    return list(found.values())


def installed(name: str) -> str | None:
    """Return the version of a package that is installed, None if it is not."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def is_within(found: str, bounds: str) -> bool:
    """Tell whether a version is within bounds such as ``<2.14,>=2.6``; a bound of another kind holds."""
    checks = {">=": lambda a, b: a >= b, "<=": lambda a, b: a <= b, "<": lambda a, b: a < b, ">": lambda a, b: a > b}
    for bound in filter(None, bounds.split(",")):
        match = re.fullmatch(r"\s*(>=|<=|<|>)\s*([\d.]+)\s*", bound)
        if match is not None:
            have, wanted = zip(*zip_longest(_release(found), _release(match[2]), fillvalue=0), strict=True)
            if not checks[match[1]](have, wanted):
                return False
    return True


def _release(text: str) -> tuple[int, ...]:
    """Return the numbers at the beginning of a version: those of ``2.13.0+cpu`` are (2, 13, 0)."""
    match = re.match(r"\d+(\.\d+)*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def _requirements() -> Iterator[str]:
    try:
        yield from requires(_OURS) or ()
    except PackageNotFoundError:
        return
