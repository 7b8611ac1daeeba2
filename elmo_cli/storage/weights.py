"""A model's weights as one safetensors file: never unpickled, mapped into memory, and read by name.

So embedding does not touch the softmax. The file is checked against the model's config when it is opened: a missing,
unknown or misshapen tensor is named.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from elmo_cli.config import BiLMConfig
from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.files import whole_file
from elmo_cli.storage.fingerprints import sign
from elmo_cli.storage.model_dir import WEIGHTS_FILE, ModelConfig, require_softmax
from elmo_cli.text.characters import CHARACTER_COUNT

if TYPE_CHECKING:
    from torch.nn import Module

    from elmo_cli.bilm.bilm import BiLM
    from elmo_cli.bilm.language_model import LanguageModel

_FLOATS: Final = ("F32", "F16", "BF16")  # as safetensors calls the types that weights are stored in


def tensor_shapes(config: BiLMConfig, vocabulary_size: int | None) -> dict[str, tuple[int, ...]]:
    """Return the shape of every tensor of a model by name; those of the softmax if there is a vocabulary."""
    cnn, lstm = config.char_cnn, config.lstm
    size, dim, cell = cnn.filter_count, lstm.projection_dim, lstm.cell_dim
    shapes: dict[str, tuple[int, ...]] = {"token_encoder.embedding.weight": (CHARACTER_COUNT, cnn.embedding_dim)}
    for k, (width, count) in enumerate(cnn.filters):
        shapes[f"token_encoder.convolutions.{k}.weight"] = (count, cnn.embedding_dim, width)
        shapes[f"token_encoder.convolutions.{k}.bias"] = (count,)
    for k in range(cnn.highway_layers):
        for part in ("gate", "transform"):
            shapes[f"token_encoder.highways.{k}.{part}.weight"] = (size, size)
            shapes[f"token_encoder.highways.{k}.{part}.bias"] = (size,)
    if size != dim:
        shapes["token_encoder.projection.weight"] = (dim, size)
        shapes["token_encoder.projection.bias"] = (dim,)
    for k in range(lstm.layers):
        shapes[f"layers.{k}.input_weight"] = shapes[f"layers.{k}.recurrent_weight"] = (2, dim, 4 * cell)
        shapes[f"layers.{k}.bias"] = (2, 4 * cell)
        if lstm.has_projection:
            shapes[f"layers.{k}.projection"] = (2, cell, dim)
    if vocabulary_size is not None:
        shapes["softmax.weight"], shapes["softmax.bias"] = (vocabulary_size, dim), (vocabulary_size,)
    return shapes


@contextmanager
def checked_weights(folder: Path, config: ModelConfig, *, framework: Literal["pt", "numpy"]) -> Iterator[Any]:
    """Open a model's weights by memory map, after checking the names, shapes and types of all tensors.

    Raises:
        ModelError: the file is missing, damaged, or not of this model.
    """
    from safetensors import SafetensorError, safe_open

    path = folder / WEIGHTS_FILE
    if path.exists() and not path.is_file():
        raise ModelError("is no file", where=Place(str(path)))
    try:
        with safe_open(path, framework=framework) as weights:
            _check(weights, tensor_shapes(config.bilm, config.vocabulary_size), Place(str(path)))
            yield weights
    except SafetensorError as error:
        raise ModelError(f"is not a whole safetensors file: {error}", where=Place(str(path))) from error
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror or error}", where=Place(str(path))) from error


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
        for part in sign(save(tensors, metadata={"format": "pt"})):
            file.write(part)


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

    vocabulary_size = require_softmax(folder, config)
    with torch.device("meta"):
        model = LanguageModel(config.bilm, vocabulary_size)
    _load_into(model, folder, config, prefix="bilm.")
    return model.eval()


def _load_into(module: "Module", folder: Path, config: ModelConfig, *, prefix: str) -> None:
    """Replace a module's meta tensors by those of the weights file."""
    with checked_weights(folder, config, framework="pt") as weights:
        state = {name: weights.get_tensor(name.removeprefix(prefix)).float() for name in module.state_dict()}
    module.load_state_dict(state, assign=True)


def _check(weights: Any, wanted: dict[str, tuple[int, ...]], place: Place) -> None:  # noqa: ANN401 (safetensors' own)
    slices = {name: weights.get_slice(name) for name in weights.keys()}
    for name, shape in wanted.items():
        if name not in slices:
            raise ModelError(f"tensor {name} {list(shape)} is missing", where=place)
        found = list(slices[name].get_shape())
        if found != list(shape):
            raise ModelError(f"tensor {name} is {found}, the config asks for {list(shape)}", where=place)
        if slices[name].get_dtype() not in _FLOATS:
            raise ModelError(f"tensor {name} holds {slices[name].get_dtype()}, no floating point numbers", where=place)
    unknown = sorted(slices.keys() - wanted.keys())
    if unknown:
        raise ModelError(f"tensor {unknown[0]} is not part of such a model", where=place)
