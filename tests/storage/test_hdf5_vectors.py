"""Vectors as HDF5 in the layout of AllenNLP's ``elmo`` command, read back with h5py."""

import io
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from foreign_models import options_with, write_model
from numpy.typing import NDArray
from typer.testing import CliRunner

from elmo_cli.commands.app import app
from elmo_cli.config import DType
from elmo_cli.errors import ConfigError, ModelError
from elmo_cli.storage.convert import import_model
from elmo_cli.storage.hdf5_vectors import HDF5Writer
from elmo_cli.storage.vectors import SentenceRows

LINES = ["The ferry left .", "", "two", "The ferry left ."]


def rows(count: int, *shape: int, start: int = 0) -> NDArray[np.float32]:
    """Return rows of distinct numbers, which float16 holds exactly."""
    size = count * int(np.prod(shape))
    return np.arange(start, start + size, dtype=np.float32).reshape(count, *shape)


Sentences = Sequence[tuple[dict[str, Any], NDArray[np.float32]]]


def write(
    stream: io.BytesIO, sentences: Sentences, row_shape: tuple[int, ...], dtype: DType, *, pooled: bool = False
) -> None:
    """Write heads and vectors."""
    with HDF5Writer(stream, row_shape, dtype, pooled=pooled) as writer:
        for head, vectors in sentences:
            text = str(head.get("text", " ".join(head.get("tokens", []))))
            writer.write(head, vectors, SentenceRows(1, 1, text, [], [], []))
            writer.flush()


def written(
    sentences: Sentences, row_shape: tuple[int, ...], dtype: DType = "float32", *, pooled: bool = False
) -> h5py.File:
    """Return an open file of what the writer makes of heads and vectors."""
    stream = io.BytesIO()
    write(stream, sentences, row_shape, dtype, pooled=pooled)
    return h5py.File(stream)


def indices_of(file: h5py.File) -> dict[str, str]:
    """Read ``sentence_to_index`` as programs written for AllenNLP do."""
    (text,) = file["sentence_to_index"]
    return json.loads(text)


def test_several_layers_stand_before_the_tokens() -> None:
    vectors = rows(4, 3, 16)
    file = written([({"text": "a b c d"}, vectors)], (3, 16))
    assert (file["0"].shape, file["0"].dtype) == ((3, 4, 16), np.float32)
    for layer in range(3):
        np.testing.assert_array_equal(file["0"][layer], vectors[:, layer])


def test_one_layer_is_a_matrix() -> None:
    vectors = rows(4, 16)
    file = written([({"text": "a b c d"}, vectors)], (16,))
    np.testing.assert_array_equal(file["0"][()], vectors)


def test_sentences_are_numbered_from_0() -> None:
    file = written([({"text": line}, rows(len(line.split()), 8)) for line in LINES], (8,))
    assert set(file) == {"0", "1", "2", "3", "sentence_to_index"}
    assert [file[str(number)].shape for number in range(4)] == [(4, 8), (0, 8), (1, 8), (4, 8)]


def test_more_than_ten_sentences_keep_their_numbers() -> None:
    file = written([({"text": f"line {n}"}, rows(1, 2, start=n)) for n in range(12)], (2,))
    assert [file[str(n)][0, 0] for n in range(12)] == list(range(12))
    assert indices_of(file) == {f"line {n}": str(n) for n in range(12)}


def test_a_repeated_line_keeps_its_last_number() -> None:
    file = written([({"text": line}, rows(len(line.split()), 8)) for line in LINES], (8,))
    assert file["sentence_to_index"].shape == (1,)
    assert indices_of(file) == {"The ferry left .": "3", "": "1", "two": "2"}


def test_a_tokenized_sentence_is_known_by_its_tokens_with_spaces() -> None:
    heads: list[dict[str, Any]] = [
        {"id": 1, "tokens": ["Ana", "läuft"], "text": "Ana  läuft"},
        {"id": 2, "tokens": ["你好", "\ud800"]},
        {"id": 3, "tokens": []},
    ]
    file = written([(head, rows(len(head["tokens"]), 8)) for head in heads], (8,))
    assert indices_of(file) == {"Ana  läuft": "0", "你好 \ud800": "1", "": "2"}


def test_an_empty_sentence_has_all_layers_of_no_tokens() -> None:
    file = written([({"text": ""}, rows(0, 3, 16))], (3, 16))
    assert file["0"].shape == (3, 0, 16)


def test_no_sentences_make_a_file_that_says_so() -> None:
    file = written([], (16,))
    assert (set(file), indices_of(file)) == ({"sentence_to_index"}, {})


@pytest.mark.parametrize("shape", [(16,), (3, 16)])
def test_a_pooled_sentence_is_as_its_rows(shape: tuple[int, ...]) -> None:
    vector = rows(1, *shape)[0]
    file = written([({"text": "a b"}, vector)], shape, pooled=True)
    np.testing.assert_array_equal(file["0"][()], vector)


def test_numbers_are_stored_as_asked() -> None:
    file = written([({"text": "a"}, rows(1, 16))], (16,), "float16")
    assert file["0"].dtype == np.float16
    np.testing.assert_array_equal(file["0"][()], rows(1, 16))


def test_a_number_that_is_not_finite_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    stream = io.BytesIO()
    sentences: Sentences = [({"text": "a"}, rows(1, 2)), ({"text": "b"}, rows(1, 2) * np.nan)]
    with pytest.raises(ModelError, match=r"^a vector holds nan"):
        write(stream, sentences, (2,), "float32")
    assert (stream.getvalue(), list(tmp_path.iterdir())) == (b"", [])


def test_without_h5py_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError) as caught:
        HDF5Writer(io.BytesIO(), (2,), "float32")
    assert str(caught.value) == "HDF5 files need the package h5py\n  fix: pip install 'elmo-cli[hdf5]'"
    assert list(tmp_path.iterdir()) == []


def test_the_stream_may_be_a_pipe() -> None:
    source, target = os.pipe()
    vectors = rows(3000, 16)  # more than a pipe holds at once
    received: list[bytes] = []
    with os.fdopen(source, "rb") as end:
        reader = threading.Thread(target=lambda: received.append(end.read()))
        reader.start()
        with os.fdopen(target, "wb") as stream, HDF5Writer(stream, (16,), "float32") as writer:
            writer.write({"text": "a"}, vectors, SentenceRows(1, 1, "a", [], [], []))
        reader.join()
    np.testing.assert_array_equal(h5py.File(io.BytesIO(received[0]))["0"][()], vectors)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("model")
    files = write_model(root / "theirs", options_with())
    import_model([files.folder], root / "ours", language="en", replace=False)
    return root / "ours"


TEXT = "The ferry left .\n\ntwo\nThe ferry left .\n"


@pytest.mark.parametrize(
    ("layers", "shapes"),
    [
        ("all", [(3, 4, 16), (3, 0, 16), (3, 1, 16), (3, 4, 16)]),
        ("0,2", [(2, 4, 16), (2, 0, 16), (2, 1, 16), (2, 4, 16)]),
        ("top", [(4, 16), (0, 16), (1, 16), (4, 16)]),
        ("average", [(4, 16), (0, 16), (1, 16), (4, 16)]),
    ],
)
def test_the_command_writes_the_layers_that_were_asked_for(
    model: Path, tmp_path: Path, layers: str, shapes: list[tuple[int, ...]]
) -> None:
    target = tmp_path / "vectors.hdf5"
    options = ["--input", "tokens", "--layers", layers, "-m", str(model), "-o", str(target)]
    result = CliRunner().invoke(app, ["embed", *options], input=TEXT)
    assert result.exit_code == 0, result.stderr
    with h5py.File(target) as file:
        assert [file[str(number)].shape for number in range(4)] == shapes
        np.testing.assert_allclose(file["0"], file["3"], rtol=0, atol=1e-6)
        assert indices_of(file) == {"The ferry left .": "3", "": "1", "two": "2"}


def test_the_command_writes_into_a_pipe(model: Path) -> None:
    command = [sys.executable, "-m", "elmo_cli", "embed", "-f", "hdf5", "--input", "tokens", "--layers", "all"]
    run = subprocess.run([*command, "-m", str(model)], input=TEXT.encode(), capture_output=True, check=True)
    with h5py.File(io.BytesIO(run.stdout)) as file:
        assert [file[str(number)].shape for number in range(4)] == [(3, 4, 16), (3, 0, 16), (3, 1, 16), (3, 4, 16)]
