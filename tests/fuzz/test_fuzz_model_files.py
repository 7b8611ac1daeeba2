"""A model's files, damaged in every way: a model that works, or a refusal; never another exception."""

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from fuzz_targets import read_model, refused_or_fine
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strange import STRANGE, changed, examples, mutated, paths_of, strange_documents

from elmo_cli.errors import ModelError

SAME_FOLDER = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def config_of(model: Path) -> Any:  # noqa: ANN401
    return json.loads((model / "config.json").read_text())


def test_each_value_of_the_config_may_be_anything(model: Path) -> None:
    """Every key with each of the strange values, one after the other."""
    config = config_of(model)
    for path in paths_of(config):
        for value in STRANGE:
            (model / "config.json").write_text(json.dumps(changed(config, path, lambda _, value=value: value)))
            read_model(model)


def test_strange_configs_are_models_or_refused(model: Path) -> None:
    config = config_of(model)

    @examples(80)
    @given(text=strange_documents(config) | st.binary(max_size=60).map(lambda raw: raw.decode("latin-1")))
    def check(text: str) -> None:
        (model / "config.json").write_text(text, encoding="utf-8", errors="replace")
        read_model(model)

    check()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("[" * 100_000, id="deep list"),
        pytest.param('{"a":' * 100_000, id="deep object"),
        pytest.param('{"format": ' + "9" * 10_000 + "}", id="number of 10,000 digits"),
        pytest.param('{"format": 1, "sums": ' + "[" * 5_000 + "]" * 5_000 + "}", id="deep sums"),
        pytest.param("", id="empty"),
        pytest.param("\0" * 100, id="NUL"),
    ],
)
def test_a_config_that_is_hard_to_parse_is_damaged(model: Path, text: str) -> None:
    (model / "config.json").write_text(text)
    with pytest.raises(ModelError):
        _read_config(model)


def _read_config(model: Path) -> object:
    from elmo_cli.storage.model_dir import read_config

    return read_config(model)


def test_mutated_weights_are_weights_or_refused(model: Path) -> None:
    path = model / "model.safetensors"
    sound = path.read_bytes()
    start = 8 + int.from_bytes(sound[:8], "little")

    @examples(80)
    @given(header=mutated(sound[:start]), rest=st.just(sound[start:]) | mutated(sound[start:], places=1))
    def check(header: bytes, rest: bytes) -> None:
        path.write_bytes(header + rest)
        read_model(model)

    check()


def header_of(model: Path) -> tuple[dict[str, Any], bytes]:
    raw = (model / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    return json.loads(raw[8 : 8 + size]), raw[8 + size :]


def with_header(header: str, rest: bytes, *, size: int | None = None) -> bytes:
    raw = header.encode("utf-8", "replace")
    return struct.pack("<Q", len(raw) if size is None else size) + raw + rest


def test_headers_that_lie_are_refused_or_come_true(model: Path) -> None:
    header, rest = header_of(model)

    @examples(80)
    @given(text=strange_documents(header))
    def check(text: str) -> None:
        (model / "model.safetensors").write_bytes(with_header(text, rest))
        read_model(model)

    check()


@pytest.mark.parametrize("size", [0, 1, 2**16, 100_000_001, 2**32, 2**63 - 1, 2**63, 2**64 - 1])
def test_a_header_of_any_said_length_is_refused(model: Path, size: int) -> None:
    header, rest = header_of(model)
    (model / "model.safetensors").write_bytes(with_header(json.dumps(header), rest, size=size))
    with pytest.raises(ModelError):
        _info(model)


def _info(model: Path) -> object:
    from elmo_cli.storage.model_info import model_info

    return model_info(model)


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"data_offsets": [0, 2**62]}, id="past the end"),
        pytest.param({"data_offsets": [2**64 - 1, 0]}, id="backwards"),
        pytest.param({"data_offsets": [-4, 4]}, id="negative"),
        pytest.param({"data_offsets": [0, 4]}, id="overlapping"),
        pytest.param({"shape": [2**32, 2**32]}, id="product overflows"),
        pytest.param({"shape": [2**63, 2]}, id="product overflows to 0"),
        pytest.param({"shape": []}, id="no dimension"),
        pytest.param({"shape": [0]}, id="no element"),
        pytest.param({"dtype": "I32"}, id="whole numbers"),
        pytest.param({"dtype": "F64"}, id="other width"),
        pytest.param({"dtype": "pickle"}, id="no type"),
    ],
)
def test_an_entry_that_lies_is_refused(model: Path, entry: dict[str, Any]) -> None:
    header, rest = header_of(model)
    header["layers.0.bias"] = {**header["layers.0.bias"], **entry}
    (model / "model.safetensors").write_bytes(with_header(json.dumps(header), rest))
    with pytest.raises(ModelError):
        _info(model)


def test_a_name_that_stands_twice_is_refused_or_one_of_both(model: Path) -> None:
    header, rest = header_of(model)
    text = json.dumps(header)
    (model / "model.safetensors").write_bytes(with_header(text[:-1] + ", " + text[1:], rest))
    read_model(model)


def test_mutated_vocabularies_are_vocabularies_or_refused(model: Path) -> None:
    from elmo_cli.storage.model_dir import read_config, read_vocabulary

    path, config = model / "vocab.txt", read_config(model)
    sound = path.read_bytes()

    @examples(80)
    @given(data=mutated(sound) | st.binary(max_size=60))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        with refused_or_fine():
            assert len(read_vocabulary(model, config)) == config.vocabulary_size

    check()


@pytest.mark.parametrize("name", ["config.json", "vocab.txt", "model.safetensors"])
@pytest.mark.parametrize("target", ["/dev/zero", "."])
def test_a_file_of_a_model_that_is_a_link_to_a_device_or_folder_is_refused(model: Path, name: str, target: str) -> None:
    (model / name).unlink()
    (model / name).symlink_to(target)
    with pytest.raises(ModelError):
        _read_all(model)


def _read_all(model: Path) -> None:
    from elmo_cli.storage.model_dir import read_vocabulary
    from elmo_cli.storage.model_info import model_info

    read_vocabulary(model, model_info(model).config)
