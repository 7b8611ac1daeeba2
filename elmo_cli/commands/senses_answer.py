"""How the groups of a word are written."""

from typing import Any, Final

from elmo_cli.commands.neighbors_answer import HIT_COLUMNS, Form, LineWriter, hit_cells
from elmo_cli.commands.senses_work import Grouped
from elmo_cli.commands.streams import output_stream

COLUMNS: Final = ("group", "typicality", *HIT_COLUMNS[2:])


def write_senses(found: Grouped, form: Form, lines: int) -> None:
    """Write the groups to stdout.

    Args:
        found: the groups.
        form: of the answer.
        lines: typical lines of each group, where not all occurrences are written.
    """
    with output_stream(None) as stream:
        writer = LineWriter(stream, form)
        groups = list(enumerate(found.senses.groups, start=1))
        if form.name == "json":
            writer.json(_object(found, lines))
        elif form.name == "text":
            for number, group in groups:
                share = len(group.members) / len(found.hits)
                writer.line(f"group {number}: {len(group.members):,} of {len(found.hits):,} ({share:.0%})")
                writer.concordance([found.hits[member] for member in group.members[:lines]])
                if number < len(groups):
                    writer.line("")
            if found.senses.silhouette is not None:
                writer.line(f"silhouette {found.senses.silhouette:.3f}")
        else:
            everything = [(number, found.hits[member]) for number, group in groups for member in group.members]
            if form.name == "tsv":
                writer.table([COLUMNS])
                writer.table((number, *hit_cells(hit)) for number, hit in everything)
            else:
                for number, hit in everything:
                    writer.json(_occurrence(number, hit.to_json()))


def _object(found: Grouped, lines: int) -> dict[str, Any]:
    groups = [
        {
            "group": number,
            "size": len(group.members),
            "lines": [_occurrence(None, found.hits[member].to_json()) for member in group.members[:lines]],
        }
        for number, group in enumerate(found.senses.groups, start=1)
    ]
    silhouette = None if found.senses.silhouette is None else round(found.senses.silhouette, 6)
    about = {"word": found.word, "model": found.model, "layer": found.layer, "occurrences": len(found.hits)}
    return {**about, "silhouette": silhouette, "groups": groups}


def _occurrence(group: int | None, hit: dict[str, Any]) -> dict[str, Any]:
    """Return the keys of an occurrence; its score is called what it is here."""
    head: dict[str, Any] = {} if group is None else {"group": group}
    rest = {name: value for name, value in hit.items() if name != "score"}
    return {**head, "rank": rest.pop("rank"), "typicality": hit["score"], **rest}
