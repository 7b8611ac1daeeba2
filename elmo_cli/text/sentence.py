"""A sentence of tokens, with what tells where each stood in the input."""

import re
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final

from elmo_cli.errors import Place
from elmo_cli.text.tokenizer import Span

Position = tuple[int, int | None, int | None]  # line from 1, start and end in that line; None where they are not known

TOKEN: Final = re.compile(r"[^ \t\r\v\f]+")  # ASCII alone, so that U+00A0 and U+3000 may stand in a token


class RawJson(str):
    """A value as the JSON it was read as, to be written as it stands: no digit of a number is lost on the way."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of tokens, with what tells where each stood in the input.

    Args:
        tokens: in order; none for an empty line.
        place: of the line in which the sentence starts.
        text: what the spans point into; None where the input came tokenized and without it.
        spans: start and end of each token in ``text``; None where they are not known.
        origins: (offset in ``text``, line number, offset in that line) of each stretch of ``text`` that lies in one
            line, in order; the first offset is 0. Needed where ``places`` is None and there are spans.
        line: the line itself, where all of it is tokens parted by spaces.
        places: where each token stands in the input, if that does not follow from ``origins`` or ``line``.
        fields: what else the input says of the sentence, such as its ``id``.
    """

    tokens: list[str]
    place: Place
    text: str | None = None
    spans: list[Span] | None = None
    origins: tuple[tuple[int, int, int], ...] = ()
    line: str | None = None
    places: list[Position] | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        """Make what another process sends small: one that tokenizes is of no use if it takes longer to listen to it."""
        tokens: list[str] | None = self.tokens
        spans: list[Span] | bytes | None = self.spans
        text, places = self.text, self.places
        if text is not None and self.spans is not None and tokens == [text[start:end] for start, end in self.spans]:
            tokens, spans = None, array("I", chain.from_iterable(self.spans)).tobytes()
        place = self.place.source, self.place.line
        return _received, (tokens, spans, text, place, self.origins, self.line, places, self.fields)

    @property
    def positions(self) -> list[Position]:
        """Line number, start and end of each token in the line of the input in which it starts."""
        if self.places is not None:
            return self.places
        if self.spans is None:
            number = self.place.line or 1
            return [(number, *match.span()) for match in TOKEN.finditer(self.line or "")]
        offsets = [offset for offset, _, _ in self.origins]
        positions: list[Position] = []
        for start, end in self.spans:
            index = bisect_right(offsets, start) - 1
            offset, number, shift = self.origins[index]
            if index + 1 < len(offsets):  # a token with a space in it may go on in the next line
                end = min(end, offsets[index + 1] - 1)
            positions.append((number, start - offset + shift, end - offset + shift))
        return positions


def _received(
    tokens: list[str] | None,
    spans: list[Span] | bytes | None,
    text: str | None,
    place: tuple[str, int | None],
    origins: tuple[tuple[int, int, int], ...],
    line: str | None,
    places: list[Position] | None,
    fields: Mapping[str, Any],
) -> Sentence:
    """Undo `Sentence.__reduce__`."""
    if isinstance(spans, bytes):
        edges = array("I")
        edges.frombytes(spans)
        pairs = iter(edges)
        spans = list(zip(pairs, pairs, strict=True))
    if tokens is None:
        tokens = [(text or "")[start:end] for start, end in spans or ()]
    return Sentence(tokens, Place(*place), text, spans, origins, line, places, fields)
