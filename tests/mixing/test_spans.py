"""Spans as conlleval.pl counts them: worked examples of its rules, and seqeval where it is installed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.mixing.spans import are_span_tags, spans_of

TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("", []),
        ("O O", []),
        ("B-PER I-PER O B-LOC", [(0, 1, "PER"), (3, 3, "LOC")]),
        ("B-PER B-PER", [(0, 0, "PER"), (1, 1, "PER")]),
        # IO and IOB1: a span may begin with I-.
        ("I-PER I-PER O I-PER", [(0, 1, "PER"), (3, 3, "PER")]),
        ("I-PER B-PER I-PER", [(0, 0, "PER"), (1, 2, "PER")]),
        # A change of type ends a span, whatever the prefix.
        ("B-PER I-LOC", [(0, 0, "PER"), (1, 1, "LOC")]),
        ("I-PER I-LOC I-LOC", [(0, 0, "PER"), (1, 2, "LOC")]),
        ("B-PER O I-PER", [(0, 0, "PER"), (2, 2, "PER")]),
        # E- and S-, as conlleval knows them.
        ("B-PER I-PER E-PER S-LOC", [(0, 2, "PER"), (3, 3, "LOC")]),
        ("S-PER I-PER", [(0, 0, "PER"), (1, 1, "PER")]),
        ("B-creative-work I-creative-work", [(0, 1, "creative-work")]),
    ],
)
def test_spans_are_those_of_conlleval(tags: str, spans: list[tuple[int, int, str]]) -> None:
    assert spans_of(tags.split()) == spans


@given(st.lists(st.sampled_from([*TAGS, "E-PER", "S-LOC", "I-a-b"]), max_size=12))
def test_spans_are_those_of_seqeval(tags: list[str]) -> None:
    seqeval = pytest.importorskip("seqeval.metrics.sequence_labeling")
    assert spans_of(tags) == [(start, end, kind) for kind, start, end in seqeval.get_entities(tags)]


@pytest.mark.parametrize(
    ("labels", "answer"),
    [
        ({"O", "B-PER", "I-PER"}, True),
        ({"O", "I-PER"}, True),
        ({"O"}, False),
        ({"NOUN", "VERB"}, False),
        ({"O", "PER"}, False),
        ({"B-", "O"}, False),
    ],
)
def test_labels_of_spans_are_known_by_their_form(labels: set[str], answer: bool) -> None:
    assert are_span_tags(labels) is answer
