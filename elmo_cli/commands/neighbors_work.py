"""The work of `elmo neighbors` once its command line is understood: queries to answers, with one start of the model."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmo_cli.commands.neighbors_answer import Answer
from elmo_cli.commands.occurrence_options import Source
from elmo_cli.errors import DataError, Place
from elmo_cli.reporting import Reporter, counted
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


def nearest(source: Source, how: Search, asked: Sequence[AskedFor], answer: Answer) -> int:
    """Find the neighbours of words in their sentences and write them, query by query.

    Returns:
        How many queries of a file have no answer, each told as a warning: their words occur nowhere.

    Raises:
        AbsentWord: the word of the command line occurs nowhere.
    """
    from elmo_cli.neighbors.matching import word_forms
    from elmo_cli.neighbors.query import AbsentWord, locate, query_vectors

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
    batch = asked[0][2] is not None
    forms = None if how.any_token else [form for query in queries for form in query.forms]
    # Before the corpus is embedded, which leaves vectors of words behind that round otherwise: the same query has the
    # same vector whether the index is made now or was made before.
    vectors = query_vectors(queries, source.layer_number, embedder)
    try:
        with source.opened(forms) as index:
            hits = _found_together(_Finder(source, index, how, queries, batch=batch), queries, vectors)
    except AbsentWord:
        if not batch:
            raise
        hits = {}  # a corpus that has none of the words
    for number, query in enumerate(queries):
        if number in hits:
            answer.write(query, hits[number], layer=source.layer_number, model=source.model.mark)
        else:
            where = "index" if source.has_index else "corpus"
            source.reporter.warn(f"{asked[number][2]}: {query.word!r} does not occur in the {where}")
            answer.skip()
    return len(queries) - len(hits)


def _found_together(finder: "_Finder", queries: "Sequence[Query]", vectors: "Floats") -> "dict[int, list[Hit]]":
    """Return the neighbours by the number of the query; of a batch, without those whose words occur nowhere."""
    together: dict[Hashable, list[int]] = {}  # queries that are compared with the same occurrences
    for number, query in enumerate(queries):
        together.setdefault(None if finder.any_token else query.forms, []).append(number)
    hits: dict[int, list[Hit]] = {}
    for numbers in together.values():
        found = finder.find(numbers, vectors[numbers])
        if found is not None:
            hits.update(zip(numbers, found, strict=True))
    return hits


class _Finder:
    """Finds the neighbours of queries in an index."""

    def __init__(self, source: Source, index: "Index", how: Search, queries: "Sequence[Query]", *, batch: bool) -> None:
        self._source, self._index, self._how, self._queries = source, index, how, queries
        self._batch = batch
        self.layer, self.any_token = source.layer_number, how.any_token

    def find(self, numbers: Sequence[int], vectors: "Floats") -> "list[list[Hit]] | None":
        """Return the neighbours of some queries, all compared with the same occurrences; of a batch, None if none.

        Raises:
            AbsentWord: there are none for the query of the command line.
        """
        from elmo_cli.neighbors.concordance import hits_of
        from elmo_cli.neighbors.search import Space, all_tokens, search

        how, index, layer = self._how, self._index, self.layer
        if self._is_approximate():
            from elmo_cli.neighbors.approximate import search_approximate

            return [hits_of(index, scored) for scored in search_approximate(index, vectors, layer, count=how.count)]
        first = self._queries[numbers[0]]
        if how.any_token:
            candidates = all_tokens(index)
        elif self._batch:  # without the nearest words, which take seconds in a large index
            candidates = _occurrences(self._source, index, first.word, first.forms, ignore_case=how.ignore_case)
            if not candidates:
                return None
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
        AbsentWord: nowhere; the nearest words of the corpus are named.
    """
    from elmo_cli.neighbors.query import AbsentWord, absent

    found = _occurrences(source, index, word, forms, ignore_case=ignore_case)
    if not found:
        only = index.info.selection.get("only")
        if only is not None and source.has_index:
            message = f"{word!r} is not in the index, which keeps {counted(len(only), 'word')} alone"
            fix = "make another index, or name its --corpus"
            raise AbsentWord(message, where=Place(str(index.folder)), fix=fix)
        types = {name for part in index.parts for name in part.types} if only is None else ()
        sources = list(dict.fromkeys(name for part in index.info.parts for name in part.sources))
        raise absent(word, types, sources, indexed=source.has_index)
    return found


def _occurrences(
    source: Source, index: "Index", word: str, forms: "Sequence[Form]", *, ignore_case: bool
) -> "list[Candidates]":
    """Return where a word occurs, perhaps nowhere, in any case only if nowhere exactly, which is told."""
    from elmo_cli.neighbors.search import occurrences_of

    found = occurrences_of(index, forms, ignore_case=ignore_case)
    if not found and not ignore_case:
        found = occurrences_of(index, forms, ignore_case=True)
        if found:
            source.reporter.note(f"{word!r} occurs in the corpus only in other upper and lower case")
    return found


def static_neighbors(source: Source, word: str, count: int, answer: Answer) -> None:
    """Find the corpus's words that are nearest to a word without a sentence, and write them."""
    from elmo_cli.neighbors.nearest_types import nearest_types
    from elmo_cli.neighbors.query import type_vector

    with source.opened(None, spelling=True) as index:
        found = nearest_types(index, word, type_vector(word, source.model.embedder), count=count)
    answer.write_types(word, found, model=source.model.mark)
