"""`elmo info`: figures from a config and the header of the weights, without torch."""

import json
import subprocess
import sys
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_models import options_with, types_of, write_model
from safetensors.numpy import load_file, save_file
from typer.testing import CliRunner

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.commands.app import app
from elmo_cli.config import PRESETS, preset
from elmo_cli.errors import ModelError
from elmo_cli.storage.convert import import_model
from elmo_cli.storage.model_card import model_card
from elmo_cli.storage.model_dir import ModelConfig, write_config
from elmo_cli.storage.model_info import model_info
from elmo_cli.storage.weights import tensor_shapes

# Of the models published with Peters et al. (2018), softmax not counted.
PUBLISHED = {"elmo-small": 13_593_296, "elmo-medium": 28_027_728, "elmo-original": 93_600_848}


def write_hollow_weights(path: Path, shapes: dict[str, tuple[int, ...]]) -> int:
    """Write a float32 safetensors file whose numbers are a hole in the file, and return its size."""
    header, end = {}, 0
    for name, shape in shapes.items():
        start, end = end, end + 4 * prod(shape)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)
    return 8 + len(text) + end


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A tiny model converted from bilm-tf, with a softmax of 6 word types."""
    files = write_model(tmp_path / "theirs", options_with(n_characters=261), types=types_of(6))
    import_model([files.folder], tmp_path / "ferry", language="nb", replace=False)
    return tmp_path / "ferry"


@pytest.mark.parametrize("name", PRESETS)
def test_the_shapes_of_the_file_are_those_of_the_module(name: str) -> None:
    with torch.device("meta"):
        model = LanguageModel(preset(name), 100)
    found = {key.removeprefix("bilm."): tuple(value.shape) for key, value in model.state_dict().items()}
    assert found == tensor_shapes(preset(name), 100)


@pytest.mark.parametrize(("name", "parameters"), PUBLISHED.items())
def test_published_shapes_have_as_many_parameters_as_published(tmp_path: Path, name: str, parameters: int) -> None:
    with torch.device("meta"):
        assert sum(parameter.numel() for parameter in BiLM(preset(name)).parameters()) == parameters
    write_config(tmp_path, ModelConfig(preset(name)))
    size = write_hollow_weights(tmp_path / "model.safetensors", tensor_shapes(preset(name), None))
    info = model_info(tmp_path)
    assert (info.parameters, info.softmax_parameters, info.dtype, info.size) == (parameters, 0, "float32", size)
    assert 4 * parameters < size < 4 * parameters + 10_000


def test_a_softmax_is_counted_apart(folder: Path) -> None:
    info = model_info(folder)
    cnn = 261 * 4 + (1 * 4 + 1) * 4 + (2 * 4 + 1) * 6 + (3 * 4 + 1) * 8
    highway, projection = 2 * (18 * 18 + 18), 18 * 8 + 8
    lstm = 2 * 2 * (16 * 64 + 64 + 16 * 8)  # directions, layers, kernel and bias and projection
    assert info.parameters == cnn + highway + projection + lstm
    assert info.softmax_parameters == 6 * 8 + 6


def info_of(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, ["info", *map(str, arguments)])
    return result.exit_code, result.stdout, result.stderr


def test_json_has_stable_names(folder: Path) -> None:
    code, answer, said = info_of(folder, "--json")
    assert (code, said, answer.count("\n")) == (0, "", 1)
    found = json.loads(answer)
    assert list(found) == [
        *("name", "folder", "layers", "dim", "parameters", "softmax_parameters", "vocabulary_size", "dtype", "bytes"),
        *("tokenizer", "bilm", "provenance"),
    ]
    assert (found["name"], found["folder"], found["layers"], found["dim"]) == ("ferry", str(folder), 3, 16)
    assert (found["parameters"], found["softmax_parameters"], found["vocabulary_size"]) == (6_922, 54, 6)
    assert (found["dtype"], found["bytes"]) == ("float32", (folder / "model.safetensors").stat().st_size)
    assert found["tokenizer"] == {"name": "none", "language": "nb"}
    assert found["bilm"]["lstm"] == {
        "cell_dim": 16,
        "projection_dim": 8,
        "layers": 2,
        "cell_clip": 3.0,
        "projection_clip": 3.0,
        "skip_connections": True,
    }
    assert found["provenance"]["options"] == options_with(n_characters=261)
    assert found["provenance"]["converted_from"] == ["theirs"]


def test_a_person_gets_a_row_for_each_fact(folder: Path) -> None:
    code, answer, said = info_of(folder)
    assert (code, said) == (0, "")
    size = (folder / "model.safetensors").stat().st_size
    assert answer.splitlines()[:11] == [
        f"folder          {folder}",
        "vectors         3 layers of 16 numbers",
        "parameters      6,922",
        "softmax         54 parameters",
        "vocabulary      6 word types",
        "char CNN        filters 4x1 6x2 8x3 (count x width), relu, 1 highway layer",
        "characters      50 ids a token, 48 bytes of it",
        "LSTM            2 layers of 16 cells projected to 8",
        "                cells clipped at 3.0, states at 3.0, skip connections on",
        "tokenizer       none nb",
        f"weights         float32, {size / 1e6:,.1f} MB",
    ]


def test_a_model_without_a_softmax_says_so(tmp_path: Path) -> None:
    config = ModelConfig(replace(preset("tiny"), lstm=replace(preset("tiny").lstm, cell_clip=None)))
    write_config(tmp_path, config)
    write_hollow_weights(tmp_path / "model.safetensors", tensor_shapes(config.bilm, None))
    rows = dict(model_info(tmp_path).rows())
    assert (rows["softmax"], rows["vocabulary"], rows["tokenizer"]) == ("none", "none", "not recorded")
    assert (rows["LSTM"], rows[""]) == (
        "2 layers of 64 cells projected to 32",
        "states clipped at 3.0, skip connections on",
    )


@pytest.mark.parametrize(
    ("cell_clip", "clips"), [(None, "nothing clipped"), (3.0, "cells clipped at 3.0")], ids=["none", "cells"]
)
def test_what_is_not_projected_is_neither_said_to_be_nor_clipped(
    tmp_path: Path, cell_clip: float | None, clips: str
) -> None:
    lstm = replace(preset("tiny").lstm, projection_dim=64, cell_clip=cell_clip)
    config = ModelConfig(replace(preset("tiny"), lstm=lstm))
    write_config(tmp_path, config)
    write_hollow_weights(tmp_path / "model.safetensors", tensor_shapes(config.bilm, None))
    rows = dict(model_info(tmp_path).rows())
    assert (rows["LSTM"], rows[""]) == ("2 layers of 64 cells", f"{clips}, skip connections on")
    assert "| LSTM | 64 cells, 2 layers a direction |" in model_card("m", config)


def test_the_card_of_a_model_holds_any_name(tmp_path: Path) -> None:
    corpora = [{"name": "a|b\n# c.txt", "size": 1, "sha256": "0"}]
    training = {"text_tokens": 1, "tokens_read": 1, "steps": 1, "seconds": 1.0}
    card = model_card("my model", ModelConfig(preset("tiny"), provenance={"training": training, "corpora": corpora}))
    assert r"| a\|b\n# c.txt | 1 | `0` |" in card.split("\n")
    assert "elmo embed text.txt -m 'my model' > vectors.npy" in card


def test_weights_of_float16_are_told(folder: Path) -> None:
    path = folder / "model.safetensors"
    save_file({name: array.astype(np.float16) for name, array in load_file(path).items()}, path)
    assert model_info(folder).dtype == "float16"


def test_weights_of_another_shape_are_refused(folder: Path) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    tensors["softmax.bias"] = np.zeros(5, dtype=np.float32)
    save_file(tensors, path)
    with pytest.raises(ModelError) as caught:
        model_info(folder)
    assert str(caught.value) == f"{path}: tensor softmax.bias is [5], the config asks for [6]"


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    error = f"elmo: error: {tmp_path}: the folder holds no model (no config.json)\n  fix: name the folder that holds"
    assert info_of(tmp_path) == (1, "", f"{error} config.json\n")


def test_the_command_loads_no_torch(folder: Path) -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "elmo_cli", "info", str(folder), "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}
    assert json.loads(run.stdout)["parameters"] == 6_922
    assert "elmo_cli.storage.model_info" in loaded
    assert {"torch", "spacy", "h5py", "rich"}.isdisjoint(loaded)
