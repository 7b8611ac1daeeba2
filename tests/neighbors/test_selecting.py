"""Which tokens are kept."""

from pathlib import Path

import pytest

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.neighbors.selecting import TokenSelection, frequent_types, read_word_list

TOKENS = ["The", "Play", ",", "do", "n't", "play", "do", "2"]


@pytest.mark.parametrize(
    ("selection", "kept"),
    [
        (TokenSelection(), range(8)),
        (TokenSelection(forms=[("play",)]), [1, 5]),
        (TokenSelection(forms=[("don't",), ("do", "n't")]), [3, 4]),
        (TokenSelection(punctuation=False), [0, 1, 3, 4, 5, 6, 7]),
        (TokenSelection(stop_words=frozenset(["the", "do"])), [1, 2, 4, 5, 7]),
        (TokenSelection(frequent=frozenset(["do"])), [3, 6]),
        (TokenSelection(forms=[("play",)], frequent=frozenset(["play"])), [5]),
        (TokenSelection(forms=[]), []),
    ],
)
def test_a_selection_keeps_what_all_its_filters_keep(selection: TokenSelection, kept: list[int]) -> None:
    assert list(selection.kept(TOKENS)) == list(kept)


def test_words_of_the_list_that_have_not_been_met_are_known() -> None:
    selection = TokenSelection(forms=[("play",), ("Bank",)])
    selection.kept(TOKENS)
    assert selection.unseen == [("bank",)]


def test_a_word_list_is_a_file_or_stands_in_the_text(tmp_path: Path) -> None:
    (tmp_path / "nouns.txt").write_text("bank\n\n New York \n")
    assert read_word_list(str(tmp_path / "nouns.txt")) == ["bank", "New York"]
    assert read_word_list("bank,play") == ["bank", "play"]
    assert len(read_word_list(",".join(["bank"] * 100))) == 100  # longer than a file's name may be


def test_a_list_that_is_not_there_or_empty_is_told(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n")
    with pytest.raises(DataError, match="holds no word"):
        read_word_list(str(tmp_path / "empty.txt"))
    with pytest.raises(ConfigError, match=r"there is no word list nouns\.txt"):
        read_word_list("nouns.txt")
    with pytest.raises(ConfigError, match="holds an empty word"):
        read_word_list("a,,b")


def test_frequent_types_are_those_that_occur_often_enough() -> None:
    assert frequent_types([["a", "b"], ["a"], ["B"]], 2) == {"a"}
