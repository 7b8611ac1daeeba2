"""How many columns of a terminal a text takes, and what may go to one."""

import unicodedata
from collections.abc import Iterator
from typing import Final

_NO_WIDTH: Final = ("Mn", "Me", "Cf")
_DIRECTION: Final = frozenset("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u061c")


def one_line(text: str) -> str:
    """Return a text in one line: runs of white space as one space, no control characters, no change of direction.

    What a terminal would obey becomes U+FFFD, so that a corpus cannot move the cursor or set colours.
    """
    return " ".join("".join("\ufffd" if _is_control(character) else character for character in text).split())


def _is_control(character: str) -> bool:
    if character.isspace():
        return False
    return unicodedata.category(character) in ("Cc", "Cs") or character in _DIRECTION


def width(text: str) -> int:
    """Return the columns of a text: two for wide characters (East Asian ones, emoji), none for combining marks."""
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_WIDTH or "\u1160" <= character <= "\u11ff":
        return 0  # the vowels and final consonants of Hangul stand in the cell of the consonant before
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _clusters(text: str) -> Iterator[str]:
    """Yield the characters of a text, each with the marks behind it."""
    cluster = ""
    for character in text:
        if cluster and _columns(character):
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster


def cut_end(text: str, columns: int, mark: str = "…") -> str:
    """Return a text of at most ``columns``, its end cut off if need be, with a mark there."""
    if width(text) <= columns:
        return text
    if columns < width(mark):
        return ""
    return _taken(list(_clusters(text)), columns - width(mark)) + mark


def cut_start(text: str, columns: int, mark: str = "…") -> str:
    """Return a text of at most ``columns``, its start cut off if need be, with a mark there."""
    if width(text) <= columns:
        return text
    if columns < width(mark):
        return ""
    clusters = list(_clusters(text))
    room, at = columns - width(mark), len(clusters)
    while at and width(clusters[at - 1]) <= room:
        at -= 1
        room -= width(clusters[at])
    return mark + "".join(clusters[at:])


def _taken(clusters: list[str], room: int) -> str:
    taken = []
    for cluster in clusters:
        room -= width(cluster)
        if room < 0:
            break
        taken.append(cluster)
    return "".join(taken)
