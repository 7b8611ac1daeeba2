"""Static vectors from a text file: GloVe's form and word2vec's."""

from pathlib import Path

import pytest
import torch

from elmo_cli.errors import DataError
from elmo_cli.mixing.encoder import Encoder
from elmo_cli.mixing.static_vectors import StaticEncoder


def vectors(folder: Path, text: str, wanted: set[str] | None = None) -> StaticEncoder:
    path = folder / "glove.txt"
    path.write_text(text, encoding="utf-8")
    return StaticEncoder(str(path), wanted)


def test_a_token_has_its_own_vector_or_that_of_its_lower_case_or_zeros(tmp_path: Path) -> None:
    encoder = vectors(tmp_path, "the 1 2\nThe 3 4\ncat 5 6\n")
    [found] = encoder.layers([["The", "the", "Cat", "dog"]])
    torch.testing.assert_close(found, torch.tensor([[[3.0, 4.0], [1.0, 2.0], [5.0, 6.0], [0.0, 0.0]]]))
    assert str(encoder.coverage) == "4 tokens: 50.0% have a vector, 25.0% in lower case, 25.0% none (zeros)"
    assert (encoder.identity.layer_count, encoder.identity.dim, encoder.identity.name) == (1, 2, "glove.txt")
    assert isinstance(encoder, Encoder)


def test_the_first_line_of_word2vec_is_no_word(tmp_path: Path) -> None:
    [found] = vectors(tmp_path, "2 2\na 1 2\nb 3 4\n").layers([["2", "b"]])
    assert found.tolist() == [[[0.0, 0.0], [3.0, 4.0]]]


def test_a_word_may_hold_spaces(tmp_path: Path) -> None:
    [found] = vectors(tmp_path, "a 1 2\n. . . 3 4\n").layers([[". . ."]])
    assert found.tolist() == [[[3.0, 4.0]]]


def test_only_wanted_words_are_kept_and_the_file_is_still_the_same(tmp_path: Path) -> None:
    text = "a 1 2\nb 3 4\n"
    some, every = vectors(tmp_path, text, {"B"}), vectors(tmp_path, text)
    assert some.identity == every.identity
    assert next(some.layers([["B", "a"]])).tolist() == [[[3.0, 4.0], [0.0, 0.0]]]
    assert next(every.layers([[]])).shape == (1, 0, 2)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a 1 2\nb 3\n", 2),
        ("a 1 2\nb 3 x\n", 2),
        ("a 1 2\nb 3 nan\n", 2),
        ("a 1 2\nb 3 1e39\n", 2),
        ("word\n", 1),
        ("", None),
    ],
)
def test_what_is_no_vector_is_told_with_its_line(tmp_path: Path, text: str, line: int | None) -> None:
    with pytest.raises(DataError) as caught:
        vectors(tmp_path, text)
    assert caught.value.where is not None
    assert caught.value.where.line == line
