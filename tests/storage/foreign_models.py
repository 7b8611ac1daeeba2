"""Models of bilm-tf as they lie on a disk: the twin's options and random weights in files."""

import gzip
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from tiny_options import TINY_OPTIONS
from twin import Options, Weights, random_weights

from elmo_cli.errors import ElmoError, ModelError
from elmo_cli.storage.convert import import_model

_BASE: Options = {**TINY_OPTIONS, "char_cnn": {**TINY_OPTIONS["char_cnn"], "n_characters": 262}}
# What bilm-tf's training writes beside the shape.
TRAINING_KEYS: Options = {
    "bidirectional": True,
    "dropout": 0.1,
    "all_clip_norm_val": 10.0,
    "n_epochs": 10,
    "n_train_tokens": 768648884,
    "batch_size": 128,
    "n_tokens_vocab": 12,
    "unroll_steps": 20,
    "n_negative_samples_batch": 8192,
}


def options_with(*absent: str, training: bool = False, **changes: Any) -> Options:  # noqa: ANN401
    """Return options of a tiny model with some values changed, and the keys in ``absent`` left out.

    ``training`` adds the keys that bilm-tf's training code writes.
    """
    options = deepcopy(_BASE)
    for part in options.values():
        part.update({name: value for name, value in changes.items() if name in part})
        for name in absent:
            part.pop(name, None)
    return {**options, **TRAINING_KEYS} if training else options


def types_of(size: int) -> list[str]:
    """Return a vocabulary of ``size`` word types, the three special ones among them."""
    return ["<S>", "</S>", "<UNK>", *(f"word{number}" for number in range(size - 3))]


@dataclass(frozen=True)
class ForeignFiles:
    """The files of a model in a folder."""

    folder: Path
    options: Path
    weights: Path
    vocabulary: Path | None


def write_model(
    folder: Path,
    options: Options,
    weights: Weights | None = None,
    *,
    types: Sequence[str] | None = None,
    names: tuple[str, str, str] = ("options.json", "weights.hdf5", "vocab.txt"),
    unnumbered: bool = False,
) -> ForeignFiles:
    """Write a model's files into a new folder.

    Args:
        folder: to make.
        options: as they go into options.json.
        weights: by their names in bilm-tf; None for random ones, with a softmax if there are types.
        types: of the vocabulary; None for no file.
        names: of the three files; a vocabulary whose name ends in .gz is compressed.
        unnumbered: name a single LSTM layer as bilm-tf's own dump does, without ``MultiRNNCell/Cell0``.
    """
    folder.mkdir(parents=True)
    if weights is None:
        weights = random_weights(options, seed=5, vocabulary_size=None if types is None else len(types))
    files = ForeignFiles(folder, folder / names[0], folder / names[1], None if types is None else folder / names[2])
    files.options.write_text(json.dumps(options), encoding="utf-8")
    write_datasets(files.weights, {_dumped(name, unnumbered): value for name, value in weights.items()})
    if types is not None and files.vocabulary is not None:
        write_types(files.vocabulary, types)
    return files


def _dumped(name: str, unnumbered: bool) -> str:
    return name.replace("/MultiRNNCell/Cell0/", "/") if unnumbered else name


def write_datasets(path: Path, weights: Weights) -> None:
    """Write arrays as bilm-tf's dump does: float32, contiguous, without attributes."""
    with h5py.File(path, "w") as file:
        for name, value in weights.items():
            file.create_dataset(name, data=np.asarray(value, dtype=np.float32))


def read_datasets(path: Path) -> dict[str, NDArray[Any]]:
    """Return all datasets of a file by name, in the types in which they are stored."""
    found: dict[str, NDArray[Any]] = {}

    def note(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset):
            found[name] = node[()]

    with h5py.File(path) as file:
        file.visititems(note)
    return found


def write_types(path: Path, types: Iterable[str]) -> None:
    """Write a vocabulary, one type a line; compressed if its name ends in .gz."""
    content = "".join(f"{word_type}\n" for word_type in types).encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)


def zip_folder(folder: Path, path: Path, *, inside: str = "") -> Path:
    """Pack a folder's files into a zip, under a folder of it if ``inside`` names one."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(folder.iterdir()):
            archive.write(file, f"{inside}{file.name}")
    return path


def change_options(files: ForeignFiles, change: Callable[[Options], object]) -> None:
    """Write options.json anew after a change."""
    options = json.loads(files.options.read_text(encoding="utf-8"))
    change(options)
    files.options.write_text(json.dumps(options), encoding="utf-8")


def change_datasets(files: ForeignFiles, change: Callable[[dict[str, NDArray[Any]]], object]) -> None:
    """Write the weights anew after a change."""
    datasets = read_datasets(files.weights)
    change(datasets)
    write_datasets(files.weights, datasets)


def refusal(*sources: Path, kind: type[ElmoError] = ModelError) -> str:
    """Return why a model is refused, as an error of exactly this kind.

    Neither at its target, nor on the way there, nor among the temporary files may anything have come into being.
    """
    with tempfile.TemporaryDirectory() as scratch, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(Path(scratch, "temporary")))
        Path(scratch, "temporary").mkdir()
        with pytest.raises(ElmoError) as caught:
            import_model(sources, Path(scratch, "new", "folder"), language="en", replace=False)
        assert [str(path.relative_to(scratch)) for path in Path(scratch).rglob("*")] == ["temporary"]
    assert type(caught.value) is kind
    return str(caught.value)
