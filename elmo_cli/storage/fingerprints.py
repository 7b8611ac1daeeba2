"""Sums by which a model's files know each other, so that a config is never read with another model's weights.

A model's files are replaced one after the other. A kill in between would leave a mixed folder, which may well load.
The sum of the weights stands in the header of their own file too, so that no reader has to go through all of them.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from elmo_cli.config import BiLMConfig
from elmo_cli.errors import ModelError, Place

_KEY: Final = "sha256"  # in the header's metadata: of all that comes after the header
_LENGTH_BYTES: Final = 8  # before the header of a safetensors file, little endian
_LONGEST_HEADER: Final = 100_000_000  # safetensors' own limit


def sign(content: bytes) -> tuple[bytes, memoryview]:
    """Return the content of a safetensors file in two parts to write: a header with the sum of the weights, and these.

    Args:
        content: as safetensors wrote it.
    """
    start = _LENGTH_BYTES + int.from_bytes(content[:_LENGTH_BYTES], "little")
    weights = memoryview(content)[start:]
    header = json.loads(content[_LENGTH_BYTES:start])
    header["__metadata__"] = {**header.get("__metadata__", {}), _KEY: hashlib.sha256(weights).hexdigest()}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % _LENGTH_BYTES)  # what follows stays aligned
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text, weights


def sums_of(weights: Path, vocabulary: Path) -> dict[str, str]:
    """Return the sums of a model's files by name; files that are missing or have none are left out."""
    found = {weights.name: _sum_of_weights(weights)}
    try:
        if vocabulary.is_file():  # a link to a device has no end
            found[vocabulary.name] = hashlib.sha256(vocabulary.read_bytes()).hexdigest()
    except OSError:
        pass  # a model need not have a vocabulary; where it should, whoever reads it says so
    return {name: value for name, value in found.items() if value is not None}


def fingerprint(weights: Path, shape: BiLMConfig) -> str:
    """Return by what a mix or an index knows a model again: the sum of its shape and weights.

    Raises:
        ModelError: the weights cannot be read.
    """
    try:
        found = _recorded_or_own_sum(weights)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(weights))) from error
    return hashlib.sha256(json.dumps([shape.to_json(), found], sort_keys=True).encode()).hexdigest()


def check_weights(weights: Path) -> None:
    """Read all weights and refuse them if they are not those that were written; without a recorded sum they pass.

    Raises:
        ModelError: they are others, or cannot be read.
    """
    recorded = _sum_of_weights(weights)
    try:
        changed = recorded is not None and recorded != _own_sum(weights)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(weights))) from error
    if changed:
        raise ModelError("is damaged: the weights are not as they were written", where=Place(str(weights)))


def _recorded_or_own_sum(weights: Path) -> str:
    """Return the sum of the weights, from their header or, where others have written the file, from its content."""
    return _sum_of_weights(weights) or _own_sum(weights)


def _own_sum(weights: Path) -> str:
    with weights.open("rb") as file:
        start = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        file.seek(_LENGTH_BYTES + min(start, _LONGEST_HEADER))
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_sums(recorded: Mapping[str, Any], weights: Path, vocabulary: Path) -> None:
    """Refuse a folder whose files are of different models. Files without a sum, as others write them, pass.

    Args:
        recorded: the sums that the config knows; empty in a model of another tool.
        weights: file of the weights.
        vocabulary: file of the vocabulary.

    Raises:
        ModelError: weights or vocabulary are not those of the config.
    """
    found = sums_of(weights, vocabulary)
    known = {weights.name, *recorded} & found.keys()
    for name in sorted(known):
        if found[name] != recorded.get(name):
            resume = f"elmo train --resume {shlex.quote(str(weights.parent))}"
            raise ModelError(
                f"config.json is of another model than {name}; perhaps a training was killed as it replaced one",
                where=Place(str(weights.parent)),
                fix=f"go on with: {resume}, or take a whole copy of the model",
            )


def _sum_of_weights(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
            if length > _LONGEST_HEADER:
                return None
            found = json.loads(file.read(length)).get("__metadata__", {}).get(_KEY)
    except (OSError, ValueError, AttributeError, RecursionError):
        return None  # a missing or damaged file is told when the weights are read
    return found if isinstance(found, str) else None
