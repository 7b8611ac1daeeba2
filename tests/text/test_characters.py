"""Tokens as rows of character ids: the bytes of UTF-8 between two marks, as bilm-tf's training code has them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.text.characters import (
    BEGIN_SENTENCE,
    BEGIN_WORD,
    CHARACTER_COUNT,
    END_SENTENCE,
    END_WORD,
    PADDING,
    character_ids,
    is_cut,
    token_bytes,
)

# Lone surrogates are drawn too: a tokenized line of an odd source may hold them.
any_token = st.text(st.characters(), max_size=40)
ordinary_token = st.text(st.characters(exclude_categories=["Cs"]), max_size=40).filter(
    lambda token: token not in ("<S>", "</S>")
)


def row(token: str, max_characters: int) -> list[int]:
    return [int(number) for number in character_ids([token], max_characters)[0]]


def test_the_marks_follow_the_256_bytes_in_the_order_of_bilm_tf() -> None:
    assert [BEGIN_SENTENCE, END_SENTENCE, BEGIN_WORD, END_WORD, PADDING] == [256, 257, 258, 259, 260]
    assert CHARACTER_COUNT == 261


@pytest.mark.parametrize(
    ("token", "ids"),
    [
        ("cat", [258, 99, 97, 116, 259, 260, 260, 260]),
        ("é", [258, 0xC3, 0xA9, 259, 260, 260, 260, 260]),
        ("港", [258, 0xE6, 0xB8, 0xAF, 259, 260, 260, 260]),
        ("", [258, 259, 260, 260, 260, 260, 260, 260]),
        ("\0", [258, 0, 259, 260, 260, 260, 260, 260]),
        ("sixsix", [258, 115, 105, 120, 115, 105, 120, 259]),
    ],
)
def test_a_token_is_its_bytes_between_the_marks_of_a_word(token: str, ids: list[int]) -> None:
    assert row(token, 8) == ids


@pytest.mark.parametrize(("token", "mark"), [("<S>", 256), ("</S>", 257)])
def test_the_markers_of_a_sentence_have_an_id_of_their_own(token: str, mark: int) -> None:
    assert row(token, 6) == [258, mark, 259, 260, 260, 260]


@pytest.mark.parametrize("token", ["<s>", "<S", "<S>>", "</s>", "<UNK>"])
def test_what_only_resembles_a_marker_is_read_as_it_is_spelled(token: str) -> None:
    assert row(token, 10)[: len(token) + 2] == [258, *token.encode(), 259]


def test_a_long_token_is_cut_before_its_end_mark() -> None:
    assert row("abcdefgh", 5) == [258, 97, 98, 99, 259]


def test_the_cut_may_split_a_character() -> None:
    assert row("aé港", 6) == [258, 97, 0xC3, 0xA9, 0xE6, 259]


def test_a_lone_surrogate_contributes_no_byte() -> None:
    assert row("a\ud800b", 6) == row("ab", 6)
    assert row("\udfff", 4) == [258, 259, 260, 260]


def test_no_tokens_give_no_rows() -> None:
    assert character_ids([], 50).shape == (0, 50)


def test_the_ids_are_whole_numbers_of_64_bits_as_torch_looks_them_up() -> None:
    assert character_ids(["a"], 50).dtype == np.int64


@pytest.mark.parametrize(
    ("token", "cut"), [("x" * 48, False), ("x" * 49, True), ("é" * 24, False), ("é" * 25, True), ("\ud800" * 90, False)]
)
def test_a_token_is_cut_when_its_bytes_and_two_marks_do_not_fit(token: str, cut: bool) -> None:
    assert is_cut(token, 50) is cut


@given(any_token, st.integers(3, 60))
def test_every_row_is_begin_bytes_end_padding(token: str, max_characters: int) -> None:
    ids = row(token, max_characters)
    end = ids.index(END_WORD)
    assert len(ids) == max_characters
    assert ids[0] == BEGIN_WORD
    assert all(number < BEGIN_WORD for number in ids[1:end])
    assert set(ids[end + 1 :]) <= {PADDING}


@given(ordinary_token)
def test_a_token_that_is_not_cut_can_be_read_back(token: str) -> None:
    ids = row(token, 200)
    assert bytes(ids[1 : ids.index(END_WORD)]).decode() == token


@given(any_token, st.integers(3, 60))
def test_only_a_cut_token_loses_bytes(token: str, max_characters: int) -> None:
    if token not in ("<S>", "</S>"):
        kept = row(token, max_characters).index(END_WORD) - 1
        assert is_cut(token, max_characters) == (kept < len(token_bytes(token)))


@given(st.lists(any_token, max_size=5))
def test_a_row_does_not_depend_on_its_neighbours(tokens: list[str]) -> None:
    together = character_ids(tokens, 20)
    assert [list(ids) for ids in together] == [row(token, 20) for token in tokens]
