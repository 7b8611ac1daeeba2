"""Occurrences as points of a plane, in a file: SVG and HTML written here, PNG by matplotlib."""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.errors import ConfigError
from elmo_cli.neighbors.coloring import Coloring
from elmo_cli.neighbors.plane import spread_points
from elmo_cli.neighbors.widths import one_line
from elmo_cli.storage.extras import pyplot_figure
from elmo_cli.storage.files import whole_file, write_text_whole

SUFFIXES: Final = (".svg", ".html", ".png")
_SIZE, _MARGIN, _LEGEND = 640, 30, 200  # of the square of points, around it, and beside it, in pixels
_RADIUS: Final = 4.5
_NOT_IN_XML: Final = {0xFFFE: "\ufffd", 0xFFFF: "\ufffd"}  # beside what `one_line` replaces
_LONGEST_NAME: Final = 28  # characters of a name in the legend
_STYLE: Final = """
body { font: 15px/1.4 system-ui, sans-serif; margin: 1.5em; color: #222; background: #fff }
svg { max-width: 100%; height: auto } circle:hover { stroke: #000; stroke-width: 2 }
#line { min-height: 3em; max-width: 60em } #line b { background: #ffe9a8 } #line small { color: #666 }
"""
_SCRIPT: Final = """
const lines = document.querySelectorAll("template"), shown = document.getElementById("line");
document.querySelectorAll("circle[data-n]").forEach(point => point.addEventListener("mouseover", () => {
  shown.replaceChildren(lines[point.dataset.n].content.cloneNode(true));
}));
"""


@dataclass(frozen=True, slots=True)
class PlotPoint:
    """What a point of a plot stands for: an occurrence, its sentence in three parts, and where it stands."""

    left: str
    word: str
    right: str
    place: str

    @property
    def line(self) -> str:
        """The sentence and its place, harmless in one line."""
        return one_line(f"{self.left}[{self.word}]{self.right}") + f"  {one_line(self.place)}"


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot.

    Attributes:
        title: above it.
        points: where each occurrence is [n, 2].
        about: what each point stands for.
        coloring: of the points.
    """

    title: str
    points: NDArray[np.float64]
    about: Sequence[PlotPoint]
    coloring: Coloring


def check_suffix(path: Path) -> None:
    """Refuse a file whose name does not say a form that can be written.

    Raises:
        ConfigError: with those there are.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"a plot cannot be written as {path.name!r}", fix="name a file .svg, .html or .png")
    if path.suffix.lower() == ".png":
        pyplot_figure()  # asked for now, before the work


def write_plot(path: Path, plot: Plot) -> None:
    """Write a plot in the form that the file's name asks for.

    Raises:
        ConfigError: it asks for none there is, or matplotlib is missing for PNG.
        OutputError: the file cannot be written.
    """
    check_suffix(path)
    suffix = path.suffix.lower()
    if suffix == ".png":
        _write_png(path, plot)
    elif suffix == ".svg":
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {_box()} font-family="sans-serif" font-size="13">'
        write_text_whole(path, "\n".join([head, *_drawing(plot, titles=True), "</svg>\n"]))
    else:
        write_text_whole(path, _page(plot))


def _box() -> str:
    wide, high = _SIZE + 2 * _MARGIN + _LEGEND, _SIZE + 2 * _MARGIN
    return f'viewBox="0 0 {wide} {high}" width="{wide}" height="{high}"'


def _drawing(plot: Plot, *, titles: bool) -> list[str]:
    """Return the elements of the drawing; each point with its line as a title, or with its number."""
    lines = [
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="{_MARGIN}" y="{_MARGIN - 10}" font-size="15">{_text(plot.title)}</text>',
    ]
    places = spread_points(plot.points)
    for number, ((x, y), color, about) in enumerate(zip(places, plot.coloring.colors, plot.about, strict=True)):
        at = f'cx="{_MARGIN + x * _SIZE:.1f}" cy="{_MARGIN + (1 - y) * _SIZE:.1f}" r="{_RADIUS}"'
        look = f'fill="{color}" fill-opacity="0.75" stroke="#ffffff" stroke-width="0.5"'
        if titles:
            lines.append(f"<circle {at} {look}><title>{_text(about.line)}</title></circle>")
        else:
            lines.append(f'<circle data-n="{number}" {at} {look}/>')
    left = _SIZE + 2 * _MARGIN
    for number, (name, color) in enumerate(plot.coloring.legend):
        top = _MARGIN + 10 + 22 * number
        shown = _short(name)
        lines.append(f'<circle cx="{left}" cy="{top}" r="6" fill="{color}"/>')
        lines.append(f'<text x="{left + 14}" y="{top + 4}">{_text(shown)}</text>')
    return lines


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _text(text: str) -> str:
    """Return a text as it may stand in XML and HTML."""
    return html.escape(one_line(text).translate(_NOT_IN_XML))


def _page(plot: Plot) -> str:
    """Return a page that needs nothing else: the drawing, and under it the line of the point under the pointer."""
    title = _text(plot.title)
    templates = [
        f"<template>{_text_kept(about.left)}<b>{_text(about.word)}</b>{_text_kept(about.right)}"
        f"<br><small>{_text(about.place)}</small></template>"
        for about in plot.about
    ]
    return "\n".join(
        [
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            f"<style>{_STYLE}</style></head><body>",
            f'<svg {_box()} font-family="sans-serif" font-size="13">',
            *_drawing(plot, titles=False),
            '</svg>\n<p id="line">Point at an occurrence to read its line.</p>',
            *templates,
            f"<script>{_SCRIPT}</script></body></html>\n",
        ]
    )


def _text_kept(text: str) -> str:
    """Return a text as it may stand in HTML beside a word, with the spaces that part them."""
    before = " " if text[:1].isspace() else ""
    behind = " " if text[-1:].isspace() and text.strip() else ""
    return before + _text(text) + behind


def _write_png(path: Path, plot: Plot) -> None:
    figure = pyplot_figure()(figsize=(8.6, 7), dpi=150)
    axes = figure.add_axes((0.03, 0.03, 0.76, 0.91))
    places = spread_points(plot.points)
    axes.scatter(places[:, 0], places[:, 1], c=list(plot.coloring.colors), s=26, alpha=0.75, linewidths=0)
    axes.set_title(one_line(plot.title).replace("$", r"\$"), loc="left")
    axes.set_xticks([])
    axes.set_yticks([])
    for number, (name, color) in enumerate(plot.coloring.legend):
        shown = _short(one_line(name)).replace("$", r"\$")
        figure.text(0.81, 0.92 - 0.035 * number, "●", color=color)
        figure.text(0.835, 0.92 - 0.035 * number, shown)
    with whole_file(path) as file:
        figure.savefig(file, format="png")
