"""The work of `elmo senses` once its command line is understood."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_cli.commands.neighbors_work import occurrences_told
from elmo_cli.commands.occurrence_options import Source
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import counted

if TYPE_CHECKING:
    from elmo_cli.neighbors.concordance import Hit
    from elmo_cli.neighbors.plots import PlotPoint
    from elmo_cli.neighbors.senses import Senses


@dataclass(frozen=True, slots=True)
class Grouping:
    """How occurrences are grouped, as the options of the command tell."""

    groups: int | None
    least: float
    seed: int
    ignore_case: bool


@dataclass(frozen=True, slots=True)
class Grouped:
    """A word's occurrences in groups.

    Attributes:
        word: as it was asked for.
        model: name of the model.
        layer: that was compared.
        senses: the groups.
        hits: the occurrences, in the order of the corpus; their scores are their typicalities, their ranks places
            in their groups.
    """

    word: str
    model: str
    layer: int
    senses: "Senses"
    hits: "list[Hit]"


def group(source: Source, word: str, how: Grouping, plot: Path | None) -> Grouped:
    """Group the occurrences of a word.

    Raises:
        DataError: there are none.
    """
    from dataclasses import replace

    from elmo_cli.neighbors.concordance import hits_of
    from elmo_cli.neighbors.matching import word_forms
    from elmo_cli.neighbors.plots import check_suffix
    from elmo_cli.neighbors.search import Scored
    from elmo_cli.neighbors.senses import find_senses

    if plot is not None:
        check_suffix(plot)
    source.prepare()
    [pieces] = source.splitter.split([word])
    forms = word_forms(word, pieces)
    with source.opened(forms) as index:
        candidates = occurrences_told(source, index, word, forms, ignore_case=how.ignore_case)
        senses = find_senses(index, candidates, source.layer_number, groups=how.groups, least=how.least, seed=how.seed)
        places = {
            member: (rank, score)
            for found in senses.groups
            for rank, (member, score) in enumerate(zip(found.members, found.typicality, strict=True), start=1)
        }
        scored = [Scored(places[number][1], occurrence) for number, occurrence in enumerate(senses.occurrences)]
        hits = [replace(hit, rank=places[number][0]) for number, hit in enumerate(hits_of(index, scored))]
    if remark := _remark(senses, how.groups):
        source.reporter.note(f"{word!r} occurs {counted(len(hits), 'time')}{remark}")
    return Grouped(word, source.model.mark.name, source.layer_number, senses, hits)


def _remark(senses: "Senses", wanted: int | None) -> str:
    """Return why there are fewer groups than asked for, or none were looked for; nothing where neither is so."""
    from elmo_cli.neighbors.senses import LEAST_OCCURRENCES, different_vectors

    if len(senses.units) < LEAST_OCCURRENCES and wanted != 1:
        return ", too seldom to group: one group"
    if wanted is not None:
        found = counted(len(senses.groups), "group")
        return f": {found}, not {wanted:,}, as too many are the same" if len(senses.groups) < wanted else ""
    if len(senses.groups) == 1 and different_vectors(senses.units) < LEAST_OCCURRENCES - 1:
        return ", again and again in the same sentence: one group"
    return ""


def draw(found: Grouped, plot: Path, map_name: str, color_by: str | None, seed: int) -> None:
    """Draw the occurrences in the plane.

    Raises:
        ConfigError: the corpus has no such column, or a package is missing.
    """
    from elmo_cli.neighbors.coloring import color
    from elmo_cli.neighbors.plane import principal_plane, umap_plane
    from elmo_cli.neighbors.plots import Plot, write_plot

    if color_by is None:
        values: list[object] = [f"group {label + 1}" for label in found.senses.labels]
    else:
        values = [hit.fields.get(color_by) for hit in found.hits]
        names = sorted({name for hit in found.hits for name in hit.fields})
        if color_by not in names:
            fix = f"choose {', '.join(names)}" if names else "name a table (TSV) or JSON lines with other keys"
            raise ConfigError(f"the corpus has no column or key {color_by!r}", fix=fix)
    units = found.senses.units
    points = umap_plane(units, seed=seed) if map_name == "umap" else principal_plane(units)
    by = "group" if color_by is None else color_by
    size = counted(len(found.hits), "occurrence")
    title = f"{found.word}: {size} by {by} (layer {found.layer} of {found.model}, {map_name})"
    write_plot(plot, Plot(title, points, [_point(hit) for hit in found.hits], color(values)))


def _point(hit: "Hit") -> "PlotPoint":
    from elmo_cli.neighbors.plots import PlotPoint

    return PlotPoint(hit.text[: hit.start], hit.word, hit.text[hit.end :], f"{hit.file}:{hit.line}")
