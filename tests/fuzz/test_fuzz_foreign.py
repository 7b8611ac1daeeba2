"""Models of other tools that are damaged, or made to do harm: a model, or a refusal, and nothing beside it."""

import io
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from fuzz_targets import convert
from hypothesis import given
from hypothesis import strategies as st
from strange import examples, mutated, strange_documents
from tiny_options import TINY_OPTIONS
from twin import random_weights

from elmo_cli.errors import ElmoError, ModelError
from elmo_cli.storage.convert import import_model

TYPES = ["<S>", "</S>", "<UNK>", "boat"]
CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


@pytest.fixture
def foreign(tmp_path: Path) -> Path:
    """The folder of a sound model of bilm-tf, with little in it."""
    folder = tmp_path / "foreign"
    folder.mkdir()
    (folder / "options.json").write_text(json.dumps(TINY_OPTIONS))
    (folder / "vocab.txt").write_text("".join(f"{word}\n" for word in TYPES))
    with h5py.File(folder / "weights.hdf5", "w") as file:
        for name, value in random_weights(TINY_OPTIONS, seed=5, vocabulary_size=len(TYPES)).items():
            file.create_dataset(name, data=value.astype(np.float32))
    return folder


def refusal(*sources: Path, scratch: Path) -> str:
    with pytest.raises(ElmoError) as caught:
        import_model(sources, scratch / "converted", language="en", replace=False)
    assert not (scratch / "converted").exists()
    return str(caught.value)


def test_strange_options_are_a_shape_or_refused(foreign: Path, tmp_path: Path) -> None:
    @examples(80)
    @given(text=strange_documents(TINY_OPTIONS) | st.sampled_from(["[" * 100_000, "9" * 5000, '{"a":' * 5000, ""]))
    def check(text: str) -> None:
        (foreign / "options.json").write_text(text, encoding="utf-8", errors="replace")
        convert([foreign], tmp_path)

    check()


def test_a_mutated_vocabulary_is_one_or_refused(foreign: Path, tmp_path: Path) -> None:
    sound = (foreign / "vocab.txt").read_bytes()

    @examples(30)
    @given(data=mutated(sound), packed=st.booleans())
    def check(data: bytes, packed: bool) -> None:
        (foreign / "vocab.txt").unlink(missing_ok=True)
        (foreign / "vocab.txt.gz").unlink(missing_ok=True)
        (foreign / ("vocab.txt.gz" if packed else "vocab.txt")).write_bytes(data)
        convert([foreign], tmp_path)

    check()


def test_mutated_hdf5_is_weights_or_refused(foreign: Path) -> None:
    """In a process of its own: a fault of HDF5's library would bring down the tests."""
    count = str(examples(60).max_examples)
    script = Path(__file__).with_name("mutated_hdf5.py")
    run = subprocess.run(
        [sys.executable, script, foreign, count], capture_output=True, text=True, timeout=20 + int(count), cwd=foreign
    )
    assert run.returncode == 0, run.stdout[-2000:] + run.stderr[-3000:]


def zip_of(entries: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_a_mutated_zip_is_a_model_or_refused(foreign: Path, tmp_path: Path) -> None:
    path = tmp_path / "model.zip"
    sound = zip_of({file.name: file.read_bytes() for file in foreign.iterdir()})
    tail = len(sound) - 400  # the directory of the archive, where most of its numbers stand

    @examples(80)
    @given(end=mutated(sound[tail:]), begin=mutated(sound[:400], places=1) | st.just(sound[:400]))
    def check(end: bytes, begin: bytes) -> None:
        path.write_bytes(begin + sound[400:tail] + end)
        convert([path], tmp_path)

    check()


@pytest.mark.parametrize("before", ["../", "../../", "/", "/tmp/", "..\\", "C:\\", "a/../../", "./"])
def test_a_zip_whose_names_lead_elsewhere_writes_nothing_there(foreign: Path, tmp_path: Path, before: str) -> None:
    inside = tmp_path / "inside" / "deeper"
    inside.mkdir(parents=True)
    path = inside / "model.zip"
    path.write_bytes(zip_of({before + file.name: file.read_bytes() for file in foreign.iterdir()}))
    everything = sorted(tmp_path.rglob("*"))
    import_model([path], inside / "converted", language="en", replace=False)
    new = set(tmp_path.rglob("*")) - set(everything)
    assert all(found.is_relative_to(inside / "converted") for found in new)
    assert not Path("/tmp/options.json").exists()
    assert not Path("/options.json").exists()


def test_a_link_in_a_zip_is_no_link(foreign: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps(TINY_OPTIONS))
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(foreign / "weights.hdf5", "weights.hdf5")
        link = zipfile.ZipInfo("options.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(secret))
    path = tmp_path / "model.zip"
    path.write_bytes(packed.getvalue())
    assert "options.json: is not JSON" in refusal(path, scratch=tmp_path)


@pytest.mark.parametrize("name", ["x" * 300 + ".hdf5", "..hdf5", "a\nb.hdf5", "\x1b[31m.hdf5", ".hdf5", "-o.hdf5"])
def test_odd_names_in_a_zip_are_a_model_or_refused(foreign: Path, tmp_path: Path, name: str) -> None:
    path = tmp_path / "model.zip"
    path.write_bytes(
        zip_of({"options.json": (foreign / "options.json").read_bytes(), name: (foreign / "weights.hdf5").read_bytes()})
    )
    convert([path], tmp_path)


def test_a_zip_that_unpacks_to_far_more_than_it_is_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zip"
    path.write_bytes(zip_of({"weights.hdf5": bytes(100_000_000), "options.json": json.dumps(TINY_OPTIONS).encode()}))
    assert path.stat().st_size < 200_000
    assert "would unpack to 100 MB" in refusal(path, scratch=tmp_path)


def change(foreign: Path, name: str) -> Any:  # noqa: ANN401
    """Open the weights without one of their datasets, to put something else in its place."""
    file = h5py.File(foreign / "weights.hdf5", "r+")
    del file[name]
    return file


def test_datasets_that_lie_in_another_file_are_not_read(foreign: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.bin"
    other.write_bytes(bytes(64 * 4))
    with change(foreign, f"{CELL}/B") as file:
        file.create_dataset(f"{CELL}/B", (64,), np.float32, external=[(str(other), 0, 64 * 4)])
    assert "lies in another file" in refusal(foreign, scratch=tmp_path)


def test_virtual_datasets_are_not_read(foreign: Path, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other.create_dataset("B", data=np.zeros(64, np.float32))
    with change(foreign, f"{CELL}/B") as file:
        layout = h5py.VirtualLayout((64,), np.float32)
        layout[:] = h5py.VirtualSource(str(tmp_path / "other.h5"), "B", (64,))
        file.create_virtual_dataset(f"{CELL}/B", layout)
    assert "lies in another file" in refusal(foreign, scratch=tmp_path)


@pytest.mark.parametrize("soft", [False, True])
def test_links_to_other_files_and_places_are_not_followed(foreign: Path, tmp_path: Path, soft: bool) -> None:
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other.create_dataset("B", data=np.zeros(64, np.float32))
    with change(foreign, f"{CELL}/B") as file:
        link = h5py.SoftLink("/char_embed") if soft else h5py.ExternalLink(str(tmp_path / "other.h5"), "B")
        file[f"{CELL}/B"] = link
    assert f"{CELL}/B [64] is missing" in refusal(foreign, scratch=tmp_path)


def test_a_link_beside_the_unnumbered_cell_is_not_followed(foreign: Path, tmp_path: Path) -> None:
    options = json.loads((foreign / "options.json").read_text())
    options["lstm"].update(n_layers=1)
    (foreign / "options.json").write_text(json.dumps(options))
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other.create_dataset("B", data=np.full(64, 7.0, np.float32))
    with h5py.File(foreign / "weights.hdf5", "w") as file:
        for name, value in random_weights(options, seed=5, vocabulary_size=len(TYPES)).items():
            file.create_dataset(name.replace("/MultiRNNCell/Cell0/", "/"), data=value.astype(np.float32))
        file[f"{CELL}/B"] = h5py.ExternalLink(str(tmp_path / "other.h5"), "B")
    import_model([foreign], tmp_path / "converted", language="en", replace=False)
    from safetensors.numpy import load_file

    assert not (load_file(tmp_path / "converted" / "model.safetensors")["layers.0.bias"] == 7.0).any()


def test_a_folder_of_links_out_of_it_is_read_and_not_written_through(foreign: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    (target / "kept.txt").write_text("kept")
    (tmp_path / "converted").symlink_to(target)
    with pytest.raises(ElmoError):
        import_model([foreign], tmp_path / "converted", language="en", replace=False)
    assert os.listdir(target) == ["kept.txt"]


def test_a_vocabulary_that_unpacks_to_far_more_is_refused(foreign: Path, tmp_path: Path) -> None:
    import gzip

    (foreign / "vocab.txt").unlink()
    (foreign / "vocab.txt.gz").write_bytes(gzip.compress(b"a\n" * 50_000_000, 9))
    with pytest.raises(ModelError, match="unpacks to more than"):
        import_model([foreign], tmp_path / "converted", language="en", replace=False)
