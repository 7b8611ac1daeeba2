"""The sentences for demonstrations: what they promise of words, senses and variety."""

import re
import unicodedata
from collections import Counter
from importlib.resources import files
from itertools import combinations

import pytest

_WORD = re.compile(r"\w+")
_TEXT = (files("elmo_cli") / "neighbors" / "demo" / "senses.tsv").read_text(encoding="utf-8")
_HEADER, *_LINES = _TEXT.removesuffix("\n").split("\n")
ROWS = [tuple(line.split("\t")) for line in _LINES]
SENSES = Counter(row[:2] for row in ROWS)


def test_a_row_is_a_word_its_sense_and_a_sentence() -> None:
    assert _HEADER == "word\tsense\tsentence"
    assert {len(row) for row in ROWS} == {3}
    assert all(cell and cell == cell.strip() for row in ROWS for cell in row)


def test_the_text_is_utf_8_in_composed_characters_with_unix_lines() -> None:
    assert _TEXT.endswith("\n")
    assert "\r" not in _TEXT
    assert unicodedata.normalize("NFC", _TEXT) == _TEXT


def test_there_are_enough_words_senses_and_sentences() -> None:
    assert len(ROWS) >= 1050
    assert len({word for word, _ in SENSES}) >= 44


@pytest.mark.parametrize("word", sorted({word for word, _ in SENSES}))
def test_a_word_has_two_to_four_senses_of_eight_sentences_at_least(word: str) -> None:
    counts = [count for (other, _), count in SENSES.items() if other == word]
    assert 2 <= len(counts) <= 4
    assert min(counts) >= 8


def test_a_word_stands_in_its_sentence_once_in_small_letters() -> None:
    wrong = [row for row in ROWS if _WORD.findall(row[2]).count(row[0]) != 1]
    capitals = [row for row in ROWS if _WORD.findall(row[2].lower()).count(row[0].lower()) != 1]
    assert (wrong, capitals) == ([], [])
    assert all(word.islower() for word, *_ in ROWS)


def test_spacy_cuts_each_word_out_as_a_token_of_its_own() -> None:
    from elmo_cli.text.tokenizer import SpacyTokenizer

    sentences = [sentence for *_, sentence in ROWS]
    tokens = [
        [sentence[start:end] for start, end in spans]
        for sentence, spans in zip(sentences, SpacyTokenizer("en").spans(sentences), strict=True)
    ]
    assert [row for row, words in zip(ROWS, tokens, strict=True) if words.count(row[0]) != 1] == []


def test_a_sentence_has_6_to_28_words() -> None:
    lengths = [len(sentence.split()) for *_, sentence in ROWS]
    assert 6 <= min(lengths)
    assert max(lengths) <= 28


def test_no_two_sentences_share_more_than_60_percent_of_their_words() -> None:
    types = [frozenset(_WORD.findall(sentence.lower())) for *_, sentence in ROWS]
    alike = [(a, b) for a, b in combinations(types, 2) if 5 * len(a & b) > 3 * len(a | b)]
    assert alike == []
