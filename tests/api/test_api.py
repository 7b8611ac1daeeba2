"""`elmo_cli.load` and what the model it returns can do."""

from collections.abc import Iterator
from itertools import count, islice

import numpy as np
import pytest

from elmo_cli import Elmo
from elmo_cli.errors import ConfigError

DIM, LAYERS = 64, 3
FLOAT32 = 1e-6  # batches of other company round otherwise
SENTENCES = [["The", "ferry", "left", "."], [], ["…"], ["Nobody", ",", "not", "Tom", "!"]]


def test_a_text_is_cut_into_tokens_and_tokens_are_taken_as_they_are(elmo: Elmo) -> None:
    text, tokens = elmo.embed(["The ferry left.", ["The", "ferry", "left", "."]])
    assert text.shape == (4, DIM)
    np.testing.assert_allclose(text, tokens, atol=FLOAT32)


@pytest.mark.parametrize(("layers", "shape"), [("all", (LAYERS, DIM)), ("0,2", (2, DIM)), ("top", (DIM,))])
def test_the_shape_of_a_row_is_known_beforehand(elmo: Elmo, layers: str, shape: tuple[int, ...]) -> None:
    assert elmo.row_shape(layers=layers) == shape
    assert elmo.embed(SENTENCES[:1], layers=layers)[0].shape == (4, *shape)
    assert elmo.embed(SENTENCES, layers=layers, pool="mean").shape == (4, *shape)


def test_pooled_sentences_are_one_array(elmo: Elmo) -> None:
    tokens = elmo.embed(SENTENCES)
    expected = [np.concatenate((rows.mean(0), rows.max(0))) if len(rows) else np.zeros(2 * DIM) for rows in tokens]
    found = elmo.embed(SENTENCES, pool="mean-max")
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.stack(expected), atol=FLOAT32)


def test_punctuation_can_be_left_out_of_rows_and_pool(elmo: Elmo) -> None:
    whole, less = elmo.embed(SENTENCES), elmo.embed(SENTENCES, skip_punct=True)
    np.testing.assert_allclose(less[0], whole[0][:3], atol=FLOAT32)
    np.testing.assert_allclose(less[3], whole[3][[0, 2, 3]], atol=FLOAT32)
    assert [len(rows) for rows in less] == [3, 0, 0, 3]
    pooled = elmo.embed(SENTENCES, skip_punct=True, pool="last")
    nothing = np.zeros(DIM)
    np.testing.assert_allclose(pooled, np.stack([whole[0][2], nothing, nothing, whole[3][3]]), atol=FLOAT32)


def test_no_sentences_give_no_rows_of_the_usual_width(elmo: Elmo) -> None:
    assert elmo.embed([]) == []
    assert elmo.embed([], layers="all", pool="mean-max").shape == (0, LAYERS, 2 * DIM)


def test_an_endless_stream_of_sentences_can_be_embedded(elmo: Elmo) -> None:
    endless = ([f"word{number}", "."] for number in count())
    first = list(islice(elmo.embed_each(endless, pool="first"), 3))
    np.testing.assert_allclose(first[2], elmo.embed([["word2", "."]])[0][0], atol=FLOAT32)


def test_a_generator_will_do(elmo: Elmo) -> None:
    def lines() -> Iterator[str]:
        yield from ("One line.", "Another.")

    assert [len(rows) for rows in elmo.embed(lines())] == [3, 2]


@pytest.mark.parametrize("method", ["embed", "embed_each"])
def test_a_single_string_is_refused_at_once(elmo: Elmo, method: str) -> None:
    with pytest.raises(TypeError, match=r"embed takes a list of sentences, not a single str: \[text\]"):
        getattr(elmo, method)("The ferry left.")


@pytest.mark.parametrize("sentence", [7, None, b"bytes", ["a", 1], [["a"]]])
def test_what_is_no_sentence_is_shown(elmo: Elmo, sentence: object) -> None:
    with pytest.raises(TypeError) as caught:
        Elmo._tokens(elmo, sentence)
    assert str(caught.value) == f"a sentence is a text or a list of tokens, which are str; this one is {sentence!r}"


@pytest.mark.parametrize("options", [{"pool": "sum"}, {"layers": "7"}, {"layers": "0,0"}])
def test_a_wrong_setting_is_told_before_the_first_sentence(elmo: Elmo, options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        elmo.embed_each(iter([]), **options)
