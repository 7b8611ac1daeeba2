"""The weights of mixes as a figure, in the manner of Figure 2 of Peters et al. (2018)."""

import io
from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from elmo_cli.storage.extras import pyplot_figure

Column = tuple[str, Sequence[float]]  # title and weights of a mix, the char CNN's first

_CELL: Final = (84, 44)  # width and height, in pixels
_LEFT: Final = 76
_TOP: Final = 16
_BELOW: Final = 72  # for the titles
_DARK: Final = (31, 78, 121)  # of a weight of 1; 0 is white


def figure_svg(columns: Sequence[Column]) -> str:
    """Return an SVG image: a column a mix, a row a layer with the top layer above, darker where the weight is larger.

    As in the paper, weights below an equal share (1/3 of three layers) are hatched, those above two equal shares are
    speckled.
    """
    rows = max(len(weights) for _, weights in columns)
    width, height = _CELL
    size = (_LEFT + width * len(columns) + 16, _TOP + height * rows + _BELOW)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
        f'viewBox="0 0 {size[0]} {size[1]}" font-family="sans-serif" font-size="12">',
        "<title>Weights of the layers</title>",
        '<defs><pattern id="low" width="6" height="6" patternUnits="userSpaceOnUse">'
        '<path d="M0 3h6" stroke="#8a8a8a" stroke-width="1"/></pattern>'
        '<pattern id="high" width="8" height="8" patternUnits="userSpaceOnUse">'
        '<circle cx="2" cy="2" r="1" fill="#fff"/><circle cx="6" cy="6" r="1" fill="#fff"/></pattern></defs>',
        f'<rect width="{size[0]}" height="{size[1]}" fill="#fff"/>',
    ]
    for layer in range(rows):
        y = _TOP + height * (rows - 1 - layer) + height / 2 + 4
        parts.append(f'<text x="{_LEFT - 10}" y="{y:g}" text-anchor="end">{layer_name(layer)}</text>')
    for number, (title, weights) in enumerate(columns):
        x = _LEFT + width * number
        for layer, weight in enumerate(weights):
            parts += _cell(x, _TOP + height * (rows - 1 - layer), weight, len(weights))
        place = f"translate({x + width / 2:g} {_TOP + height * rows + 16}) rotate(30)"
        parts.append(f'<text transform="{place}">{escape(_shown(title))}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _shown(title: str) -> str:
    """Return a title without what XML may not hold: a file's name may have any character."""
    return "".join(character if character.isprintable() else "\ufffd" for character in title)


def _cell(x: float, y: float, weight: float, layer_count: int) -> list[str]:
    width, height = _CELL
    box = f'<rect x="{x:g}" y="{y:g}" width="{width}" height="{height}"'
    found = [f'{box} fill="{shade(weight)}" stroke="#444"/>']
    kind = pattern(weight, layer_count)
    if kind is not None:
        found.append(f'{box} fill="url(#{kind})"/>')
    ink = "#fff" if weight > 0.55 else "#000"
    # A rim in the cell's own colour, so that the pattern does not run through the number.
    rim = f'stroke="{shade(weight)}" stroke-width="4" paint-order="stroke"'
    place = f'x="{x + width / 2:g}" y="{y + height / 2 + 4:g}" text-anchor="middle"'
    found.append(f'<text {place} fill="{ink}" {rim}>{weight:.2f}</text>')
    return found


def layer_name(layer: int) -> str:
    """Return a layer's name."""
    return "char CNN" if layer == 0 else f"biLSTM {layer}"


def pattern(weight: float, layer_count: int) -> str | None:
    """Return ``low`` for less than an equal share, ``high`` for more than two of them, else None."""
    if layer_count < 2:
        return None
    if weight < 1 / layer_count:
        return "low"
    return "high" if weight > 2 / layer_count else None


def shade(weight: float) -> str:
    """Return the colour of a weight between 0 and 1."""
    share = min(max(weight, 0.0), 1.0)
    return "#" + "".join(f"{round(255 + (dark - 255) * share):02x}" for dark in _DARK)


def figure_png(columns: Sequence[Column]) -> bytes:
    """Return the same figure as a PNG image.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    rows = max(len(weights) for _, weights in columns)
    figure = pyplot_figure()(figsize=(1.1 + 0.9 * len(columns), 0.9 + 0.5 * rows), dpi=200, layout="constrained")
    axes = figure.subplots()
    for number, (_, weights) in enumerate(columns):
        for layer, weight in enumerate(weights):
            hatch = {"low": "---", "high": "...", None: ""}[pattern(weight, len(weights))]
            axes.bar(number, 1, 1, bottom=layer, color=shade(weight), hatch=hatch, edgecolor="#8a8a8a", linewidth=0.5)
            box = {"facecolor": shade(weight), "edgecolor": "none", "pad": 1}
            ink = "white" if weight > 0.55 else "black"
            axes.text(number, layer + 0.5, f"{weight:.2f}", ha="center", va="center", color=ink, fontsize=8, bbox=box)
    axes.set_yticks([layer + 0.5 for layer in range(rows)], [layer_name(layer) for layer in range(rows)])
    titles = [_shown(title).replace("$", r"\$") for title, _ in columns]  # else formulas, as matplotlib reads them
    axes.set_xticks(range(len(columns)), titles, rotation=30, ha="right")
    axes.tick_params(length=0)
    axes.set_frame_on(False)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", metadata={"Software": None})
    return stream.getvalue()
