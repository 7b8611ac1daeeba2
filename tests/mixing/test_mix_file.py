"""A mix file: read back as it was written, and refused when it is not."""

import base64
import hashlib
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import save

from elmo_cli.errors import ModelError
from elmo_cli.storage.mix_file import (
    EncoderIdentity,
    LabelTask,
    MixFile,
    MixWeights,
    ScoreRow,
    StoredHead,
    deviation,
    read_mix,
    write_mix,
)

MIX = MixFile(
    weights=MixWeights((0.25, 0.5, 0.25), 1.5, layer_norm=True),
    w=(0.0, 0.7, 0.0),
    encoder=EncoderIdentity("bilm", "tiny", "models/tiny/", "ab" * 32, 3, 8),
    task=LabelTask("token", "accuracy", ("A", "Ö"), "conll", None, None, 2, "en"),
    head=StoredHead("linear", 0, save({"output.weight": np.ones((2, 8), np.float32)})),
    seeds=(1, 2),
    kept=2,
    scores=(ScoreRow("mix", (0, 1, 2), (0.5, 0.7), {"macro_f1": (0.1, 0.2)}, ((1.0, 0.0, 0.0),) * 2, (1.0, 1.1)),),
    settings={"head": "linear"},
    data={"train": {"name": "a.conll"}},
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    write_mix(tmp_path / "a.mix.json", MIX)
    return tmp_path / "a.mix.json"


def test_a_mix_is_read_back_as_it_was_written(path: Path) -> None:
    assert read_mix(path) == MIX
    assert read_mix(path).head.tensors()["output.weight"].tolist() == np.ones((2, 8)).tolist()


def test_the_same_mix_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    write_mix(tmp_path / "b.mix.json", MIX)
    assert path.read_bytes() == (tmp_path / "b.mix.json").read_bytes()


def test_the_deviation_is_that_of_a_sample() -> None:
    assert deviation((1.0, 2.0, 4.0)) == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert deviation((1.0,)) is None


@pytest.mark.parametrize("size", [0, 1, 100, -2])
def test_a_truncated_mix_is_refused(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ModelError, match=f"{path.name}: is damaged"):
        read_mix(path)


@pytest.mark.parametrize("old", ['"gamma": 1.5', '"kept": 2', '"A"', '"kind": "linear"'])
def test_a_changed_mix_is_refused(path: Path, old: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, old[:-1] + ("9" if old[-1].isdigit() else '9"'), 1), encoding="utf-8")
    with pytest.raises(ModelError, match="is not as it was written"):
        read_mix(path)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(at=st.integers(0, 10_000), byte=st.integers(0, 255))
def test_any_other_byte_is_refused_or_changes_nothing(path: Path, at: int, byte: int) -> None:
    content = bytearray(path.read_bytes())
    content[at % len(content)] = byte
    changed = path.with_name("changed.json")
    changed.write_bytes(bytes(content))
    try:
        found = read_mix(changed)
    except ModelError:
        return
    assert found == MIX  # white space between values


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[1, 2]", "is not a mix of elmo"),
        (b'{"format": 1, "bilm": {}}', "is not a mix of elmo"),
        (b'{"format": 9, "s": []}', "has format 9; this version reads up to 1"),
        (b"\xff\xfe\x00", "is not a mix file"),
        (b"<svg></svg>", "is not a mix file"),
        (b"[" * 100_000, "is damaged"),
    ],
)
def test_what_is_no_mix_is_refused(path: Path, content: bytes, message: str) -> None:
    path.write_bytes(content)
    with pytest.raises(ModelError, match=message):
        read_mix(path)


@pytest.mark.parametrize(
    ("key", "value"),
    [("s", [0.5, 0.5]), ("s", 3), ("encoder", {}), ("task", None), ("head", {"kind": "linear"}), ("scores", [{}])],
)
def test_a_file_with_a_sound_sum_but_no_sense_is_refused(path: Path, key: str, value: object) -> None:
    data = json.loads(path.read_text(encoding="utf-8"))
    del data["sum"]
    data[key] = value
    data["sum"] = hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ModelError, match="is damaged"):
        read_mix(path)


def test_a_head_that_is_no_safetensors_is_refused() -> None:
    with pytest.raises(ModelError, match="the head of the mix cannot be read"):
        StoredHead("linear", 0, base64.b64decode("AAAA")).tensors()


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no\.json: cannot be read: No such file"):
        read_mix(tmp_path / "no.json")
