"""Scores against counts made by hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.mixing.metrics import Counts, metric_for, score_labels

SENTENCES = st.lists(
    st.lists(st.tuples(st.sampled_from("AB"), st.sampled_from("AB")), min_size=1, max_size=5), min_size=1, max_size=5
)


def test_span_f1_counts_whole_spans_of_the_right_type() -> None:
    gold = [["B-PER", "I-PER", "O", "B-LOC"], ["B-LOC", "O"]]
    predicted = [["B-PER", "I-PER", "O", "B-PER"], ["B-LOC", "I-LOC"]]
    score = score_labels("span_f1", gold, predicted, of_tokens=True)
    # Gold 3, predicted 3, right 1: the first; the second has another type, the third another end.
    assert score.values == pytest.approx({"span_f1": 1 / 3, "precision": 1 / 3, "recall": 1 / 3, "accuracy": 4 / 6})
    assert score.parts == {"LOC": Counts(0, 1, 2), "PER": Counts(1, 2, 1)}


def test_a_span_does_not_go_on_into_the_next_sentence() -> None:
    score = score_labels("span_f1", [["B-PER"], ["I-PER"]], [["B-PER"], ["I-PER"]], of_tokens=True)
    assert score.parts == {"PER": Counts(2, 2, 2)}


def test_macro_f1_is_the_mean_over_all_labels_in_gold_or_predicted() -> None:
    gold, predicted = [["a"], ["a"], ["b"], ["c"]], [["a"], ["b"], ["b"], ["d"]]
    score = score_labels("accuracy", gold, predicted, of_tokens=False)
    # a: 2/3, b: 2/3, c: 0, d: 0
    assert score.values == pytest.approx({"accuracy": 0.5, "macro_f1": 1 / 3})


def test_nothing_found_scores_zero() -> None:
    assert score_labels("span_f1", [["O"]], [["O"]], of_tokens=True).value == 0.0
    assert score_labels("accuracy", [], [], of_tokens=True).value == 0.0


def test_tokens_have_span_f1_where_their_labels_are_spans() -> None:
    assert metric_for(["O", "B-X"], of_tokens=True) == "span_f1"
    assert metric_for(["O", "B-X"], of_tokens=False) == "accuracy"
    assert metric_for(["NOUN"], of_tokens=True) == "accuracy"


@given(
    st.lists(st.lists(st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"]), min_size=1, max_size=6), min_size=1),
    st.data(),
)
def test_span_f1_is_that_of_seqeval(gold: list[list[str]], data: st.DataObject) -> None:
    seqeval = pytest.importorskip("seqeval.metrics.sequence_labeling")
    tags = st.sampled_from(["O", "B-A", "I-A", "B-B", "I-B"])
    predicted = [data.draw(st.lists(tags, min_size=len(row), max_size=len(row))) for row in gold]
    score = score_labels("span_f1", gold, predicted, of_tokens=True)
    true = {(number, *span) for number, row in enumerate(gold) for span in seqeval.get_entities(row)}
    found = {(number, *span) for number, row in enumerate(predicted) for span in seqeval.get_entities(row)}
    expected = 2 * len(true & found) / (len(true) + len(found)) if true or found else 0.0
    assert score.value == pytest.approx(expected)


@given(SENTENCES)
def test_accuracy_is_the_share_of_equal_labels(sentences: list[list[tuple[str, str]]]) -> None:
    gold = [[one for one, _ in row] for row in sentences]
    predicted = [[other for _, other in row] for row in sentences]
    pairs = [pair for row in sentences for pair in row]
    score = score_labels("accuracy", gold, predicted, of_tokens=True)
    assert score.value == pytest.approx(sum(one == other for one, other in pairs) / len(pairs))
