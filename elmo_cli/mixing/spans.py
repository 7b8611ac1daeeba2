"""Spans in tagged tokens, counted as conlleval.pl of CoNLL-2000 and -2003 does, and seqeval by default.

A tag is a prefix and a type: B-PER, I-PER; also E- and S-, as conlleval knows them. What begins with I- and does not go
on with the span before it begins one, so that IO, BIO (IOB1) and IOB2 tags are all counted by the same rules.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Final

Span = tuple[int, int, str]  # first token, last token, type

_TAG: Final = re.compile(r"O|[BIES]-.+", re.DOTALL)


def are_span_tags(labels: Iterable[str]) -> bool:
    """Tell whether labels are tags of spans: all O or with a prefix, and one of them B- or I-, so that spans exist."""
    found = set(labels)
    return all(_TAG.fullmatch(label) for label in found) and any(label[:2] in ("B-", "I-") for label in found)


def spans_of(tags: Sequence[str]) -> list[Span]:
    """Return the spans in the tags of a sentence, in order."""
    found: list[Span] = []
    start: int | None = None
    previous, previous_type = "O", ""
    for number, tag in enumerate((*tags, "O")):
        prefix, _, kind = tag.partition("-")
        if start is not None and _ends(previous, prefix, previous_type, kind):
            found.append((start, number - 1, previous_type))
            start = None
        if _starts(previous, prefix, previous_type, kind):
            start = number
        previous, previous_type = prefix, kind
    return found


def _ends(previous: str, prefix: str, previous_type: str, kind: str) -> bool:
    """Tell whether a span ends between two tags."""
    if previous in ("E", "S"):
        return True
    if previous in ("B", "I") and prefix in ("B", "S", "O"):
        return True
    return previous != "O" and previous_type != kind


def _starts(previous: str, prefix: str, previous_type: str, kind: str) -> bool:
    """Tell whether a span starts with the second of two tags."""
    if prefix in ("B", "S"):
        return True
    if previous in ("E", "S", "O") and prefix in ("E", "I"):
        return True
    return prefix != "O" and previous_type != kind
