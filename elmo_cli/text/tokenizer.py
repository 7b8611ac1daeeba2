"""The spaCy front end: where the tokens and the sentences of a text begin and end."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from importlib.metadata import version
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

from elmo_cli.errors import DataError
from elmo_cli.text.languages import blank_pipeline

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

Span = tuple[int, int]  # start and end, in characters

# spaCy peels affixes off a run of characters one by one and searches all of the rest each time. No word is as long.
_LONGEST_RUN: Final = 1_000
_LONGEST_SIGNS: Final = 100  # of a run of mostly signs, as brackets and emoji, each of which is an affix

# What another library is fed at once. Sudachi (ja) refuses more than 49,149 bytes, and spaCy's code around the others
# looks at all of the rest for each token.
_WINDOW: Final = 10_000

_CACHED_LENGTH: Final = 30  # characters; longer runs seldom come twice
_CACHE_SIZE: Final = 1 << 15  # some 20 MB, and nearly all runs of running text
_LONG_CACHE_SIZE: Final = 1 << 8  # for text that repeats itself without end

_RUN: Final = re.compile(rf"\S{{1,{_LONGEST_RUN}}}")  # white space is what str.isspace() says, here and in spaCy
_UP_TO_STOP: Final = re.compile(r".*[\s。！？、，]", re.DOTALL)
_SURROGATE: Final = re.compile(r"[\ud800-\udfff]")


@runtime_checkable  # the types of arguments are checked in tests
class Tokenizer(Protocol):
    """Cuts texts into tokens; every span is at least one character and never white space alone."""

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return where the tokens of each text stand in it."""

    def sentences(self, text: str) -> list[list[Span]]:
        """Return where the tokens of a running text stand in it, sentence by sentence; none is empty."""


class SpacyTokenizer:
    """The tokenizer of a language as spaCy ships it, without any model to download.

    Ordinary text is cut exactly as spaCy cuts it. Text that is no text is cut in linear time: a run of more than
    1,000 characters without white space is cut into pieces of 1,000 before spaCy sees it, and one of mostly signs, if
    they are not all the same, into pieces of 100.

    Args:
        language: one of spaCy's codes, such as ``en`` or ``xx`` for any; looked up when the first text comes. ``zh``
            cuts Chinese into characters, ``zh-jieba`` into words.
    """

    def __init__(self, language: str = "en") -> None:
        self.language = language

    def load(self) -> None:
        """Get everything ready now, not when the first text comes.

        Raises:
            ConfigError: spaCy does not know the language, or lacks a package for it.
        """
        self.spans(["a"])

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return where the tokens of each text stand in it.

        Raises:
            ConfigError: spaCy does not know the language, or lacks a package for it.
        """
        # Without the zone spaCy would keep every word it has ever seen.
        with self._nlp.memory_zone():
            return [self._cutter.spans(text) for text in texts]

    def sentences(self, text: str) -> list[list[Span]]:
        """Return the spans of a running text by sentences, which spaCy's ``sentencizer`` finds by punctuation.

        Raises:
            ConfigError: spaCy does not know the language, or lacks a package for it.
        """
        from spacy.pipeline import Sentencizer

        grouped: list[list[Span]] = []
        with self._nlp.memory_zone():
            spans = self._cutter.spans(text)
            doc, is_space = _document(self._nlp, text, spans)
            remaining = iter(spans)
            for token, skip in zip(Sentencizer()(doc), is_space, strict=True):
                if token.is_sent_start:
                    grouped.append([])
                if not skip:
                    grouped[-1].append(next(remaining))
        return [sentence for sentence in grouped if sentence]

    @cached_property
    def _nlp(self) -> "Language":
        return blank_pipeline(self.language)

    @cached_property
    def _cutter(self) -> "_RuleCutter | _ForeignCutter":
        from spacy.tokenizer import Tokenizer as RuleTokenizer

        return (_RuleCutter if isinstance(self._nlp.tokenizer, RuleTokenizer) else _ForeignCutter)(self._nlp)


def tokenizer_record(language: str) -> dict[str, str]:
    """Return what a model's config says of the tokenizer of a language."""
    return {"name": "spacy", "language": language, "version": version("spacy")}


class _RuleCutter:
    """Cuts with spaCy's rules, run by run of characters without white space, and remembers the runs.

    spaCy's tokens of a run depend on the run alone, but for the exceptions that it looks for across spaces: ``EE. UU.``
    in Spanish, and by accident faces. So runs stay together where two characters meet across a space as they meet
    across tokens in an exception, which is seldom.
    """

    def __init__(self, nlp: "Language") -> None:
        self._nlp = nlp
        self._seams = _exception_seams(nlp)
        # spaCy's own cache rests inside a memory zone; with this one, running text is cut five times as fast.
        self._cut_short = lru_cache(_CACHE_SIZE)(self._cut)
        self._cut_long = lru_cache(_LONG_CACHE_SIZE)(self._cut)

    def spans(self, text: str) -> list[Span]:
        found: list[Span] = []
        for offset, stretch in self._stretches(text):
            cut = self._cut_short if len(stretch) <= _CACHED_LENGTH else self._cut_long
            found += [(offset + start, offset + end) for start, end in cut(stretch)]
        return found

    def _stretches(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield starts and texts of what can be cut alone: runs, or several that are together no longer than one."""
        first = end = 0
        for start, stop in _runs(text):
            is_joined = start == end + 1 and (text[end - 1], text[start]) in self._seams
            if not is_joined or stop - first > _LONGEST_RUN:
                if end:
                    yield first, text[first:end]
                first = start
            end = stop
        if end:
            yield first, text[first:end]

    def _cut(self, stretch: str) -> tuple[Span, ...]:
        doc = self._nlp.tokenizer(_encodable(stretch))
        return tuple((token.idx, token.idx + len(token)) for token in doc if not token.is_space)


def _runs(text: str) -> Iterator[Span]:
    """Yield the runs of characters without white space, long ones in pieces."""
    for match in _RUN.finditer(text):
        start, stop = match.span()
        size = _LONGEST_SIGNS if stop - start > _LONGEST_SIGNS and _is_mostly_signs(match[0]) else _LONGEST_RUN
        for first in range(start, stop, size):
            yield first, min(first + size, stop)


def _is_mostly_signs(run: str) -> bool:
    """Tell whether most characters are neither letters nor digits; a line of one sign, as under a title, is other."""
    return 2 * sum(map(str.isalnum, run)) < len(run) and len(set(run)) > 1


class _ForeignCutter:
    """Cuts with another library that spaCy wraps; tokens are found again in the text, as not all keep its spaces."""

    def __init__(self, nlp: "Language") -> None:
        self._nlp = nlp

    def spans(self, text: str) -> list[Span]:
        found: list[Span] = []
        for offset, window in _windows(text):
            fed = _encodable(window)
            words = [token.text.strip() for token in self._nlp.tokenizer(fed)]
            found += [(offset + start, offset + end) for start, end in _aligned(fed, [word for word in words if word])]
        return found


def _windows(text: str) -> Iterator[tuple[int, str]]:
    """Yield parts of bounded length with their starts, cut behind white space or a stop where there is one."""
    start = 0
    while len(text) - start > _WINDOW:
        reach = _UP_TO_STOP.match(text, start, start + _WINDOW)
        end = reach.end() if reach else start + _WINDOW
        yield start, text[start:end]
        start = end
    yield start, text[start:]


def _encodable(text: str) -> str:
    """Put U+FFFD for lone surrogates, which only Python has and spaCy refuses."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _aligned(text: str, words: list[str]) -> list[Span]:
    """Return where words that follow each other in a text stand in it."""
    spans = []
    end = 0
    for word in words:
        start = text.find(word, end)
        if start < 0 or text[end:start].strip():
            raise DataError(f"the tokenizer changed the text: it made {word!r} of {text[end : end + 20]!r}")
        end = start + len(word)
        spans.append((start, end))
    return spans


def _document(nlp: "Language", text: str, spans: list[Span]) -> "tuple[Doc, list[bool]]":
    """Return spaCy's document of a text cut at ``spans``, and for each of its tokens whether it is white space.

    As in spaCy, one space behind a token belongs to it, and other white space is a token.
    """
    from spacy.tokens import Doc

    words: list[str] = []
    spaces: list[bool] = []
    is_space: list[bool] = []
    text = _encodable(text)
    previous = 0
    for start, end in [*spans, (len(text), len(text))]:
        gap = text[previous:start]
        if gap.startswith(" ") and words:
            spaces[-1] = True
            gap = gap[1:]
        for word, blank in ((gap, True), (text[start:end], False)):
            if word:
                words.append(word)
                spaces.append(False)
                is_space.append(blank)
        previous = end
    return Doc(nlp.vocab, words=words, spaces=spaces), is_space


def _exception_seams(nlp: "Language") -> frozenset[tuple[str, str]]:
    """Return the characters before and after each place where the language's exceptions are cut before they apply."""
    from spacy.tokenizer import Tokenizer as RuleTokenizer

    rules: Any = nlp.tokenizer
    bare = RuleTokenizer(
        nlp.vocab,
        prefix_search=rules.prefix_search,
        suffix_search=rules.suffix_search,
        infix_finditer=rules.infix_finditer,
        token_match=rules.token_match,
        url_match=rules.url_match,
    )
    neighbours = (pair for exception in rules.rules for pair in pairwise(bare(exception)))
    return frozenset((left.text[-1], right.text[0]) for left, right in neighbours)
