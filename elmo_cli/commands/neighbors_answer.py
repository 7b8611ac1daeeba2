"""How neighbours are written: a concordance for people, a table or JSON Lines for programs."""

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from elmo_cli.commands.console import can_show, encodable
from elmo_cli.commands.options import choose
from elmo_cli.commands.streams import output_stream
from elmo_cli.errors import ConfigError
from elmo_cli.storage.tables import escaped, utf8

if TYPE_CHECKING:
    from elmo_cli.neighbors.concordance import ConcordanceLine, Hit
    from elmo_cli.neighbors.index_info import ModelMark
    from elmo_cli.neighbors.nearest_types import NearType
    from elmo_cli.neighbors.query import Query

FORMATS: Final = ("text", "tsv", "jsonl")
HIT_COLUMNS: Final = ("rank", "score", "word", "file", "line", "token", "text")
TYPE_COLUMNS: Final = ("rank", "score", "word", "count")
_PIPE_COLUMNS: Final = 80
# What a terminal obeys. JSON may escape them anywhere, so that its lines can be looked at too.
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@dataclass(frozen=True, slots=True)
class Form:
    """The form of an answer.

    Attributes:
        name: one of `FORMATS`, or ``json``.
        columns: of the concordance.
        terminal: whether a terminal shows it.
    """

    name: str
    columns: int
    terminal: bool


def choose_form(name: str | None, *, as_json: bool, columns: int | None) -> Form:
    """Return the form: as asked, else the concordance on a terminal and the table elsewhere.

    Raises:
        ConfigError: two forms are asked for, or one that there is not.
    """
    if as_json and name is not None:
        raise ConfigError("--json and --format exclude each other", fix="leave one of them out")
    terminal = sys.stdout.isatty()
    name = "json" if as_json else name or ("text" if terminal else "tsv")
    choose("--format", name, (*FORMATS, "json"))
    if columns is None:
        columns = shutil.get_terminal_size((_PIPE_COLUMNS, 24)).columns if terminal else _PIPE_COLUMNS
    return Form(name, columns, terminal)


class Answer:
    """Writes the neighbours of one query after another to stdout.

    Args:
        form: of the answer.
        batch: whether there may be several queries, whose number goes first.
    """

    def __init__(self, form: Form, *, batch: bool) -> None:
        self._form = form
        self._batch = batch
        self._queries = 0
        self._written = False
        self._open = ExitStack()

    def __enter__(self) -> "Answer":
        self._out = LineWriter(self._open.enter_context(output_stream(None)), self._form)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.__exit__(kind, error, trace)

    def write(self, query: "Query", hits: "Sequence[Hit]", *, layer: int, model: "ModelMark") -> None:
        """Write the occurrences nearest to a word in its sentence."""
        self._queries += 1
        head: dict[str, Any] = {"query": self._queries} if self._batch else {}
        if self._form.name == "json":
            start = query.match.start
            about = {"word": query.word, "sentence": query.context, "token": start + 1, "layer": layer}
            self._out.json({**head, **about, "model": model.name, "neighbors": [hit.to_json() for hit in hits]})
        elif self._form.name == "jsonl":
            for hit in hits:
                self._out.json({**head, **hit.to_json()})
        elif self._form.name == "tsv":
            self._table(HIT_COLUMNS, ((hit.rank, *hit_cells(hit)) for hit in hits), head)
        else:
            from elmo_cli.neighbors.widths import one_line

            if self._batch:
                self._out.line(("\n" if self._written else "") + one_line(f"{query.word}: {query.context}"))
            self._out.concordance(hits)
        self._written = True

    def skip(self) -> None:
        """Count a query that has no answer."""
        self._queries += 1

    def write_types(self, word: str, found: "Sequence[NearType]", *, model: "ModelMark") -> None:
        """Write the words nearest to a word without a sentence."""
        rows = [(rank, f"{near.score:.6f}", near.word, near.count) for rank, near in enumerate(found, start=1)]
        objects = [
            {"rank": rank, "score": round(near.score, 6), "word": near.word, "count": near.count}
            for rank, near in enumerate(found, start=1)
        ]
        if self._form.name == "json":
            self._out.json({"word": word, "sentence": None, "layer": 0, "model": model.name, "neighbors": objects})
        elif self._form.name == "jsonl":
            for value in objects:
                self._out.json(value)
        elif self._form.name == "tsv":
            self._table(TYPE_COLUMNS, rows, {})
        else:
            from elmo_cli.neighbors.widths import one_line, width

            words = [one_line(near.word) for near in found]
            widest = max(map(width, words), default=0)
            for near, shown in zip(found, words, strict=True):
                self._out.line(f"{near.score:6.3f}  {shown}{' ' * (widest - width(shown))}  {near.count:,}")

    def _table(self, names: Sequence[str], rows: Iterable[Sequence[object]], head: Mapping[str, object]) -> None:
        if not self._written:
            self._out.table([(*head, *names)])
        self._out.table((*head.values(), *row) for row in rows)


class LineWriter:
    """Writes lines, tables, objects and concordances in an answer's form.

    Args:
        stream: where to.
        form: of the answer.
    """

    def __init__(self, stream: BinaryIO, form: Form) -> None:
        self._stream = stream
        self._form = form

    def line(self, text: str) -> None:
        """Write a line of text that a terminal may have."""
        self._stream.write(utf8(text) + b"\n")

    def table(self, rows: Iterable[Sequence[object]]) -> None:
        """Write rows, tab-separated; in a cell, backslash, tab and line end are escaped."""
        for row in rows:
            cells = [escaped(str(cell)) for cell in row]
            self.line("\t".join(map(_escape_controls, cells) if self._form.terminal else cells))

    def json(self, value: dict[str, Any]) -> None:
        """Write an object as one line."""
        self.line(_escape_controls(json.dumps(value, ensure_ascii=False, allow_nan=False)))

    def concordance(self, hits: "Sequence[Hit]") -> None:
        """Write a line a hit, its word highlighted on a terminal."""
        from elmo_cli.neighbors.concordance import concordance
        from elmo_cli.neighbors.widths import one_line

        # What a terminal in another encoding shows as escapes takes their room.
        shown = (lambda text: encodable(one_line(text), sys.stdout)) if self._form.terminal else one_line
        mark = "…" if can_show("…") else "..."
        lines = concordance(hits, self._form.columns, mark=mark, short=self._form.terminal, shown=shown)
        if not self._form.terminal:
            for line in lines:
                self.line(str(line))
            return
        self._stream.flush()
        show_lines(lines)


def hit_cells(hit: "Hit") -> tuple[object, ...]:
    """Return the cells of an occurrence in a table, from its score on."""
    return f"{hit.score:.6f}", hit.word, hit.file, hit.line, hit.token, hit.text


def _escape_controls(cell: str) -> str:
    """Return a cell of a table as a terminal may have it."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", cell)


def show_lines(lines: "Sequence[ConcordanceLine]") -> None:
    """Show a concordance on the terminal, its words highlighted as far as the terminal and NO_COLOR allow."""
    from rich.console import Console
    from rich.text import Text

    console = Console(width=1000, highlight=False)
    for line in lines:
        left, word, right, place = (
            encodable(part, sys.stdout) for part in (line.left, line.word, line.right, line.place)
        )
        text = Text.assemble((line.score, "dim"), left, (word, "bold yellow"), right, (place, "dim"), end="\n")
        console.print(text, no_wrap=True, overflow="ignore", crop=False)
