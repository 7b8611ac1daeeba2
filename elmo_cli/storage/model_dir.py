"""A model as a folder: ``config.json``, ``model.safetensors``, ``vocab.txt`` and a card.

The weights are the business of `weights`.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_cli.config import BiLMConfig, bilm_config_from_json
from elmo_cli.errors import ModelError, Place, damage
from elmo_cli.storage.files import write_text_whole
from elmo_cli.storage.fingerprints import check_sums, sums_of
from elmo_cli.storage.registry import CONFIG_FILE
from elmo_cli.text.vocabulary import Vocabulary, vocabulary_from_text, vocabulary_to_text

FORMAT = 1
DEEPEST = 50  # levels of config.json
_MOST_TYPES = 1 << 31  # of a softmax
WEIGHTS_FILE = "model.safetensors"
VOCABULARY_FILE = "vocab.txt"
CARD_FILE = "README.md"
MODEL_FILES = (CONFIG_FILE, WEIGHTS_FILE, VOCABULARY_FILE, CARD_FILE)


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
    """Write ``config.json``, after all other files: it holds the sums of weights and vocabulary."""
    sums = sums_of(folder / WEIGHTS_FILE, folder / VOCABULARY_FILE)
    data = {
        "format": FORMAT,
        "bilm": config.bilm.to_json(),
        "tokenizer": config.tokenizer,
        "vocabulary_size": config.vocabulary_size,
        "provenance": config.provenance,
        **({"sums": sums} if sums else {}),
    }
    write_text_whole(folder / CONFIG_FILE, json.dumps(data, indent=2, ensure_ascii=False) + "\n")


def read_config(folder: Path) -> ModelConfig:
    """Read ``config.json``.

    Raises:
        ModelError: it is missing, not JSON, of a later format, describes no shape, or is not of the same model as the
            weights or the vocabulary.
    """
    path = folder / CONFIG_FILE
    _refuse_device(path)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if is_deeper(data, DEEPEST):
            raise ValueError("it is nested too deeply")
        if not isinstance(data, dict) or not isinstance(data.get("format"), int):
            raise ModelError("is not the config of an elmo model", where=Place(str(path)))
        if data["format"] > FORMAT:
            raise ModelError(
                f"has format {data['format']}; this version reads up to {FORMAT}",
                where=Place(str(path)),
                fix="install a newer elmo-cli",
            )
        check_sums(dict(data.get("sums") or {}), folder / WEIGHTS_FILE, folder / VOCABULARY_FILE)
        return ModelConfig(
            bilm=_shape(data["bilm"], Place(str(path))),
            tokenizer=dict(data.get("tokenizer") or {}),
            vocabulary_size=_vocabulary_size(data.get("vocabulary_size")),
            provenance=dict(data.get("provenance") or {}),
        )
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ModelError(f"is damaged: {damage(error)}", where=Place(str(path))) from error


def _refuse_device(path: Path) -> None:
    """Refuse a folder, and what has no end: a file of a model that others made may be a link to anything."""
    if path.exists() and not path.is_file():
        raise ModelError("is no file", where=Place(str(path)))


def is_deeper(value: object, levels: int) -> bool:
    """Tell whether lists and objects stand in each other to more than some levels: who shows them goes as deep."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels < 0 or any(is_deeper(each, levels - 1) for each in inner)


def _shape(data: dict[str, Any], place: Place) -> BiLMConfig:
    try:
        return bilm_config_from_json(data)
    except ModelError as error:
        raise ModelError(error.message, where=place) from error


def _vocabulary_size(value: object) -> int | None:
    if value is None or (type(value) is int and 0 < value <= _MOST_TYPES):
        return value
    raise ValueError(f"vocabulary_size is {value!r}")


def write_vocabulary(folder: Path, vocabulary: Vocabulary) -> None:
    """Write ``vocab.txt``."""
    write_text_whole(folder / VOCABULARY_FILE, vocabulary_to_text(vocabulary))


def read_vocabulary(folder: Path, config: ModelConfig) -> Vocabulary:
    """Read ``vocab.txt`` and check its size against the config."""
    path = folder / VOCABULARY_FILE
    _refuse_device(path)
    try:
        vocabulary = vocabulary_from_text(path.read_bytes().decode("utf-8"), str(path))
    except FileNotFoundError as error:
        raise ModelError(
            f"cannot be read: {error.strerror}; it says which words the softmax predicts",
            where=Place(str(path)),
            fix=f"convert the model again with its {VOCABULARY_FILE}",
        ) from error
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except UnicodeDecodeError as error:
        raise ModelError(f"is not UTF-8: {error.reason} at byte {error.start}", where=Place(str(path))) from error
    if len(vocabulary) != config.vocabulary_size:
        raise ModelError(
            f"has {len(vocabulary)} types, the model's softmax {config.vocabulary_size}", where=Place(str(path))
        )
    return vocabulary


def require_softmax(folder: Path, config: ModelConfig) -> int:
    """Return the size of a model's softmax.

    Raises:
        ModelError: it has none, as one converted from weights made for embedding alone.
    """
    if config.vocabulary_size is None:
        raise ModelError(
            "the model has no softmax, so it predicts no words",
            where=Place(str(folder)),
            fix=f"take a model of `elmo train`, or convert it again from weights with a softmax and {VOCABULARY_FILE}",
        )
    return config.vocabulary_size
