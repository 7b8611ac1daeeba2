"""A model's folder: what is written is read back, and whatever is wrong with a folder is named."""

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import PRESETS, BiLMConfig
from elmo_cli.errors import ModelError
from elmo_cli.storage.model_dir import ModelConfig, read_config, read_vocabulary, write_config, write_vocabulary
from elmo_cli.storage.weights import load_bilm, load_language_model, write_weights
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary

VOCABULARY = Vocabulary((*SPECIALS, "the", "ferry", "\u2028", "brûlée"))


@pytest.fixture(scope="module")
def model(tiny_config: BiLMConfig) -> LanguageModel:
    model = LanguageModel(tiny_config, len(VOCABULARY))
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.zeros(len(VOCABULARY)))
    return model


@pytest.fixture
def config(tiny_config: BiLMConfig) -> ModelConfig:
    tokenizer = {"name": "spacy", "language": "de", "version": "3.8"}
    return ModelConfig(tiny_config, tokenizer, len(VOCABULARY), {"tool": "elmo 0", "corpora": [{"name": "é\udce9"}]})


@pytest.fixture
def folder(tmp_path: Path, model: LanguageModel, config: ModelConfig) -> Path:
    write_weights(tmp_path, model, "float32")
    write_vocabulary(tmp_path, VOCABULARY)
    write_config(tmp_path, config)
    return tmp_path


def change_tensors(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path)
    return path


def change_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    path = folder / "config.json"
    data = json.loads(path.read_text())
    change(data)
    path.write_text(json.dumps(data))
    return path


def message_of(call: Callable[..., object], *arguments: object) -> str:
    with pytest.raises(ModelError) as caught:
        call(*arguments)
    return str(caught.value)


def test_a_config_reads_back_as_it_was_written(folder: Path, config: ModelConfig) -> None:
    assert read_config(folder) == config
    assert read_config(folder).language == "de"


@pytest.mark.parametrize("name", PRESETS)
def test_the_shape_of_every_preset_survives_its_file(tmp_path: Path, name: str) -> None:
    write_config(tmp_path, ModelConfig(PRESETS[name]))
    assert read_config(tmp_path).bilm == PRESETS[name]


def test_a_model_that_names_no_tokenizer_is_english(folder: Path) -> None:
    change_config(folder, lambda data: data.pop("tokenizer"))
    assert read_config(folder).language == "en"


def test_the_vocabulary_reads_back_as_it_was_written(folder: Path, config: ModelConfig) -> None:
    assert read_vocabulary(folder, config) == VOCABULARY


def test_weights_of_float32_read_back_exactly(folder: Path, config: ModelConfig, model: LanguageModel) -> None:
    loaded = load_language_model(folder, config)
    assert loaded.state_dict().keys() == model.state_dict().keys()
    for name, tensor in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], tensor), name


def test_weights_of_float16_read_back_as_the_nearest_ones(
    folder: Path, config: ModelConfig, model: LanguageModel
) -> None:
    write_weights(folder, model, "float16")
    loaded = load_language_model(folder, config).state_dict()
    for name, tensor in model.state_dict().items():
        assert loaded[name].dtype == torch.float32
        assert torch.equal(loaded[name], tensor.half().float()), name


def test_the_bilm_is_loaded_without_the_softmax(folder: Path, config: ModelConfig, model: LanguageModel) -> None:
    change_tensors(folder, lambda tensors: [tensors.pop("softmax.weight"), tensors.pop("softmax.bias")])
    bilm = load_bilm(folder, replace(config, vocabulary_size=None))
    assert not bilm.training
    assert not any(parameter.requires_grad for parameter in bilm.parameters())
    for name, tensor in model.bilm.state_dict().items():
        assert torch.equal(bilm.state_dict()[name], tensor), name


def test_without_a_softmax_no_words_can_be_predicted(folder: Path, config: ModelConfig) -> None:
    message = message_of(load_language_model, folder, replace(config, vocabulary_size=None))
    assert message == (
        f"{folder}: the model has no softmax, so it predicts no words\n"
        "  fix: take a model of `elmo train`, or convert it again from weights with a softmax and vocab.txt"
    )


def test_a_missing_tensor_is_named(folder: Path, config: ModelConfig) -> None:
    path = change_tensors(folder, lambda tensors: tensors.pop("layers.1.bias"))
    assert message_of(load_bilm, folder, config) == f"{path}: tensor layers.1.bias [2, 64] is missing"


def test_a_misshapen_tensor_is_named_with_both_shapes(folder: Path, config: ModelConfig) -> None:
    path = change_tensors(folder, lambda tensors: tensors.update({"layers.0.bias": np.zeros((2, 60), np.float32)}))
    message = f"{path}: tensor layers.0.bias is [2, 60], the config asks for [2, 64]"
    assert message_of(load_bilm, folder, config) == message


def test_an_unknown_tensor_is_named(folder: Path, config: ModelConfig) -> None:
    path = change_tensors(folder, lambda tensors: tensors.update({"layers.2.bias": np.zeros((2, 64), np.float32)}))
    assert message_of(load_bilm, folder, config) == f"{path}: tensor layers.2.bias is not part of such a model"


def test_a_softmax_of_another_size_is_named(folder: Path, config: ModelConfig) -> None:
    message = message_of(load_language_model, folder, replace(config, vocabulary_size=9))
    path = folder / "model.safetensors"
    assert message == f"{path}: tensor softmax.weight is [7, 8], the config asks for [9, 8]"


@pytest.mark.parametrize("kept", [0, 7, 100, -1])
def test_cut_off_weights_are_not_whole(folder: Path, config: ModelConfig, kept: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    assert message_of(load_bilm, folder, config).startswith(f"{path}: is not a whole safetensors file: ")


def test_a_text_is_no_weights(folder: Path, config: ModelConfig) -> None:
    path = folder / "model.safetensors"
    path.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0000\nsize 13736334\n")
    assert message_of(load_bilm, folder, config).startswith(f"{path}: is not a whole safetensors file: ")


@pytest.mark.parametrize("name", ["model.safetensors", "vocab.txt", "config.json"])
def test_a_missing_file_is_named(folder: Path, config: ModelConfig, name: str) -> None:
    (folder / name).unlink()
    call = {"model.safetensors": load_bilm, "vocab.txt": read_vocabulary, "config.json": lambda at, _: read_config(at)}
    assert message_of(call[name], folder, config).startswith(f"{folder / name}: cannot be read: No such file")


@pytest.mark.parametrize("text", ["", "{", "cell_dim: 512\n", "\xff" * 300])
def test_a_config_that_is_no_json_is_damaged(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text, encoding="latin-1")
    assert message_of(read_config, folder).startswith(f"{folder / 'config.json'}: is damaged: ")
    assert len(message_of(read_config, folder)) < len(str(folder)) + 300


@pytest.mark.parametrize("text", ["[]", "3", "null", "{}", '{"format": "1"}', '{"lstm": {"dim": 4096}}'])
def test_json_of_another_program_is_no_config(folder: Path, text: str) -> None:
    (folder / "config.json").write_text(text)
    assert message_of(read_config, folder) == f"{folder / 'config.json'}: is not the config of an elmo model"


def test_a_later_format_asks_for_a_newer_version(folder: Path) -> None:
    path = change_config(folder, lambda data: data.update(format=2))
    message = f"{path}: has format 2; this version reads up to 1\n  fix: install a newer elmo-cli"
    assert message_of(read_config, folder) == message


@pytest.mark.parametrize(
    ("part", "key", "value", "reason"),
    [
        ("lstm", "cell_dim", 4, "lstm.projection_dim 8 is larger than cell_dim 4"),
        ("lstm", "cell_dim", 16.0, "cell_dim is 16.0, not a whole number"),
        ("lstm", "layers", True, "layers is True, not a whole number"),
        ("lstm", "layers", 0, "lstm sizes must be > 0"),
        ("lstm", "cell_clip", -1, "lstm.cell_clip is -1; leave it out for no clipping"),
        ("char_cnn", "activation", "elu", "char_cnn.activation is 'elu', not relu or tanh"),
        ("char_cnn", "filters", [], "char_cnn.filters is empty"),
        ("char_cnn", "max_characters", "50", "max_characters is '50', not a whole number"),
    ],
)
def test_a_shape_that_makes_no_sense_says_why(folder: Path, part: str, key: str, value: object, reason: str) -> None:
    path = change_config(folder, lambda data: data["bilm"][part].update({key: value}))
    assert message_of(read_config, folder) == f"{path}: the shape of the model cannot be read: {reason}"


def test_an_unknown_key_of_the_shape_is_named(folder: Path) -> None:
    change_config(folder, lambda data: data["bilm"]["lstm"].update(gates=5))
    assert "unexpected keyword argument 'gates'" in message_of(read_config, folder)


@pytest.mark.parametrize("size", ["7", 7.5, 0, -1, [7]])
def test_a_size_of_the_vocabulary_that_is_no_count_is_named(folder: Path, size: object) -> None:
    path = change_config(folder, lambda data: data.update(vocabulary_size=size))
    reason = ValueError(f"vocabulary_size is {size!r}")
    assert message_of(read_config, folder) == f"{path}: is damaged: {reason!r}"


def test_a_vocabulary_that_is_too_short_is_told_from_the_softmax(folder: Path, config: ModelConfig) -> None:
    path = folder / "vocab.txt"
    path.write_text("<S>\n</S>\n<UNK>\nthe\n")
    assert message_of(read_vocabulary, folder, config) == f"{path}: has 4 types, the model's softmax 7"


def test_a_type_that_stands_twice_is_named_with_file_and_line(folder: Path, config: ModelConfig) -> None:
    path = folder / "vocab.txt"
    path.write_text("<S>\n</S>\n<UNK>\nthe\na\nb\nthe\n")
    assert message_of(read_vocabulary, folder, config) == f"{path}:7: 'the' stands a second time"


def test_a_vocabulary_that_is_not_utf_8_is_told_with_the_byte(folder: Path, config: ModelConfig) -> None:
    path = folder / "vocab.txt"
    path.write_bytes(b"<S>\n</S>\n<UNK>\n\xff\n")
    assert message_of(read_vocabulary, folder, config) == f"{path}: is not UTF-8: invalid start byte at byte 15"


def test_weights_of_another_model_are_not_taken_for_those_of_the_config(folder: Path, model: LanguageModel) -> None:
    other = LanguageModel(model.bilm.config, len(VOCABULARY))
    other.load_state_dict({name: tensor + 1 for name, tensor in model.state_dict().items()})
    write_weights(folder, other, "float32")
    assert message_of(read_config, folder) == (
        f"{folder}: config.json is of another model than model.safetensors; perhaps a training was killed as it "
        f"replaced one\n  fix: go on with: elmo train --resume {folder}, or take a whole copy of the model"
    )


def test_a_vocabulary_of_another_model_is_not_taken_for_that_of_the_config(folder: Path) -> None:
    write_vocabulary(folder, Vocabulary((*VOCABULARY.types[:-1], "boat")))
    assert "config.json is of another model than vocab.txt" in message_of(read_config, folder)


def test_weights_written_by_another_tool_need_no_sum(folder: Path, config: ModelConfig) -> None:
    change_tensors(folder, lambda tensors: tensors)
    assert read_config(folder) == config


def test_the_sum_of_the_weights_is_that_of_all_behind_the_header(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    behind = content[8 + int.from_bytes(content[:8], "little") :]
    sums = json.loads((folder / "config.json").read_text())["sums"]
    assert sums["model.safetensors"] == hashlib.sha256(behind).hexdigest()
    assert sums["vocab.txt"] == hashlib.sha256((folder / "vocab.txt").read_bytes()).hexdigest()
