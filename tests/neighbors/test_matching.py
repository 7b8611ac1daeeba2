"""Where a word stands among tokens."""

import pytest

from elmo_cli.neighbors.matching import Match, find_word, nearest_words, word_forms


def test_a_word_is_found_as_it_is_spelled() -> None:
    assert find_word(["Play", "a", "play"], (("play",),)) == [Match(2, 1)]


def test_only_where_it_is_nowhere_so_case_is_ignored() -> None:
    assert find_word(["Play", "a", "PLAY"], (("play",),)) == [Match(0, 1, False), Match(2, 1, False)]
    assert find_word(["Straße"], (("STRASSE",),)) == [Match(0, 1, False)]


def test_case_is_ignored_from_the_start_if_asked() -> None:
    assert [match.start for match in find_word(["Play", "play"], (("play",),), ignore_case=True)] == [0, 1]


def test_a_word_that_is_split_is_found_as_a_run() -> None:
    forms = word_forms("don't", ["do", "n't"])
    assert find_word(["do", "do", "n't", "go"], forms) == [Match(1, 2)]
    assert find_word(["I", "don't"], forms) == [Match(1, 1)]
    assert find_word(["Do", "N'T"], forms) == [Match(0, 2, False)]


@pytest.mark.parametrize("pieces", [[], ["play"]])
def test_a_word_that_is_one_token_has_one_form(pieces: list[str]) -> None:
    assert word_forms("play", pieces) == (("play",),)


def test_a_run_does_not_go_beyond_the_end() -> None:
    assert find_word(["New"], (("New York",), ("New", "York"))) == []
    assert find_word([], (("a",),)) == []


def test_the_nearest_words_are_those_spelled_alike() -> None:
    assert nearest_words("plya", ["Play", "play", "player", "bank"]) == ["play", "player"]
    assert nearest_words("xylophone", ["a", "b"]) == []
