"""Where a word stands among tokens: as one of them, or as the run of tokens that the tokenizer makes of it."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

Form = tuple[str, ...]  # the tokens that a word is, mostly one


@dataclass(frozen=True, slots=True)
class Match:
    """Where a word stands in a sentence.

    Attributes:
        start: number of its first token, from 0.
        length: tokens it is, mostly one.
        exact: whether upper and lower case agree too.
    """

    start: int
    length: int
    exact: bool = True


def word_forms(word: str, pieces: Sequence[str]) -> tuple[Form, ...]:
    """Return the runs of tokens that a word may be: itself, and the pieces that a tokenizer makes of it alone."""
    return ((word,),) if tuple(pieces) in ((), (word,)) else ((word,), tuple(pieces))


def find_word(tokens: Sequence[str], forms: Sequence[Form], *, ignore_case: bool = False) -> list[Match]:
    """Return where a word stands, in order; only where it nowhere does so exactly, ignoring case.

    Args:
        tokens: of a sentence.
        forms: as `word_forms` returns them.
        ignore_case: take matches of any case from the start.
    """
    found = [] if ignore_case else _runs(tokens, forms, exact=True)
    if not found:
        folded = [tuple(map(str.casefold, form)) for form in forms]
        found = _runs([token.casefold() for token in tokens], folded, exact=False)
    return found


def _runs(tokens: Sequence[str], forms: Sequence[Form], *, exact: bool) -> list[Match]:
    found = {
        (start, len(form))
        for form in forms
        for start in range(len(tokens) - len(form) + 1)
        if tuple(tokens[start : start + len(form)]) == form
    }
    return [Match(start, length, exact) for start, length in sorted(found)]


def nearest_words(word: str, words: Sequence[str], *, count: int = 3) -> list[str]:
    """Return the words that are spelled most like ``word``, whatever their case, best first, each once."""
    by_fold: dict[str, str] = {}
    for other in words:
        fold = other.casefold()
        if fold not in by_fold or other == fold:  # of Play and play, that which stands within sentences
            by_fold[fold] = other
    near = difflib.get_close_matches(word.casefold(), by_fold, n=count, cutoff=0.5)
    return [by_fold[fold] for fold in near]
