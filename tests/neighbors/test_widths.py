"""Columns of a terminal: wide characters, combining marks, and nothing that the terminal would obey."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.neighbors.widths import cut_end, cut_start, one_line, width


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("play", 4),
        ("", 0),
        ("東京", 4),
        ("ﾊﾝ", 2),  # half width
        ("Ａ", 2),
        ("e\u0301", 1),
        ("é", 1),
        ("한국", 4),
        ("\u1112\u1161\u11ab", 2),  # the same syllable in its parts
        ("😀", 2),
        ("a\u200db", 2),
    ],
)
def test_the_width_is_that_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


@given(st.text(), st.integers(0, 60))
def test_what_is_cut_fits(text: str, columns: int) -> None:
    for cut in (cut_end, cut_start):
        assert width(cut(text, columns)) <= columns


@given(st.text(), st.integers(0, 60))
def test_what_fits_is_not_cut_and_what_is_left_is_the_start_or_the_end(text: str, columns: int) -> None:
    for cut, side in ((cut_end, str.startswith), (cut_start, str.endswith)):
        shown = cut(text, columns)
        if width(text) <= columns:
            assert shown == text
        else:
            assert side(text, shown.strip("…"))


def test_a_mark_is_not_cut_from_its_letter() -> None:
    assert cut_end("ae\u0301b\u0301c", 3) == "ae\u0301…"
    assert cut_start("ae\u0301b\u0301c", 3) == "…b\u0301c"


def test_a_wide_character_that_has_no_room_leaves_a_gap() -> None:
    assert cut_end("東京都", 4) == "東…"


@given(st.text())
def test_nothing_is_left_that_a_terminal_obeys(text: str) -> None:
    shown = one_line(text)
    assert not [character for character in shown if unicodedata.category(character) in ("Cc", "Cs")]
    assert "\u202e" not in shown
    assert shown == " ".join(shown.split())


def test_escape_sequences_are_made_visible() -> None:
    assert one_line("a\x1b[31mred\x07\tb\nc") == "a\ufffd[31mred\ufffd b c"
