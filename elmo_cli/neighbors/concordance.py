"""Occurrences as a concordance: a line each, the word in the middle, what stands around it to both sides."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from elmo_cli.neighbors.index import Index
from elmo_cli.neighbors.search import Scored
from elmo_cli.neighbors.widths import cut_end, cut_start, one_line, width

NARROWEST: Final = 40
WIDEST: Final = 200
_DEMO: Final = ("elmo_cli", "neighbors", "demo", "senses.tsv")
_SCORE_COLUMNS: Final = 6  # "-0.123"


@dataclass(frozen=True, slots=True)
class Hit:
    """An occurrence as it is told.

    Attributes:
        rank: from 1, the nearest first.
        score: cosine.
        word: as it stands there.
        file: name of the text.
        line: in which the word stands, from 1.
        token: number of the word's first token in the sentence, from 1.
        start: of the word in ``text``, in characters.
        end: of the word in ``text``, excluded.
        text: the sentence.
        tokens: of the sentence.
        fields: what else the corpus says of the sentence.
    """

    rank: int
    score: float
    word: str
    file: str
    line: int
    token: int
    start: int
    end: int
    text: str
    tokens: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return plain values; ``fields`` only where there are any."""
        found = {
            "rank": self.rank,
            "score": round(self.score, 6),
            "word": self.word,
            "file": self.file,
            "line": self.line,
            "token": self.token,
            "start": self.start,
            "end": self.end,
            "text": self.text,
            "tokens": list(self.tokens),
        }
        return {**found, "fields": dict(self.fields)} if self.fields else found


@dataclass(frozen=True, slots=True)
class ConcordanceLine:
    """A line in five parts that are written one behind the other; ``word`` is what may be highlighted."""

    score: str
    left: str
    word: str
    right: str
    place: str

    def __str__(self) -> str:
        return self.score + self.left + self.word + self.right + self.place


def hits_of(index: Index, scored: Sequence[Scored]) -> list[Hit]:
    """Return what is told of occurrences, in order."""
    hits = []
    for rank, found in enumerate(scored, start=1):
        sentence, token, line = index.place(found.occurrence)
        start, end = sentence.spans[token][0], sentence.spans[token + found.occurrence.length - 1][1]
        hit = Hit(
            rank=rank,
            score=found.score,
            word=sentence.text[start:end],
            file=sentence.source,
            line=line,
            token=token + 1,
            start=start,
            end=end,
            text=sentence.text,
            tokens=sentence.tokens,
            fields=sentence.fields,
        )
        hits.append(hit)
    return hits


def concordance(
    hits: Sequence[Hit], columns: int, *, mark: str = "…", short: bool = False, shown: Callable[[str], str] = one_line
) -> list[ConcordanceLine]:
    """Return a line for each hit, of ``columns`` columns at most, with the words in the middle one below the other.

    Args:
        hits: to be shown.
        columns: of the terminal; less than 40 counts as 40, more than 200 as 200.
        mark: stands for what is cut off.
        short: name the demonstration corpus, which lies deep in the package, without its folder.
        shown: returns a text as it is going to be seen, in one line.
    """
    columns = min(max(columns, NARROWEST), WIDEST)
    places = [_place(hit, max(columns // 4, 10), mark, shown, short=short) for hit in hits]
    room = columns - _SCORE_COLUMNS - 2 - 2 - max(map(width, places), default=0)
    return [_line(hit, place, room, mark, shown) for hit, place in zip(hits, places, strict=True)]


def _place(hit: Hit, room: int, mark: str, shown: Callable[[str], str], *, short: bool) -> str:
    number = f":{hit.line}"
    file = Path(hit.file).name if short and Path(hit.file).parts[-len(_DEMO) :] == _DEMO else hit.file
    return cut_start(shown(file), max(room - len(number), 1), mark) + number


def _line(hit: Hit, place: str, room: int, mark: str, shown: Callable[[str], str]) -> ConcordanceLine:
    word = cut_end(shown(hit.word), room - 4, mark)
    # A space between word and context only where the text has one: there is none in Chinese or before a comma.
    before, after = hit.text[: hit.start], hit.text[hit.end :]
    left = shown(before) + (" " if before[-1:].isspace() else "")
    right = (" " if after[:1].isspace() else "") + shown(after)
    left_room = max(room // 2 - (width(word) + 1) // 2, 0)
    left = cut_start(left, left_room, mark)
    right = cut_end(right, room - left_room - width(word), mark)
    padding = room - left_room - width(word) - width(right)
    score = f"{hit.score:{_SCORE_COLUMNS}.3f}  "
    return ConcordanceLine(score, " " * (left_room - width(left)) + left, word, right, " " * padding + "  " + place)
