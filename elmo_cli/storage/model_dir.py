"""A model as a folder: ``config.json``, ``model.safetensors``, ``vocab.txt`` and a card.

The weights are never unpickled and are read by name, so embedding does not touch the softmax. A folder is checked
against its config when it is opened: a missing, unknown or misshapen tensor is named.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_cli.config import BiLMConfig, bilm_config_from_json
from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.files import whole_file, write_text_whole
from elmo_cli.storage.registry import CONFIG_FILE
from elmo_cli.text.vocabulary import Vocabulary, vocabulary_from_text, vocabulary_to_text

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

    from elmo_cli.bilm.bilm import BiLM
    from elmo_cli.bilm.language_model import LanguageModel

FORMAT = 1
WEIGHTS_FILE = "model.safetensors"
VOCABULARY_FILE = "vocab.txt"
CARD_FILE = "README.md"


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """What ``config.json`` says.

    Attributes:
        bilm: the shape.
        tokenizer: name, language and version of the tokenizer used in training; "none" for text that came tokenized.
        vocabulary_size: word types of the softmax; None for a model without one.
        provenance: where the weights come from: corpora, settings, perplexities, tool version, date, parent.
    """

    bilm: BiLMConfig
    tokenizer: dict[str, Any] = field(default_factory=dict)
    vocabulary_size: int | None = None
    provenance: dict[str, Any] = field(default_factory=dict)

    @property
    def language(self) -> str:
        """Language code of the tokenizer, English where none is recorded."""
        return str(self.tokenizer.get("language", "en"))


def write_config(folder: Path, config: ModelConfig) -> None:
    """Write ``config.json``."""
    data = {
        "format": FORMAT,
        "bilm": config.bilm.to_json(),
        "tokenizer": config.tokenizer,
        "vocabulary_size": config.vocabulary_size,
        "provenance": config.provenance,
    }
    write_text_whole(folder / CONFIG_FILE, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def read_config(folder: Path) -> ModelConfig:
    """Read ``config.json``.

    Raises:
        ModelError: it is missing, not JSON, of a later format, or describes no shape.
    """
    path = folder / CONFIG_FILE
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict) or not isinstance(data.get("format"), int):
            raise ModelError("is not the config of an elmo model", where=Place(str(path)))
        if data["format"] > FORMAT:
            raise ModelError(
                f"has format {data['format']}; this version reads up to {FORMAT}",
                where=Place(str(path)),
                fix="install a newer elmo-cli",
            )
        return ModelConfig(
            bilm=bilm_config_from_json(data["bilm"]),
            tokenizer=dict(data.get("tokenizer") or {}),
            vocabulary_size=data.get("vocabulary_size"),
            provenance=dict(data.get("provenance") or {}),
        )
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ModelError(f"is damaged: {error!r}", where=Place(str(path))) from error


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Write ``vocab.txt``."""
    write_text_whole(folder / VOCABULARY_FILE, vocabulary_to_text(vocabulary))


def read_vocabulary(folder: Path, config: ModelConfig) -> Vocabulary:
    """Read ``vocab.txt`` and check its size against the config."""
    path = folder / VOCABULARY_FILE
    try:
        vocabulary = vocabulary_from_text(path.read_bytes().decode("utf-8"), str(path))
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except UnicodeDecodeError as error:
        raise ModelError(f"is not UTF-8: {error.reason} at byte {error.start}", where=Place(str(path))) from error
    if len(vocabulary) != config.vocabulary_size:
        raise ModelError(
            f"has {len(vocabulary)} types, the model's softmax {config.vocabulary_size}", where=Place(str(path))
        )
    return vocabulary


def write_weights(folder: Path, model: "LanguageModel", dtype: str) -> None:
    """Write all weights, the softmax's among them, in ``dtype`` (float32 or float16)."""
    import torch
    from safetensors.torch import save

    # A softmax's weights stand under "softmax.", all others under the names they have in the biLM.
    tensors = {
        name.removeprefix("bilm."): tensor.detach().to("cpu", getattr(torch, dtype)).contiguous()
        for name, tensor in model.state_dict().items()
    }
    with whole_file(folder / WEIGHTS_FILE) as file:
        file.write(save(tensors, metadata={"format": "pt"}))


def load_bilm(folder: Path, config: ModelConfig) -> "BiLM":
    """Return the biLM alone, in float32, ready for inference; the softmax is never read.

    Raises:
        ModelError: the weights cannot be read or do not fit the config.
    """
    import torch

    from elmo_cli.bilm.bilm import BiLM

    with torch.device("meta"):
        bilm = BiLM(config.bilm)
    _load_into(bilm, folder, config, prefix="")
    return bilm.eval().requires_grad_(False)


def load_language_model(folder: Path, config: ModelConfig) -> "LanguageModel":
    """Return the biLM with its softmax, in float32.

    Raises:
        ModelError: the weights cannot be read, do not fit the config, or hold no softmax.
    """
    import torch

    from elmo_cli.bilm.language_model import LanguageModel

    if config.vocabulary_size is None:
        raise ModelError("the model has no softmax, so it predicts no words", where=Place(str(folder)))
    with torch.device("meta"):
        model = LanguageModel(config.bilm, config.vocabulary_size)
    _load_into(model, folder, config, prefix="bilm.")
    return model.eval()


def _load_into(module: "Module", folder: Path, config: ModelConfig, *, prefix: str) -> None:
    """Replace a module's meta tensors by those of the weights file, after checking names and shapes."""
    path = folder / WEIGHTS_FILE
    wanted = {name.removeprefix(prefix): (name, tuple(tensor.shape)) for name, tensor in module.state_dict().items()}
    with _open_weights(path) as weights:
        found = {name: tuple(weights.get_slice(name).get_shape()) for name in weights.keys()}
        for name, (_, shape) in wanted.items():
            if name not in found:
                raise ModelError(f"tensor {name} {list(shape)} is missing", where=Place(str(path)))
            if found[name] != shape:
                raise ModelError(
                    f"tensor {name} is {list(found[name])}, the config asks for {list(shape)}", where=Place(str(path))
                )
        unknown = sorted(name for name in found if name not in wanted and not name.startswith("softmax."))
        if unknown:
            raise ModelError(f"tensor {unknown[0]} is not part of such a model", where=Place(str(path)))
        state: dict[str, Tensor] = {}
        for name, (target, _) in wanted.items():
            state[target] = weights.get_tensor(name).float()
    module.load_state_dict(state, assign=True)


@contextmanager
def _open_weights(path: Path) -> Iterator[Any]:
    """Open a safetensors file by memory map."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as weights:
            yield weights
    except SafetensorError as error:
        raise ModelError(f"is not a whole safetensors file: {error}", where=Place(str(path))) from error
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=Place(str(path))) from error
