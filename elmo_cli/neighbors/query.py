"""A word in a sentence, and its vector."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.embedding.write import SentenceEmbedder
from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.neighbors.matching import Form, Match, find_word, nearest_words
from elmo_cli.neighbors.part import Floats
from elmo_cli.reporting import Reporter


class AbsentWord(DataError):
    """A word that is looked for occurs nowhere."""


@dataclass(frozen=True, slots=True)
class Query:
    """A word in a sentence.

    Attributes:
        word: as it was asked for.
        context: the sentence.
        tokens: of the sentence.
        match: where the word stands.
        forms: runs of tokens that the word may be.
    """

    word: str
    context: str
    tokens: tuple[str, ...]
    match: Match
    forms: tuple[Form, ...]


def locate(
    word: str,
    context: str,
    tokens: Sequence[str],
    forms: tuple[Form, ...],
    *,
    nth: int | None,
    reporter: Reporter,
    where: Place | None = None,
) -> Query:
    """Find a word in its sentence.

    Args:
        word: as it was asked for.
        context: the sentence.
        tokens: of the sentence.
        forms: runs of tokens that the word may be.
        nth: which of several occurrences, from 1; None for the first, with a note.
        reporter: told what is not as it was asked for.
        where: file and line of the query; None where it stands on the command line.

    Raises:
        ConfigError: the word, or its nth occurrence, is not in the sentence of the command line.
        DataError: the same in a file.
    """
    found = find_word(tokens, forms)
    kind = ConfigError if where is None else DataError
    if not found:
        near = nearest_words(word, tokens)
        fix = f"did you mean {' or '.join(map(repr, near))}?" if near else f"its tokens are: {_shown(tokens)}"
        raise kind(f"{word!r} does not occur in the sentence {context!r}", where=where, fix=fix)
    if nth is not None and nth > len(found):
        times = "once" if len(found) == 1 else f"{len(found)} times"
        fix = f"choose 1 to {len(found)}" if len(found) > 1 else "leave out --nth"
        raise kind(f"{word!r} occurs {times} in the sentence, so there is no --nth {nth}", where=where, fix=fix)
    match = found[(nth or 1) - 1]
    place = "" if where is None else f"{where}: "
    surface = " ".join(tokens[match.start : match.start + match.length])
    if not match.exact:
        reporter.note(f"{place}{word!r} stands in the sentence as {surface!r}")
    elif match.length > 1:
        reporter.note(f"{place}{word!r} is {match.length} tokens in the sentence, {surface!r}; their mean is compared")
    if nth is None and len(found) > 1:
        which = "this is the first" if where is not None else "this is the first; --nth 2 takes the second"
        reporter.note(f"{place}{word!r} occurs {len(found)} times in the sentence; {which}")
    return Query(word, context, tuple(tokens), match, forms)


def query_vectors(queries: Sequence[Query], layer: int, embedder: SentenceEmbedder) -> Floats:
    """Return the vector of each query's word in its sentence [queries, dim]; of several tokens, the mean."""
    found = []
    layers = embedder.embed((query.tokens for query in queries), LayerChoice((layer,)))
    for query, vectors in zip(queries, layers, strict=True):
        start = query.match.start
        found.append(vectors[start : start + query.match.length].mean(dim=0).numpy())
    return np.stack(found).astype(np.float32)


def type_vector(word: str, embedder: SentenceEmbedder) -> Floats:
    """Return layer 0 of a word [dim], which depends on its spelling alone."""
    [vectors] = embedder.embed([[word]], LayerChoice((0,)))
    return vectors[0].numpy().astype(np.float32)


def absent(word: str, types: Iterable[str], sources: Sequence[str], *, indexed: bool = False) -> AbsentWord:
    """Return what to tell of a word that a corpus does not have.

    Args:
        word: that was looked for.
        types: the words of the corpus, as far as they are known.
        sources: names of its texts.
        indexed: whether an index was named, not a corpus.
    """
    near = nearest_words(word, sorted(types))
    where = sources[0] if len(sources) == 1 else f"{sources[0]} and {len(sources) - 1} more"
    other = "name another index, or add a text to this one" if indexed else "name another corpus with --corpus"
    fix = f"the nearest words are {', '.join(map(repr, near))}" if near else other
    return AbsentWord(f"{word!r} does not occur in the corpus", where=Place(where), fix=fix)


def _shown(tokens: Sequence[str]) -> str:
    shown = ", ".join(map(repr, tokens[:12]))
    return shown + (", ..." if len(tokens) > 12 else "") if tokens else "none"
