"""The work of `elmo neighbors` once its command line is understood: queries to answers, with one start of the model."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmo_cli.commands.neighbors_answer import Answer
from elmo_cli.commands.occurrence_options import Source
from elmo_cli.errors import DataError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.text.sources import EncodingErrors, display_name, read_lines

if TYPE_CHECKING:
    from elmo_cli.neighbors.concordance import Hit
    from elmo_cli.neighbors.index import Index, Occurrence
    from elmo_cli.neighbors.matching import Form
    from elmo_cli.neighbors.part import Floats
    from elmo_cli.neighbors.query import Query
    from elmo_cli.neighbors.search import Candidates

AskedFor = tuple[str, str, Place | None]  # a word, its sentence, and where both stand


@dataclass(frozen=True, slots=True)
class Search:
    """How neighbours are looked for, as the options of the command tell."""

    count: int = 10
    any_token: bool = False
    nth: int | None = None
    ignore_case: bool = False
    unique: bool = False
    exclude_identical: bool = False
    center: bool = False
    whiten: bool = False
    exact: bool = False


def read_batch(source: str, errors: EncodingErrors, reporter: Reporter) -> list[AskedFor]:
    """Return the queries of a file: a word, a tab and a sentence a line; empty lines are none.

    Raises:
        DataError: a line has no tab, or there is no query at all.
    """
    from elmo_cli.commands.streams import note_terminal

    note_terminal([source], reporter)
    found: list[AskedFor] = []
    for line in read_lines(source, errors=errors):
        if not line.text.strip():
            continue
        word, tab, sentence = line.text.partition("\t")
        if not (word.strip() and tab and sentence.strip()):
            raise DataError("the query is not a word, a tab and a sentence", where=line.place, fix="write it so")
        found.append((word.strip(), sentence, line.place))
    if not found:
        raise DataError(
            "there is no query", where=Place(display_name(source)), fix="write a word, a tab and a sentence a line"
        )
    return found


def nearest(source: Source, how: Search, asked: Sequence[AskedFor], answer: Answer) -> None:
    """Find the neighbours of words in their sentences and write them, query by query."""
    from elmo_cli.neighbors.matching import word_forms
    from elmo_cli.neighbors.query import locate, query_vectors

    splitter = source.splitter  # its process loads spaCy while this one loads torch
    embedder = source.model.embedder
    tokens = splitter.split([text for word, context, _ in asked for text in (word, context)])
    queries = [
        locate(
            word,
            context,
            tokens[2 * number + 1],
            word_forms(word, tokens[2 * number]),
            nth=how.nth,
            reporter=source.reporter,
            where=where,
        )
        for number, (word, context, where) in enumerate(asked)
    ]
    forms = None if how.any_token else [form for query in queries for form in query.forms]
    with source.opened(forms) as index:
        vectors = query_vectors(queries, source.layer_number, embedder)
        together: dict[Hashable, list[int]] = {}  # queries that are compared with the same occurrences
        for number, query in enumerate(queries):
            together.setdefault(None if how.any_token else query.forms, []).append(number)
        finder = _Finder(source, index, how, queries)
        hits: dict[int, list[Hit]] = {}
        for numbers in together.values():
            hits.update(zip(numbers, finder.find(numbers, vectors[numbers]), strict=True))
        for number, query in enumerate(queries):
            answer.write(query, hits[number], layer=source.layer_number, model=source.model.mark)


class _Finder:
    """Finds the neighbours of queries in an index."""

    def __init__(self, source: Source, index: "Index", how: Search, queries: "Sequence[Query]") -> None:
        self._source, self._index, self._how, self._queries = source, index, how, queries

    def find(self, numbers: Sequence[int], vectors: "Floats") -> "list[list[Hit]]":
        """Return the neighbours of some queries, all compared with the same occurrences."""
        from elmo_cli.neighbors.concordance import hits_of
        from elmo_cli.neighbors.search import Space, all_tokens, search

        how, index, layer = self._how, self._index, self._source.layer_number
        if self._is_approximate():
            from elmo_cli.neighbors.approximate import search_approximate

            return [hits_of(index, scored) for scored in search_approximate(index, vectors, layer, count=how.count)]
        first = self._queries[numbers[0]]
        if how.any_token:
            candidates = all_tokens(index)
        else:
            candidates = occurrences_told(self._source, index, first.word, first.forms, ignore_case=how.ignore_case)
        found = search(
            index,
            candidates,
            vectors,
            layer,
            count=how.count,
            space=Space(index, candidates, layer, center=how.center, whiten=how.whiten),
            same=self._line_of if how.unique else None,
            skip=[self._is_identical(self._queries[number]) for number in numbers] if how.exclude_identical else None,
        )
        return [hits_of(index, scored) for scored in found]

    def _is_approximate(self) -> bool:
        """Tell whether an approximate index can answer: it knows neither words nor lines, and vectors as they are."""
        how = self._how
        plain = how.any_token and not (how.exact or how.unique or how.exclude_identical or how.center or how.whiten)
        return plain and self._source.layer_number in self._index.info.approximate

    def _line_of(self, occurrence: "Occurrence") -> Hashable:
        sentence, _, line = self._index.place(occurrence)
        return sentence.source, line

    def _is_identical(self, query: "Query") -> "Callable[[Occurrence], bool]":
        return lambda occurrence: self._index.place(occurrence)[0].tokens == query.tokens


def occurrences_told(
    source: Source, index: "Index", word: str, forms: "Sequence[Form]", *, ignore_case: bool
) -> "list[Candidates]":
    """Return where a word occurs, in any case only if nowhere exactly, which is told.

    Raises:
        DataError: nowhere; the nearest words of the corpus are named.
    """
    from elmo_cli.neighbors.query import absent
    from elmo_cli.neighbors.search import occurrences_of

    found = occurrences_of(index, forms, ignore_case=ignore_case)
    if not found and not ignore_case:
        found = occurrences_of(index, forms, ignore_case=True)
        if found:
            source.reporter.note(f"{word!r} occurs in the corpus only in other upper and lower case")
    if not found:
        only = index.info.selection.get("only")
        if only is not None and source.has_index:
            message = f"{word!r} is not in the index, which keeps {len(only):,} words alone"
            raise DataError(message, where=Place(str(index.folder)), fix="make another index, or name its --corpus")
        types = {name for part in index.parts for name in part.types} if only is None else ()
        raise absent(word, types, list(dict.fromkeys(name for part in index.info.parts for name in part.sources)))
    return found


def static_neighbors(source: Source, word: str, count: int, answer: Answer) -> None:
    """Find the corpus's words that are nearest to a word without a sentence, and write them."""
    from elmo_cli.neighbors.query import type_vector
    from elmo_cli.neighbors.static import nearest_types

    with source.opened(None, spelling=True) as index:
        found = nearest_types(index, word, type_vector(word, source.model.embedder), count=count)
    answer.write_types(word, found, model=source.model.mark)
