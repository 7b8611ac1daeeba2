"""`elmo runs`: the trainings there are, how far they are and how well they go."""

import math
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands import console
from elmo_cli.reporting import Reporter, duration_text

if TYPE_CHECKING:
    from elmo_cli.storage.run_list import RunSummary

_HEADER = ("name", "steps", "tokens", "held-out", "state", "changed", "curve")
_LEFT = (0, 4, 6)  # columns of words
_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "12345678"  # where the encoding has no others
_CURVE_WIDTH = 20
_LEAST_WIDTH = len(_HEADER[-1])
_DAY_S = 86_400


def runs(
    ctx: typer.Context,
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Models, or folders of models.  [default: models]", show_default=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a run, each on a line.")] = False,
) -> None:
    """List trainings.

    One row a run, the latest change last: steps made and tokens read so far, the best held-out perplexity, whether the
    run is running, finished or interrupted, how long ago its metrics changed, and how the held-out perplexity fell
    (each bar is a measurement, its height on a logarithmic scale). Loads no torch.
    """
    from elmo_cli.storage.run_list import find_runs

    reporter: Reporter = ctx.obj
    default = Path("models")
    found = find_runs(folders or ([default] if default.is_dir() else []))
    if as_json:
        for run in found:
            console.answer_json(run.to_json())
    elif found:
        now = time.time()
        rows = [_HEADER[:-1], *(_row(run, now) for run in found)]
        width = console.room_beside(rows)
        if width is None or width >= _LEAST_WIDTH:  # else rows without a curve are easier to read than broken ones
            curves = [_HEADER[-1], *_curves(found, min(width or _CURVE_WIDTH, _CURVE_WIDTH))]
            rows = [(*row, curve) for row, curve in zip(rows, curves, strict=True)]
        console.answer_table(rows, left=_LEFT)
    if not found:
        reporter.note(f"no run in {', '.join(map(str, folders or [default]))}; start one with `elmo train`")


def _row(run: "RunSummary", now: float) -> tuple[str, ...]:
    best = "-" if run.best is None else f"{run.best:,.2f}"
    return run.name, f"{run.steps:,}", f"{run.tokens:,}", best, run.state, _age(now - run.changed)


def _curves(found: "Sequence[RunSummary]", width: int) -> list[str]:
    """Return the curve of each run, in what stdout can show."""
    bars = _BARS if console.can_show(_BARS) else _PLAIN_BARS
    return [sparkline([perplexity for _, perplexity in run.curve], width, bars) for run in found]


def _age(seconds: float) -> str:
    seconds = max(seconds, 0)
    return f"{seconds / _DAY_S:,.0f}d ago" if seconds >= 2 * _DAY_S else f"{duration_text(seconds)} ago"


def sparkline(values: Sequence[float], width: int, bars: str = _BARS) -> str:
    """Return numbers above 0 as bars on a logarithmic scale from the lowest to the highest.

    Of more values than ``width``, every so-manieth is shown, the first and the last among them.
    """
    if len(values) > width:
        values = [values[round(place * (len(values) - 1) / (width - 1))] for place in range(width)]
    if not values:
        return ""
    lowest, highest = math.log(min(values)), math.log(max(values))
    span = highest - lowest or 1.0
    return "".join(bars[round((math.log(value) - lowest) / span * (len(bars) - 1))] for value in values)
