"""Options, vocabularies, zips and folders that are wrong are refused by name of what is wrong.

The weights are the business of `test_foreign_errors`.
"""

import json
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_models import (
    ForeignFiles,
    change_options,
    options_with,
    refusal,
    types_of,
    write_model,
    write_types,
    zip_folder,
)

from elmo_cli.storage.convert import import_model
from elmo_cli.storage.model_dir import read_config

Damage = Callable[[bytes], bytes]

NOT_OPTIONS = "is not the options.json of an ELMo model"
WORD_IDS = "describes a model of whole-word ids, without a char_cnn, which elmo does not read"
NO_WEIGHTS = (
    "holds no weights (no .hdf5, no TensorFlow checkpoint)\n"
    "  fix: name the weights and their options.json, or a folder or zip that holds them"
)
NAME_BOTH = "\n  fix: name the weights and their options.json"


@pytest.fixture
def model(tmp_path: Path) -> ForeignFiles:
    return write_model(tmp_path / "model", options_with(), types=types_of(6))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dim: 16", "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("", "is not JSON: Expecting value: line 1 column 1 (char 0)"),
        ("[1, 2]", NOT_OPTIONS),
        ("16", NOT_OPTIONS),
        ("{}", WORD_IDS),
        ('{"lstm": {"dim": 16, "projection_dim": 8}}', WORD_IDS),
        ('{"char_cnn": {}}', f"has no key 'lstm', so it {NOT_OPTIONS}"),
        ('{"char_cnn": {}, "lstm": []}', f"{NOT_OPTIONS}: 'list' object has no attribute 'get'"),
        ('{"bidirectional": false, "char_cnn": {}}', "describes a model of one direction, which is no ELMo"),
    ],
)
def test_a_file_that_holds_no_options_is_recognised(model: ForeignFiles, text: str, message: str) -> None:
    model.options.write_text(text)
    assert refusal(model.options, model.weights) == f"{model.options}: {message}"


def test_options_deeper_than_a_config_may_be_are_refused(model: ForeignFiles, tmp_path: Path) -> None:
    def nested(levels: int) -> dict[str, object]:
        return {} if levels == 0 else {"x": nested(levels - 1)}

    change_options(model, lambda options: options.update(extra=nested(47)))
    import_model([model.folder], tmp_path / "ours", language="en", replace=False)
    read_config(tmp_path / "ours")
    change_options(model, lambda options: options.update(extra=nested(48)))
    assert refusal(model.folder) == f"{model.options}: is nested too deeply"


def test_options_that_are_not_utf_8_are_refused(model: ForeignFiles) -> None:
    model.options.write_bytes(b'{"name": "\xff"}')
    assert refusal(model.folder).startswith(f"{model.options}: is not JSON: 'utf-8' codec can't decode byte 0xff")


KEYS = [
    ("lstm", "dim"),
    ("lstm", "projection_dim"),
    ("char_cnn", "filters"),
    ("char_cnn", "activation"),
    ("char_cnn", "embedding"),
    ("char_cnn", "max_characters_per_token"),
]


@pytest.mark.parametrize(("group", "key"), KEYS)
def test_a_key_that_is_needed_is_named(model: ForeignFiles, group: str, key: str) -> None:
    change_options(model, lambda options: options[group].pop(key))
    assert refusal(model.folder) == f"{model.options}: has no key {key!r}, so it {NOT_OPTIONS}"


@pytest.mark.parametrize(
    ("group", "key", "value", "message"),
    [
        ("char_cnn", "n_characters", 300, "char_cnn.n_characters is 300; byte characters number 261 or 262"),
        ("char_cnn", "activation", "gelu", "char_cnn.activation is 'gelu', not relu or tanh"),
        ("char_cnn", "activation", ["relu"], "char_cnn.activation is ['relu'], not relu or tanh"),
        ("char_cnn", "filters", [], "char_cnn.filters is empty"),
        ("char_cnn", "filters", [[51, 4]], "a filter of width 51 is wider than a token"),
        ("char_cnn", "filters", [3], f"{NOT_OPTIONS}: cannot unpack non-iterable int object"),
        ("lstm", "projection_dim", 17, "lstm.projection_dim 17 is larger than cell_dim 16"),
        ("lstm", "n_layers", 0, "lstm sizes must be > 0"),
        ("lstm", "dim", None, f"{NOT_OPTIONS}: int() argument must be a string"),
        ("lstm", "cell_clip", "3", f"{NOT_OPTIONS}: '<=' not supported"),
        ("lstm", "proj_clip", float("nan"), "lstm.projection_clip is nan; leave it out for no clipping"),
    ],
)
def test_a_value_that_no_model_has_is_named(
    model: ForeignFiles, group: str, key: str, value: object, message: str
) -> None:
    change_options(model, lambda options: options[group].update({key: value}))
    assert refusal(model.folder).startswith(f"{model.options}: {message}")


@pytest.mark.parametrize("count", [4, 7])
def test_a_vocabulary_of_another_length_than_the_softmax_is_refused(model: ForeignFiles, count: int) -> None:
    vocabulary = model.folder / "vocab.txt"
    write_types(vocabulary, types_of(count))
    assert refusal(model.folder) == f"{vocabulary}: has {count} types, the softmax 6"


@pytest.mark.parametrize(
    ("types", "message"),
    [
        (["</S>", "<S>", "<UNK>", "a", "b", "c"], ":1: the vocabulary does not start with <S>, </S>, <UNK>"),
        (["<S>", "</S>", "<UNK>", "a", "b", " a\t"], ":6: 'a' stands a second time"),
    ],
)
def test_a_vocabulary_that_is_none_is_refused(model: ForeignFiles, types: list[str], message: str) -> None:
    vocabulary = model.folder / "vocab.txt"
    write_types(vocabulary, types)
    assert refusal(model.folder) == f"{vocabulary}{message}"


def test_a_vocabulary_that_is_not_utf_8_is_refused(model: ForeignFiles) -> None:
    vocabulary = model.folder / "vocab.txt"
    vocabulary.write_bytes(b"<S>\n</S>\n<UNK>\n\xe9t\xe9\n")
    assert refusal(model.folder) == f"{vocabulary}: is not UTF-8: invalid continuation byte at byte 15"


@pytest.mark.parametrize("damage", [lambda raw: raw[:-9], lambda raw: raw[:12] + b"\xff" * 20, lambda raw: b"no gzip"])
def test_a_damaged_compressed_vocabulary_is_refused(tmp_path: Path, damage: Damage) -> None:
    files = write_model(
        tmp_path / "model", options_with(), types=types_of(6), names=("options.json", "model.hdf5", "vocab.txt.gz")
    )
    vocabulary = files.folder / "vocab.txt.gz"
    vocabulary.write_bytes(damage(vocabulary.read_bytes()))
    assert refusal(files.folder).startswith(f"{vocabulary}: cannot be read: ")


def test_a_source_that_is_not_there_is_named(model: ForeignFiles) -> None:
    missing = model.folder / "nothing.zip"
    assert refusal(model.options, missing) == f"{missing}: no such file or folder\n  fix: check the name"


def test_a_folder_without_weights_is_refused(model: ForeignFiles) -> None:
    model.weights.unlink()
    assert refusal(model.folder) == f"{model.folder}: {NO_WEIGHTS}"


def test_a_folder_of_several_weights_asks_which(model: ForeignFiles) -> None:
    model.weights.rename(model.folder / "first.hdf5")
    (model.folder / "second.hdf5").touch()
    message = f"{model.folder}: holds several weights: first.hdf5, second.hdf5"
    assert refusal(model.folder) == f"{message}\n  fix: name one of them and its options.json"


def test_a_folder_without_options_is_refused(model: ForeignFiles) -> None:
    model.options.unlink()
    assert refusal(model.folder) == f"{model.folder}: has no options.json{NAME_BOTH}"


def test_a_folder_of_several_options_asks_which(model: ForeignFiles) -> None:
    (model.folder / "small_options.json").write_text("{}")
    message = f"{model.folder}: has several options: options.json, small_options.json"
    assert refusal(model.folder) == f"{message}{NAME_BOTH}"


@pytest.mark.parametrize("name", ["char.dic", "token_embedder.pkl"])
def test_elmo_for_many_langs_is_recognised(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    (tmp_path / "config.json").write_text("{}")
    assert refusal(tmp_path) == (
        f"{tmp_path}: is a model of ELMoForManyLangs, whose token encoder (characters and whole words) is another one; "
        "elmo does not read it"
    )


def test_a_saved_model_of_tensorflow_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "saved_model.pb").touch()
    assert refusal(tmp_path) == f"{tmp_path}: is a TensorFlow SavedModel (TF Hub), which elmo does not read"


def test_a_zip_without_weights_is_refused(model: ForeignFiles, tmp_path: Path) -> None:
    model.weights.rename(model.folder / "weights.txt")
    archive = zip_folder(model.folder, tmp_path / "model.zip")
    assert refusal(archive) == f"{archive}: {NO_WEIGHTS}"


def test_a_zip_of_two_models_asks_which(model: ForeignFiles, tmp_path: Path) -> None:
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as content:
        for folder in ("a", "b"):
            content.write(model.weights, f"{folder}/model.hdf5")
            content.write(model.options, f"{folder}/options.json")
    message = f"{archive}: holds several weights: model.hdf5, model.hdf5"
    assert refusal(archive) == f"{message}\n  fix: name one of them and its options.json"


def test_a_zip_of_two_vocabularies_asks_which(model: ForeignFiles, tmp_path: Path) -> None:
    archive = tmp_path / "model.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.write(model.weights, "model.hdf5")
        content.write(model.options, "options.json")
        for folder in ("a", "b"):
            content.write(model.folder / "vocab.txt", f"{folder}/vocab.txt")
    assert refusal(archive) == f"{archive}: holds several vocabularies called vocab.txt\n  fix: name one of them"


@pytest.mark.parametrize("prefix", ["../../", "{outside}/", "..\\..\\", "model/../../", "./.././"])
def test_a_zip_cannot_write_outside(
    model: ForeignFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str
) -> None:
    """Entries are taken by their bare names; those that are no part of a model are never unpacked."""
    temporary = tmp_path / "in" / "temporary"  # what leads out of it still lies under tmp_path
    temporary.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    prefix = prefix.format(outside=tmp_path)
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as content:
        # As bytes: given a file, zipfile would make the name harmless.
        content.writestr(f"{prefix}model.hdf5", model.weights.read_bytes())
        content.writestr(f"{prefix}options.json", model.options.read_bytes())
        content.writestr(f"{prefix}escaped.txt", "outside")
        content.writestr("..", "outside")
    before = set(tmp_path.rglob("*"))
    import_model([tmp_path / "model.zip"], tmp_path / "ours", language="en", replace=False)
    ours = {tmp_path / "ours" / name for name in (".", "config.json", "model.safetensors", "README.md")}
    assert set(tmp_path.rglob("*")) - before == ours


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda raw: raw[: len(raw) // 2], "File is not a zip file"),
        (lambda raw: raw[:-1], "File is not a zip file"),
        (lambda raw: raw[:200] + b"\xff" * 200 + raw[400:], ""),
        (lambda raw: raw.replace(b"PK\x03\x04", b"PK\x03\x05"), "Bad magic number for file header"),
    ],
)
def test_a_damaged_zip_is_refused(model: ForeignFiles, tmp_path: Path, damage: Damage, message: str) -> None:
    archive = zip_folder(model.folder, tmp_path / "model.zip")
    archive.write_bytes(damage(archive.read_bytes()))
    assert refusal(archive).startswith(f"{archive}: is a damaged zip: {message}")


def test_a_locked_zip_is_refused(model: ForeignFiles, tmp_path: Path) -> None:
    archive = zip_folder(model.folder, tmp_path / "model.zip")
    content = bytearray(archive.read_bytes())
    with zipfile.ZipFile(archive) as packed:
        entries = [entry.header_offset for entry in packed.infolist()]
        directory = packed.start_dir
    for at in entries:
        content[at + 6] |= 1  # the flag for encryption, before the file
    while (at := content.find(b"PK\x01\x02", directory)) >= 0:
        content[at + 8] |= 1  # and in the directory
        directory = at + 4
    archive.write_bytes(content)
    assert refusal(archive) == f"{archive}: is locked with a password\n  fix: unpack it yourself"


def test_a_zip_of_nothing_but_options_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "options.zip"
    with zipfile.ZipFile(archive, "w") as content:
        content.writestr("options.json", json.dumps(options_with()))
    assert refusal(archive) == f"{archive}: {NO_WEIGHTS}"
