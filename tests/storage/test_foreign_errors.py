"""Weights that are wrong are refused by name of what is wrong, and nothing is left behind where they were to go.

The other parts of a model are the business of `test_foreign_folders`.
"""

import pickle
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from foreign_models import (
    ForeignFiles,
    change_datasets,
    change_options,
    options_with,
    refusal,
    types_of,
    write_datasets,
    write_model,
)
from safetensors.numpy import save_file
from typer.testing import CliRunner

from elmo_cli.commands.app import app
from elmo_cli.errors import ConfigError, ModelError, OutputError, Place
from elmo_cli.storage.convert import export_model, import_model

WRONG_PAIR = "\n  fix: name the options.json that belongs to these weights"
FETCH_AGAIN = "\n  fix: fetch or copy the file again"
WORD_IDS = "holds a model of whole-word ids, which elmo does not read"
WEIGHTS_WANTED = "\n  fix: name the weights' file"


@pytest.fixture
def model(tmp_path: Path) -> ForeignFiles:
    return write_model(tmp_path / "model", options_with(), types=types_of(6))


VECTORS = np.zeros((3, 2, 16))


@pytest.mark.parametrize(
    ("datasets", "message"),
    [
        ({"0": VECTORS, "1": VECTORS}, f"holds vectors of sentences, not weights{WEIGHTS_WANTED}"),
        ({"sentence_to_index": np.zeros(1)}, f"holds vectors of sentences, not weights{WEIGHTS_WANTED}"),
        ({"embedding": np.zeros((9, 8))}, f"holds vectors of word types, not weights{WEIGHTS_WANTED}"),
        ({"embedding": np.zeros((9, 8)), "RNN_0/B": VECTORS}, WORD_IDS),
        ({}, "char_embed [261, 4] is missing"),
    ],
)
def test_hdf5_of_something_else_is_recognised(model: ForeignFiles, datasets: dict[str, Any], message: str) -> None:
    write_datasets(model.weights, datasets)
    assert refusal(model.options, model.weights) == f"{model.weights}: {message}"


def write_pytorch(path: Path) -> None:
    torch.save({"weight": torch.zeros(2)}, path)


CONTENTS: dict[str, tuple[Callable[[Path], object], str]] = {
    "text": (lambda path: path.write_text("the ferry left\n"), "text"),
    "options": (lambda path: path.write_text('{"lstm":{"dim":16}}'), "text"),
    "pickle": (lambda path: path.write_bytes(pickle.dumps({"a": 1})), "a Python pickle, which is never opened"),
    "pytorch": (write_pytorch, "a zip archive or a PyTorch file"),
    "safetensors": (lambda path: save_file({"a": np.zeros(2)}, path), "a safetensors file"),
    "empty": (lambda path: path.write_bytes(b""), "empty"),
    "noise": (lambda path: path.write_bytes(bytes(range(128, 200))), "something else"),
}


@pytest.mark.parametrize("kind", CONTENTS)
def test_a_file_that_is_no_hdf5_is_recognised(model: ForeignFiles, kind: str) -> None:
    write, what = CONTENTS[kind]
    write(model.weights)
    assert refusal(model.folder) == f"{model.weights}: is no HDF5 file of weights; it is {what}"


@pytest.mark.parametrize("name", ["model.safetensors", "encoder.pkl", "weights.txt"])
def test_weights_need_not_have_the_name_of_their_kind_to_be_recognised(model: ForeignFiles, name: str) -> None:
    write, what = CONTENTS[{"model.safetensors": "safetensors", "encoder.pkl": "pickle"}.get(name, "text")]
    named = model.weights.rename(model.folder / name)
    write(named)
    assert refusal(named, model.options) == f"{named}: is no HDF5 file of weights; it is {what}"


def test_a_pytorch_file_under_its_own_name_holds_no_weights(model: ForeignFiles) -> None:
    path = model.folder / "pytorch_model.bin"
    write_pytorch(path)
    message = f"{path}, {model.options}: holds no weights (no .hdf5, no TensorFlow checkpoint)\n  fix: name the weights"
    assert refusal(path, model.options).startswith(message)


@pytest.mark.parametrize("size", [16, 100, 5000, -1])
def test_hdf5_cut_short_is_damaged(model: ForeignFiles, size: int) -> None:
    model.weights.write_bytes(model.weights.read_bytes()[:size])
    message = refusal(model.folder)
    assert message.startswith(f"{model.weights}: is a damaged HDF5 file: Unable to")  # the rest is the library's
    assert message.endswith(FETCH_AGAIN)


@pytest.mark.parametrize("mark", [b"TREE", b"HEAP", b"SNOD", b"LSTMCell"])
def test_hdf5_damaged_within_is_damaged(model: ForeignFiles, mark: bytes) -> None:
    content = model.weights.read_bytes()
    model.weights.write_bytes(content.replace(mark, bytes([255, *mark[1:]])))
    message = refusal(model.folder)
    assert message.startswith(f"{model.weights}: is a damaged HDF5 file: ")
    assert message.endswith(FETCH_AGAIN)


CELL = "RNN_0/RNN/MultiRNNCell"
NOT_PART = "is not part of the model that the options describe"
OTHER_SHAPES: dict[str, tuple[str, str, object, str]] = {
    "cells": ("lstm", "dim", 24, f"{CELL}/Cell0/LSTMCell/W_0 is [16, 64], the options ask for [16, 96]"),
    "projection": ("lstm", "projection_dim", 4, "CNN_proj/W_proj is [18, 8], the options ask for [18, 4]"),
    "unprojected": ("lstm", "dim", 8, f"{CELL}/Cell0/LSTMCell/W_0 is [16, 64], the options ask for [16, 32]"),
    "characters": ("char_cnn", "embedding", {"dim": 5}, "char_embed is [261, 4], the options ask for [261, 5]"),
    "filters": (
        "char_cnn",
        "filters",
        [[1, 4], [2, 5], [3, 9]],
        "CNN/W_cnn_1 is [1, 2, 4, 6], the options ask for [1, 2, 4, 5]",
    ),
    "fewer layers": ("lstm", "n_layers", 1, f"{CELL}/Cell1/LSTMCell/B [64] {NOT_PART}"),
    "fewer highways": ("char_cnn", "n_highway", 0, f"CNN_high_0/W_carry [18, 18] {NOT_PART}"),
}


@pytest.mark.parametrize("part", OTHER_SHAPES)
def test_options_of_another_shape_name_the_dataset_and_both_shapes(model: ForeignFiles, part: str) -> None:
    group, key, value, message = OTHER_SHAPES[part]
    change_options(model, lambda options: options[group].update({key: value}))
    assert refusal(model.folder) == f"{model.weights}: {message}{WRONG_PAIR}"


def test_options_with_more_layers_than_the_weights_name_what_is_missing(model: ForeignFiles) -> None:
    change_options(model, lambda options: options["lstm"].update(n_layers=3))
    assert refusal(model.folder) == f"{model.weights}: {CELL}/Cell2/LSTMCell/W_0 [16, 64] is missing"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("CNN_proj/b_proj", "CNN_proj/b_proj [8] is missing"),
        (f"{CELL}/Cell1/LSTMCell/W_P_0", f"{CELL}/Cell1/LSTMCell/W_P_0 [16, 8] is missing"),
        ("softmax/b", f"softmax/W [6, 8] {NOT_PART}{WRONG_PAIR}"),
    ],
)
def test_a_missing_dataset_is_named(model: ForeignFiles, name: str, message: str) -> None:
    change_datasets(model, lambda datasets: datasets.pop(name))
    assert refusal(model.options, model.weights) == f"{model.weights}: {message}"


@pytest.mark.parametrize(
    ("softmax", "message"),
    [
        (np.zeros(()), "softmax/W is [], the options ask for [1, 8]" + WRONG_PAIR),
        (np.zeros((0, 8)), "softmax/W is [0, 8], without any word type"),
    ],
)
def test_a_softmax_of_no_size_is_refused(model: ForeignFiles, softmax: Any, message: str) -> None:  # noqa: ANN401
    change_datasets(model, lambda datasets: datasets.update({"softmax/W": softmax}))
    assert refusal(model.options, model.weights) == f"{model.weights}: {message}"


def test_weights_that_are_no_numbers_are_refused(model: ForeignFiles) -> None:
    change_datasets(model, lambda datasets: datasets["char_embed"].__setitem__((7, 2), np.nan))
    message = "holds numbers that are not finite, in what becomes token_encoder.embedding.weight"
    assert refusal(model.folder) == f"{model.weights}: {message}"


MISSING_H5PY = "HDF5 files need the package h5py\n  fix: pip install 'elmo-cli[hdf5]'"


def test_without_h5py_the_extra_is_named(model: ForeignFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "h5py", None)
    assert refusal(model.folder, kind=ConfigError) == MISSING_H5PY


def test_without_h5py_an_export_names_the_extra(
    model: ForeignFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_model([model.folder], tmp_path / "ours", language="en", replace=False)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ConfigError) as caught:
        export_model(tmp_path / "ours", tmp_path / "theirs", replace=False)
    assert str(caught.value) == MISSING_H5PY
    assert names(tmp_path) == {"model", "ours"}


def test_a_vocabulary_that_cannot_be_read_is_told_as_such(model: ForeignFiles, tmp_path: Path) -> None:
    import_model([model.folder], tmp_path / "ours", language="en", replace=False)
    vocabulary = tmp_path / "ours" / "vocab.txt"
    vocabulary.unlink()
    vocabulary.symlink_to("/proc/self/mem")  # a regular file that cannot be read from its start
    with pytest.raises(ModelError) as caught:
        export_model(tmp_path / "ours", tmp_path / "theirs", replace=False)
    assert caught.value.where == Place(str(vocabulary))
    assert names(tmp_path) == {"model", "ours"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_an_existing_target_is_kept_unless_it_may_be_replaced(model: ForeignFiles, tmp_path: Path) -> None:
    target = tmp_path / "ours"
    target.mkdir()
    (target / "mine.txt").touch()
    with pytest.raises(OutputError) as caught:
        import_model([model.folder], target, language="en", replace=False)
    assert str(caught.value) == f"{target} exists\n  fix: replace it with --force, or choose another -o"
    assert (names(target), names(tmp_path)) == ({"mine.txt"}, {"model", "ours"})
    import_model([model.folder], target, language="en", replace=True)
    assert names(target) == {"config.json", "model.safetensors", "vocab.txt", "README.md"}
    assert names(tmp_path) == {"model", "ours"}


def test_a_refused_model_replaces_nothing(model: ForeignFiles, tmp_path: Path) -> None:
    target = tmp_path / "ours"
    import_model([model.folder], target, language="en", replace=False)
    before = (target / "model.safetensors").read_bytes()
    change_datasets(model, lambda datasets: datasets.pop("char_embed"))
    with pytest.raises(ModelError):
        import_model([model.folder], target, language="en", replace=True)
    assert (target / "model.safetensors").read_bytes() == before
    assert names(tmp_path) == {"model", "ours"}


def convert(*arguments: object) -> tuple[int, str, str]:
    """Return exit code, standard output and standard error of ``elmo convert``."""
    result = CliRunner().invoke(app, ["convert", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_the_command_tells_a_wrong_file_and_ends_with_1(model: ForeignFiles, tmp_path: Path) -> None:
    write_datasets(model.weights, {"embedding": np.zeros((9, 8))})
    error = f"elmo: error: {model.weights}: holds vectors of word types, not weights{WEIGHTS_WANTED}\n"
    assert convert(model.folder, "-o", tmp_path / "ours") == (1, "", error)
    assert names(tmp_path) == {"model"}


def test_the_command_tells_options_of_another_shape_and_ends_with_1(model: ForeignFiles, tmp_path: Path) -> None:
    change_options(model, lambda options: options["lstm"].update(n_layers=1))
    error = f"elmo: error: {model.weights}: {CELL}/Cell1/LSTMCell/B [64] {NOT_PART}{WRONG_PAIR}\n"
    assert convert(model.weights, model.options, "-o", tmp_path / "ours") == (1, "", error)
    assert names(tmp_path) == {"model"}


def test_the_command_replaces_a_model_only_when_forced(model: ForeignFiles, tmp_path: Path) -> None:
    target = tmp_path / "ours"
    note = "3 layers of 16 numbers, 6 word types\n"
    assert convert(model.folder, "-o", target) == (0, f"{target}\n", note)
    error = f"elmo: error: {target} exists\n  fix: replace it with --force, or choose another -o\n"
    assert convert(model.folder, "-o", target) == (2, "", error)
    checked = convert(model.folder, "-o", target, "--force", "--check")
    assert checked == (0, f"{target}\n", f"{note}largest difference after a round trip: 0\n")
