"""Vectors as JSON Lines."""

import io
import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_cli.errors import DataError, ModelError
from elmo_cli.storage.jsonl_vectors import JsonlWriter


def jsonl(head: dict[str, object], vectors: np.ndarray, **options: object) -> str:
    """Return the line that a writer makes of one sentence."""
    stream = io.BytesIO()
    with JsonlWriter(stream, **options) as writer:
        writer.write(head, vectors)
    return stream.getvalue().decode()


def test_a_line_holds_the_head_and_then_the_vectors() -> None:
    head = {"id": 7, "line": 1, "text": "é ", "tokens": ["é"], "offsets": [[0, 1]]}
    vectors = np.array([[0.5, -1, 0]], np.float32)
    assert jsonl(head, vectors) == (
        '{"id": 7, "line": 1, "text": "é ", "tokens": ["é"], "offsets": [[0, 1]], "vectors": [[0.5,-1,0]]}\n'
    )


@pytest.mark.parametrize(
    ("vectors", "line"),
    [
        (np.zeros((0, 2)), '{"vectors": []}\n'),
        (np.ones((2, 2)), '{"vectors": [[1,1],[1,1]]}\n'),
        (np.ones((2, 2, 1)), '{"vectors": [[[1],[1]],[[1],[1]]]}\n'),
        (np.ones(2), '{"vector": [1,1]}\n'),
    ],
)
def test_every_shape_has_its_form(vectors: np.ndarray, line: str) -> None:
    assert jsonl({}, vectors.astype(np.float32)) == line


def test_pooled_layers_are_a_vector_too() -> None:
    assert jsonl({}, np.ones((2, 1), np.float32), pooled=True) == '{"vector": [[1],[1]]}\n'


def test_a_field_called_like_the_vectors_gives_way() -> None:
    assert jsonl({"vectors": "mine", "id": 1}, np.ones((1, 1), np.float32)) == '{"id": 1, "vectors": [[1]]}\n'


def test_float16_has_no_more_digits_than_it_needs() -> None:
    assert jsonl({}, np.full((1, 2), 1 / 3, np.float32), dtype="float16") == '{"vectors": [[0.33325,0.33325]]}\n'


def test_a_lone_surrogate_is_escaped() -> None:
    line = jsonl({"text": "é\ud800"}, np.ones((1, 1), np.float32))
    assert line == '{"text": "é\\ud800", "vectors": [[1]]}\n'
    assert json.loads(line)["text"] == "é\ud800"


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_reads_back_from_its_one_line(text: str) -> None:
    line = jsonl({"text": text, "tokens": [text]}, np.ones((1, 1), np.float32))
    assert line.count("\n") == 1
    assert json.loads(line)["tokens"] == [text]


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_json_holds_no_number_that_is_not_finite(value: str) -> None:
    stream = io.BytesIO()
    with pytest.raises(ModelError) as caught:
        JsonlWriter(stream).write({}, np.array([[1, float(value)]], np.float32))
    assert caught.value.message == f"a vector holds {value}"
    assert stream.getvalue() == b""


def test_a_head_with_a_number_that_is_not_finite_is_reported() -> None:
    with pytest.raises(DataError, match=r"^the fields of a sentence cannot be written as JSON: Out of range float"):
        jsonl({"score": float("nan")}, np.ones((1, 1), np.float32))


def test_lines_are_handed_on_when_asked_for() -> None:
    reading, writing = os.pipe()
    with open(reading, "rb", buffering=0) as reader, open(writing, "wb") as stream:
        writer = JsonlWriter(stream)
        writer.write({"id": 1}, np.ones((1, 1), np.float32))
        writer.flush()
        assert reader.read(1000) == b'{"id": 1, "vectors": [[1]]}\n'
