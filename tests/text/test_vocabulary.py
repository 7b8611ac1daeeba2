"""The word types of the softmax: chosen, numbered, written and read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.errors import ModelError
from elmo_cli.text.vocabulary import (
    END_ID,
    SPECIALS,
    START_ID,
    UNKNOWN_ID,
    Vocabulary,
    build_vocabulary,
    vocabulary_from_text,
    vocabulary_to_text,
)

word_types = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\n"), min_size=1, max_size=8)


def build(counts: dict[str, int], *, min_count: int = 1, max_size: int | None = None) -> tuple[str, ...]:
    numbers = np.array(list(counts.values()), dtype=np.int64)
    return build_vocabulary(list(counts), numbers, min_count=min_count, max_size=max_size).types


def test_the_special_types_come_first_in_the_order_of_bilm_tf() -> None:
    assert build({"a": 9})[:3] == SPECIALS == ("<S>", "</S>", "<UNK>")
    assert (START_ID, END_ID, UNKNOWN_ID) == (0, 1, 2)


def test_types_stand_by_falling_count_and_ties_by_text() -> None:
    assert build({"pear": 2, "fig": 5, "apple": 2, "Zoo": 2})[3:] == ("fig", "Zoo", "apple", "pear")


def test_types_that_are_too_rare_are_left_out() -> None:
    assert build({"a": 3, "b": 2, "c": 1}, min_count=2)[3:] == ("a", "b")


def test_the_largest_size_does_not_count_the_special_types() -> None:
    assert build({"a": 3, "b": 2, "c": 1}, max_size=2)[3:] == ("a", "b")


def test_special_types_in_the_text_stand_only_once() -> None:
    assert build({"<S>": 7, "a": 3, "<UNK>": 5, "</S>": 6}) == (*SPECIALS, "a")


@pytest.mark.parametrize("odd", ["a\nb", "\ud800", "é\udfff"])
def test_a_type_that_utf_8_or_a_line_cannot_hold_is_left_out(odd: str) -> None:
    assert build({odd: 7, "c": 1})[3:] == ("c",)


def test_types_outside_get_the_id_of_the_unknown() -> None:
    vocabulary = Vocabulary((*SPECIALS, "fig"))
    assert vocabulary.ids(["fig", "pear", "<S>", "</S>", "<UNK>", ""]).tolist() == [3, 2, 0, 1, 2, 2]


def test_no_types_have_no_ids() -> None:
    assert Vocabulary(SPECIALS).ids([]).tolist() == []


def test_the_file_has_one_type_a_line() -> None:
    assert vocabulary_to_text(Vocabulary((*SPECIALS, "fig"))) == "<S>\n</S>\n<UNK>\nfig\n"


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0b", "\x0c", "\r", "\x1c", "a\r", " ", "\ufeff"])
def test_only_a_line_feed_ends_a_line_of_the_file(odd: str) -> None:
    vocabulary = Vocabulary((*SPECIALS, odd, "fig"))
    assert vocabulary_from_text(vocabulary_to_text(vocabulary), "vocab.txt") == vocabulary


@given(st.lists(word_types.filter(lambda text: text not in SPECIALS), unique=True, max_size=8))
def test_a_vocabulary_reads_back_as_it_was_written(types: list[str]) -> None:
    vocabulary = Vocabulary((*SPECIALS, *types))
    assert vocabulary_from_text(vocabulary_to_text(vocabulary), "vocab.txt") == vocabulary


@given(st.dictionaries(word_types, st.integers(1, 5), max_size=8), st.integers(1, 5))
def test_ids_fall_with_the_count(counts: dict[str, int], min_count: int) -> None:
    kept = build(counts, min_count=min_count)[3:]
    assert set(kept) == {text for text, count in counts.items() if count >= min_count and text not in SPECIALS}
    assert list(kept) == sorted(kept, key=lambda text: (-counts[text], text))


@pytest.mark.parametrize("text", ["", "\n", "fig\n", "<S>\n</S>\n", "</S>\n<S>\n<UNK>\n", "<S>\r\n</S>\r\n<UNK>\r\n"])
def test_a_file_that_does_not_begin_with_the_special_types_is_refused(text: str) -> None:
    with pytest.raises(ModelError) as caught:
        vocabulary_from_text(text, "m/vocab.txt")
    assert str(caught.value) == "m/vocab.txt:1: the vocabulary does not start with <S>, </S>, <UNK>"


def test_a_type_that_stands_twice_is_named_with_its_second_line() -> None:
    with pytest.raises(ModelError) as caught:
        vocabulary_from_text("<S>\n</S>\n<UNK>\nfig\npear\nfig\n", "m/vocab.txt")
    assert str(caught.value) == "m/vocab.txt:6: 'fig' stands a second time"
