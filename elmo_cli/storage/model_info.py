"""What a model's folder says of itself, read without torch: for `elmo info`."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_cli.config import LSTMConfig
from elmo_cli.reporting import counted
from elmo_cli.storage.model_dir import WEIGHTS_FILE, ModelConfig, read_config
from elmo_cli.storage.weights import checked_weights, tensor_shapes

_DTYPES = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model's shape, size and origin.

    Attributes:
        folder: where it is.
        config: what its config says.
        parameters: numbers in the biLM, the softmax's not counted.
        softmax_parameters: numbers in the softmax, 0 without one.
        dtype: of the stored weights.
        size: bytes of the weights' file.
    """

    folder: Path
    config: ModelConfig
    parameters: int
    softmax_parameters: int
    dtype: str
    size: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values under stable names."""
        bilm = self.config.bilm
        return {
            "name": self.folder.resolve().name,
            "folder": str(self.folder),
            "layers": bilm.layer_count,
            "dim": bilm.vector_dim,
            "parameters": self.parameters,
            "softmax_parameters": self.softmax_parameters,
            "vocabulary_size": self.config.vocabulary_size,
            "dtype": self.dtype,
            "bytes": self.size,
            "tokenizer": self.config.tokenizer,
            "bilm": bilm.to_json(),
            "provenance": self.config.provenance,
        }

    def rows(self) -> list[tuple[str, str]]:
        """Return the same for a person, as names and values."""
        cnn, lstm = self.config.bilm.char_cnn, self.config.bilm.lstm
        filters = " ".join(f"{count}x{width}" for width, count in cnn.filters)
        highways = counted(cnn.highway_layers, "highway layer")
        projected = f" projected to {lstm.projection_dim}" if lstm.has_projection else ""
        softmax = "none" if not self.softmax_parameters else f"{self.softmax_parameters:,} parameters"
        tokenizer = " ".join(str(value) for value in self.config.tokenizer.values())
        rows = [
            ("folder", str(self.folder)),
            ("vectors", f"{self.config.bilm.layer_count} layers of {self.config.bilm.vector_dim} numbers"),
            ("parameters", f"{self.parameters:,}"),
            ("softmax", softmax),
            ("vocabulary", f"{self.config.vocabulary_size:,} word types" if self.config.vocabulary_size else "none"),
            ("char CNN", f"filters {filters} (count x width), {cnn.activation}, {highways}"),
            ("characters", f"{cnn.max_characters} ids a token, {cnn.max_characters - 2} bytes of it"),
            ("LSTM", f"{counted(lstm.layers, 'layer')} of {lstm.cell_dim} cells{projected}"),
            ("", f"{_clips(lstm)}, skip connections {'on' if lstm.skip_connections else 'off'}"),
            ("tokenizer", tokenizer or "not recorded"),
            ("weights", f"{self.dtype}, {self.size / 1e6:,.1f} MB"),
        ]
        return rows + [(key.replace("_", " "), _short(value)) for key, value in self.config.provenance.items() if value]


def model_info(folder: Path) -> ModelInfo:
    """Read a model's config and the header of its weights.

    Raises:
        ModelError: a file is missing or damaged, or the two do not fit each other.
    """
    config = read_config(folder)
    shapes = tensor_shapes(config.bilm, config.vocabulary_size)
    with checked_weights(folder, config, framework="numpy") as weights:
        types = {weights.get_slice(name).get_dtype() for name in weights.keys()}
    sizes = {name: math.prod(shape) for name, shape in shapes.items()}
    softmax = sum(size for name, size in sizes.items() if name.startswith("softmax."))
    return ModelInfo(
        folder=folder,
        config=config,
        parameters=sum(sizes.values()) - softmax,
        softmax_parameters=softmax,
        dtype="/".join(sorted(_DTYPES[kind] for kind in types)),
        size=(folder / WEIGHTS_FILE).stat().st_size,
    )


def _clips(lstm: LSTMConfig) -> str:
    """Return what is clipped; a state without projection never is."""
    cells, states = lstm.cell_clip, lstm.projection_clip if lstm.has_projection else None
    if cells is not None and states is not None:
        return f"cells clipped at {cells}, states at {states}"
    if cells is None and states is None:
        return "nothing clipped"
    return f"states clipped at {states}" if cells is None else f"cells clipped at {cells}"


def _short(value: object) -> str:
    """Return a value of the provenance in one line, in words; `to_json` keeps it as it is."""
    if isinstance(value, dict):
        return ", ".join(
            f"{key.replace('_', ' ')} {_part(key, part)}" for key, part in value.items() if part is not None
        )
    if isinstance(value, list):
        return "; ".join(map(_short, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _part(key: str, value: object) -> str:
    if isinstance(value, str) and key == "sha256":
        return value[:12]  # tells two texts apart as well as all of it
    return f"({_short(value)})" if isinstance(value, dict | list) else _short(value)
