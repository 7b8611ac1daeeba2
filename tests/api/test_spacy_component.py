"""``nlp.add_pipe("elmo")``: vectors of spaCy's tokens, alone and in batches, kept in docs and pipelines."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc

from elmo_cli import Elmo
from elmo_cli.errors import ModelError

DIM, LAYERS = 64, 3
FLOAT32 = 1e-6
TEXTS = ["The ferry left. Nobody  waved\n", "", " \n ", "Tom!"]


def pipeline(model: Path, **config: Any) -> Language:  # noqa: ANN401 (values of a config)
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": str(model), **config})
    return nlp


def words(doc: Doc) -> list[str]:
    return [token.text for token in doc if not token.is_space]


@pytest.fixture(scope="module")
def nlp(model: Path) -> Language:
    return pipeline(model)


def test_a_row_of_the_tensor_is_the_vector_of_its_token(nlp: Language, elmo: Elmo) -> None:
    doc = nlp(TEXTS[0])
    expected = elmo.embed([words(doc)])[0]
    assert doc.tensor.shape == (len(doc), DIM)
    assert doc.tensor.dtype == np.float32
    found = doc.tensor[[token.i for token in doc if not token.is_space]]
    np.testing.assert_allclose(found, expected, atol=FLOAT32)


def test_white_space_has_zeros_and_is_not_read(nlp: Language) -> None:
    doc = nlp(TEXTS[0])
    assert [token.text for token in doc if token.is_space] == [" ", "\n"]
    for token in doc:
        assert token._.elmo.any() == (not token.is_space)


def test_extensions_of_docs_spans_and_tokens_agree(nlp: Language) -> None:
    doc = nlp(TEXTS[0])
    np.testing.assert_array_equal(doc._.elmo, doc.tensor)
    np.testing.assert_array_equal(doc[1:3]._.elmo, doc.tensor[1:3])
    np.testing.assert_array_equal(doc[2]._.elmo, doc.tensor[2])
    np.testing.assert_allclose(doc[4:7]._.elmo_vector, doc.tensor[[4, 6]].mean(axis=0), atol=FLOAT32)
    np.testing.assert_array_equal(doc[1].vector, doc.tensor[1])


def test_several_layers_stand_side_by_side(model: Path, elmo: Elmo) -> None:
    doc = pipeline(model, layers="all")("The ferry left.")
    (expected,) = elmo.embed([words(doc)], layers="all")
    assert doc.tensor.shape == (4, LAYERS * DIM)
    np.testing.assert_allclose(doc._.elmo, expected, atol=FLOAT32)
    assert (doc[1:3]._.elmo.shape, doc[0]._.elmo.shape) == ((2, LAYERS, DIM), (LAYERS, DIM))
    assert doc._.elmo_vector.shape == (LAYERS, DIM)


@pytest.mark.parametrize("batch_size", [1, 3, 100])
def test_docs_in_a_stream_get_what_they_get_alone(nlp: Language, batch_size: int) -> None:
    docs = list(nlp.pipe(TEXTS * 2, batch_size=batch_size))
    assert [doc.text for doc in docs] == TEXTS * 2
    for doc in docs:
        np.testing.assert_allclose(doc.tensor, nlp(doc.text).tensor, atol=FLOAT32)


def test_a_doc_without_words_has_zeros_of_the_usual_width(nlp: Language) -> None:
    assert nlp("").tensor.shape == (0, DIM)
    doc = nlp(" \n ")
    assert doc.tensor.shape == (len(doc), DIM)
    assert not doc.tensor.any()
    np.testing.assert_array_equal(doc._.elmo_vector, np.zeros(DIM))


def test_an_empty_doc_has_zeros_of_several_layers(model: Path) -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("elmo", config={"model": str(model), "layers": "all"})
    assert nlp("")._.elmo.shape == (0, 3, DIM)
    np.testing.assert_array_equal(nlp("")._.elmo_vector, np.zeros((3, DIM)))


def test_sentences_found_before_are_sentences_to_the_model(model: Path, elmo: Elmo) -> None:
    nlp = pipeline(model)
    nlp.add_pipe("sentencizer", first=True)
    doc = nlp("The ferry left. Nobody waved.")
    expected = np.concatenate(elmo.embed([["The", "ferry", "left", "."], ["Nobody", "waved", "."]]))
    np.testing.assert_allclose(doc.tensor, expected, atol=FLOAT32)


def test_a_saved_pipeline_needs_no_other_folder(model: Path, tmp_path: Path) -> None:
    original = tmp_path / "original"
    shutil.copytree(model, original)
    nlp = pipeline(original, layers="0,2")
    expected = nlp(TEXTS[0]).tensor
    nlp.to_disk(tmp_path / "saved")
    shutil.rmtree(original)
    (tmp_path / "saved").rename(tmp_path / "moved")
    loaded = spacy.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded(TEXTS[0]).tensor, expected)
    loaded.to_disk(tmp_path / "moved")  # onto itself
    np.testing.assert_array_equal(spacy.load(tmp_path / "moved")(TEXTS[0]).tensor, expected)


def test_vectors_stay_in_a_stored_doc(model: Path, nlp: Language) -> None:
    doc = pipeline(model, layers="all")(TEXTS[0])
    copy = Doc(nlp.vocab).from_bytes(doc.to_bytes())
    np.testing.assert_array_equal(copy._.elmo, doc._.elmo)


def test_a_model_that_is_not_there_is_told_with_the_first_doc() -> None:
    nlp = pipeline(Path("nowhere/"))
    with pytest.raises(ModelError, match="nowhere"):
        nlp("The ferry left.")


def test_a_doc_that_has_not_gone_through_the_component_says_so(nlp: Language) -> None:
    doc = nlp.make_doc("A line.")
    for tokens, name in ((doc, "elmo"), (doc, "elmo_vector"), (doc[0], "elmo"), (doc[0:2], "elmo_vector")):
        with pytest.raises(ValueError, match="the doc has no vectors"):
            getattr(tokens._, name)
