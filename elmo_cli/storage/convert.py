"""Models of bilm-tf and AllenNLP into ours and back, without changing a bit of a weight."""

import json
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.allennlp_names import Array
from elmo_cli.storage.allennlp_options import config_from_options, options_from_config
from elmo_cli.storage.allennlp_weights import (
    CheckpointWeights,
    WeightSource,
    open_hdf5_weights,
    read_weights,
    write_hdf5_weights,
)
from elmo_cli.storage.files import whole_folder, write_bytes_whole, write_text_whole
from elmo_cli.storage.foreign import ForeignModel, foreign_model, read_options, read_vocabulary_lines
from elmo_cli.storage.model_card import model_card
from elmo_cli.storage.model_dir import (
    CARD_FILE,
    VOCABULARY_FILE,
    WEIGHTS_FILE,
    ModelConfig,
    read_config,
    write_config,
    write_vocabulary,
)
from elmo_cli.storage.weights import checked_weights
from elmo_cli.text.vocabulary import Vocabulary, vocabulary_from_text

OPTIONS_FILE = "options.json"
HDF5_FILE = "weights.hdf5"


def import_model(sources: Sequence[Path], folder: Path, *, language: str, replace: bool) -> ModelConfig:
    """Convert a model of another tool into a folder of ours.

    Args:
        sources: a folder, a zip, or the files themselves.
        folder: where to.
        language: of the tokenizer for plain text, which such models do not record.
        replace: whether to replace a folder that exists.

    Raises:
        ModelError: a file is missing, damaged, of another kind, or does not belong to the others.
        OutputError: the folder exists or cannot be written.
        ConfigError: a package is missing that the format needs.
    """
    with ExitStack() as open_files:
        model = open_files.enter_context(foreign_model(sources))
        options = read_options(model.options)
        bilm = config_from_options(options, str(model.options))
        weights = open_files.enter_context(_opened(model))
        tensors, vocabulary_size = read_weights(weights, bilm)
        _refuse_bad_numbers(tensors, weights.place)
        vocabulary = None if model.vocabulary is None else _vocabulary(model.vocabulary, vocabulary_size)
    provenance = {
        "tool": f"elmo {version('elmo-cli')}",
        "created": date.today().isoformat(),
        "converted_from": [Path(source).name for source in sources],
        "options": options,
        "parent": None,
    }
    config = ModelConfig(
        bilm=bilm,
        tokenizer={"name": "none", "language": language},
        vocabulary_size=vocabulary_size,
        provenance=provenance,
    )
    with whole_folder(folder, replace=replace) as building:
        _write_tensors(building / WEIGHTS_FILE, tensors)
        if vocabulary is not None:
            write_vocabulary(building, vocabulary)
        write_config(building, config)
        write_text_whole(building / CARD_FILE, model_card(folder.resolve().name, config))
    return config


def export_model(source: Path, folder: Path, *, replace: bool) -> None:
    """Write a model of ours as ``options.json`` and ``weights.hdf5``, and ``vocab.txt`` if it has one.

    Weights are float32; a softmax stands under ``softmax/W`` and ``softmax/b``, as pytorch-fast-elmo has it.

    Raises:
        ModelError: the model cannot be read.
        OutputError: the folder exists or cannot be written.
        ConfigError: h5py is missing.
    """
    config = read_config(source)
    tensors = read_tensors(source, config)
    vocabulary = _stored_vocabulary(source)
    with whole_folder(folder, replace=replace) as building:
        options = options_from_config(config.bilm)
        write_text_whole(building / OPTIONS_FILE, json.dumps(options, indent=2) + "\n")
        write_hdf5_weights(building / HDF5_FILE, config.bilm, config.vocabulary_size, tensors)
        if vocabulary is not None:
            write_bytes_whole(building / VOCABULARY_FILE, vocabulary)


def read_tensors(folder: Path, config: ModelConfig) -> dict[str, Array]:
    """Return all tensors of a model as float32 arrays, checked against its config, without torch."""
    with checked_weights(folder, config, framework="numpy") as weights:
        return {name: weights.get_tensor(name).astype(np.float32, copy=False) for name in weights.keys()}


def _stored_vocabulary(folder: Path) -> bytes | None:
    """Return the vocabulary's file as it is, None if there is none."""
    path = folder / VOCABULARY_FILE
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error


def _write_tensors(path: Path, tensors: Mapping[str, Array]) -> None:
    from safetensors.numpy import save

    write_bytes_whole(path, save(dict(tensors), metadata={"format": "pt"}))


def _opened(model: ForeignModel) -> AbstractContextManager[WeightSource]:
    if model.weights is not None:
        return open_hdf5_weights(model.weights)
    if model.checkpoint is None:
        raise ValueError("a foreign model has weights or a checkpoint")
    return nullcontext(CheckpointWeights(model.checkpoint))


def _vocabulary(path: Path, softmax_size: int | None) -> Vocabulary | None:
    """Read a vocabulary; without a softmax it says nothing about the model and is left out."""
    if softmax_size is None:
        return None
    lines = read_vocabulary_lines(path)
    if len(lines) != softmax_size:
        raise ModelError(f"has {len(lines):,} types, the softmax {softmax_size:,}", where=Place(str(path)))
    return vocabulary_from_text("".join(f"{line}\n" for line in lines), str(path))


def _refuse_bad_numbers(tensors: Mapping[str, Array], place: Place) -> None:
    for name, array in tensors.items():
        if not np.isfinite(array).all():
            raise ModelError(f"holds numbers that are not finite, in what becomes {name}", where=place)
