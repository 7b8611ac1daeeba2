"""The model that fine-tuning starts from."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.softmax import Softmax
from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.model_dir import WEIGHTS_FILE, ModelConfig, read_config, read_vocabulary
from elmo_cli.storage.weights import load_bilm, load_language_model
from elmo_cli.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Base:
    """A model as it was stored.

    Attributes:
        folder: where it is.
        sha256: of its weights' file.
        softmax: None for a model converted without one; then there is no vocabulary either.
    """

    folder: Path
    sha256: str
    config: ModelConfig
    bilm: BiLM
    softmax: Softmax | None
    vocabulary: Vocabulary | None

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.folder.resolve().name


def load_base(folder: Path, *, expected_sha256: str | None = None) -> Base:
    """Load a model to start from, in float32.

    Args:
        folder: of the model.
        expected_sha256: of the weights a run has begun with; None where it begins now.

    Raises:
        ModelError: the model cannot be read, or is no longer the one that the run has begun with.
    """
    sha256 = weights_sha256(folder)
    if expected_sha256 not in (None, sha256):
        raise ModelError(
            "the base has changed since the run began",
            where=Place(str(folder)),
            fix="put the old one back, or start over with --force",
        )
    config = read_config(folder)
    if config.vocabulary_size is None:
        return Base(folder, sha256, config, load_bilm(folder, config), None, None)
    vocabulary = read_vocabulary(folder, config)
    model = load_language_model(folder, config)
    return Base(folder, sha256, config, model.bilm, model.softmax, vocabulary)


def weights_sha256(folder: Path) -> str:
    """Return the SHA-256 of a model's weights.

    Raises:
        ModelError: they cannot be read.
    """
    path = folder / WEIGHTS_FILE
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
