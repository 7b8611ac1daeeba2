"""Which tokens of a corpus an index keeps."""

import importlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from elmo_cli.embedding.selection import is_punctuation
from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.neighbors.matching import Form
from elmo_cli.text.sources import read_lines


@dataclass(slots=True)
class TokenSelection:
    """Tells which tokens of a sentence are kept.

    Args:
        forms: of the words that are kept, whatever their case; None for all words.
        stop_words: left out, in lower case.
        punctuation: whether tokens without a letter or digit are kept.
        frequent: word types that occur often enough; None for all.
        met: takes all word types that are met, kept or not; None to forget them.

    Attributes:
        by_first: the forms by their first token, case folded.
        seen: forms that have been met.
    """

    forms: Sequence[Form] | None = None
    stop_words: frozenset[str] = frozenset()
    punctuation: bool = True
    frequent: frozenset[str] | None = None
    met: set[str] | None = None
    by_first: dict[str, list[Form]] = field(init=False, default_factory=dict)
    seen: set[Form] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        for form in self.forms or ():
            folded = tuple(map(str.casefold, form))
            self.by_first.setdefault(folded[0], []).append(folded)

    def kept(self, tokens: Sequence[str]) -> Sequence[int]:
        """Return the numbers, from 0 and rising, of the tokens that are kept."""
        if self.met is not None:
            self.met.update(tokens)
        numbers: Sequence[int] = range(len(tokens)) if self.forms is None else self._in_forms(tokens)
        if not self.stop_words and self.punctuation and self.frequent is None:
            return numbers
        return [number for number in numbers if self._is_kept(tokens[number])]

    def _is_kept(self, token: str) -> bool:
        if self.stop_words and token.casefold() in self.stop_words:
            return False
        if self.frequent is not None and token not in self.frequent:
            return False
        return self.punctuation or not is_punctuation(token)

    def _in_forms(self, tokens: Sequence[str]) -> list[int]:
        folded = [token.casefold() for token in tokens]
        found: set[int] = set()
        for start, token in enumerate(folded):
            for form in self.by_first.get(token, ()):
                if len(form) == 1 or tuple(folded[start : start + len(form)]) == form:
                    found.update(range(start, start + len(form)))
                    self.seen.add(form)
        return sorted(found)

    @property
    def unseen(self) -> list[Form]:
        """Forms of the list that have not been met so far."""
        return sorted({form for forms in self.by_first.values() for form in forms} - self.seen)


def read_word_list(text: str) -> list[str]:
    """Return the words of a list: a file with a word a line, or the words themselves, parted by commas.

    Raises:
        DataError: the file cannot be read or holds no word.
        ConfigError: what looks like a file is not there.
    """
    if os.path.isfile(text):  # of a path it would be an error that a list is longer than a name may be
        words = [line.text.strip() for line in read_lines(text)]
        words = [word for word in words if word]
        if not words:
            raise DataError("the list holds no word", where=Place(text), fix="write a word a line")
        return words
    if "/" in text or text.endswith((".txt", ".tsv", ".list")):
        raise ConfigError(f"there is no word list {text}", fix="name a file, or words parted by commas")
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise ConfigError(f"the word list {text!r} holds an empty word", fix="write it like bank,play")
    return words


def stop_words_of(language: str) -> frozenset[str]:
    """Return spaCy's stop words of a language, in lower case.

    Raises:
        ConfigError: spaCy has none for it.
    """
    code = language.partition("-")[0]
    try:
        module = importlib.import_module(f"spacy.lang.{code}.stop_words")
    except ImportError as error:
        raise ConfigError(
            f"spaCy has no stop words for the language {language!r}", fix="leave out --no-stop-words, or use --only"
        ) from error
    return frozenset(word.casefold() for word in module.STOP_WORDS)


def frequent_types(sentences: Iterable[Sequence[str]], min_count: int) -> frozenset[str]:
    """Return the word types that occur at least ``min_count`` times."""
    counts: Counter[str] = Counter()
    for tokens in sentences:
        counts.update(tokens)
    return frozenset(word for word, count in counts.items() if count >= min_count)
