"""Which colour each point of a plot has: one a group, or a scale where the values are numbers."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

# Okabe and Ito's colours, told apart by colour-blind eyes too; yellow is left out, as it vanishes on white.
PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#6a3d9a", "#7f3b08")
OTHER: Final = "#999999"
_SCALE: Final = ((68, 1, 84), (59, 82, 139), (33, 145, 140), (94, 201, 98), (190, 220, 30))  # dark to light
_FEW: Final = 8  # different numbers up to which each has a colour of its own


@dataclass(frozen=True, slots=True)
class Coloring:
    """Colours of points.

    Attributes:
        colors: of each point, such as ``#0072b2``.
        legend: what each colour stands for, in order.
    """

    colors: tuple[str, ...]
    legend: tuple[tuple[str, str], ...]


def color(values: Sequence[object]) -> Coloring:
    """Return a colour for each value; the rarest of more than eight different ones are grey together."""
    numbers = [_number(value) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) == len(values) and len(set(known)) > _FEW:
        return _scaled(known)
    counts = Counter(map(_name, values))
    names = [name for name, _ in counts.most_common(len(PALETTE))]
    if len(known) == len(values):
        names.sort(key=float)
    colors = dict(zip(names, PALETTE, strict=False))
    legend = [(name, colors[name]) for name in names]
    if len(counts) > len(names):
        legend.append(("others", OTHER))
    return Coloring(tuple(colors.get(_name(value), OTHER) for value in values), tuple(legend))


def _scaled(numbers: Sequence[float]) -> Coloring:
    # Halves, as the difference of two numbers may be too large for one.
    low, high = min(numbers) / 2, max(numbers) / 2

    def shade(number: float) -> str:
        return _shade((number / 2 - low) / (high - low))

    marks = (2 * low, low + high, 2 * high)
    return Coloring(tuple(map(shade, numbers)), tuple((f"{mark:g}", shade(mark)) for mark in marks))


def _shade(share: float) -> str:
    at = share * (len(_SCALE) - 1)
    first = min(int(at), len(_SCALE) - 2)
    mixed = (a + (b - a) * (at - first) for a, b in zip(_SCALE[first], _SCALE[first + 1], strict=True))
    return "#" + "".join(f"{round(value):02x}" for value in mixed)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None


def _name(value: object) -> str:
    return "(none)" if value is None or value == "" else str(value)
