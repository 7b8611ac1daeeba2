"""Our tensors and those of bilm-tf's HDF5 files: names, axes, gate orders and signs as data, used in both directions.

bilm-tf computes ``x @ W`` and stores its weights that way round; its convolutions are [1, width, in, out]; its LSTM
kernel holds the input's rows above the recurrent ones, its gates come in the order i, j, f, o, and the directions are
separate groups. Ours are [2, ...] with the direction first and the gates in the order of `config.GATES`. The highway
gate has bilm-tf's own sense in both (AllenNLP's has the opposite one), the forget bias of 1 is in neither file, and no
value is ever changed: converting there and back gives the same bits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import GATES, BiLMConfig
from elmo_cli.text.characters import CHARACTER_COUNT

Array = NDArray[np.floating[Any]]

THEIR_GATES: Final = ("input", "candidate", "forget", "output")


@dataclass(frozen=True, slots=True)
class Axes:
    """How the axes of one tensor stand in the two layouts; each function undoes the other."""

    to_ours: Callable[[Array], Array]
    to_theirs: Callable[[Array], Array]


def _reordered(gates: tuple[str, ...], wanted: tuple[str, ...]) -> Callable[[Array], Array]:
    """Return what brings blocks along the last axis, one a gate, from one order into another."""
    places = [gates.index(gate) for gate in wanted]

    def reorder(array: Array) -> Array:
        blocks = np.split(array, len(gates), axis=-1)
        return np.concatenate([blocks[place] for place in places], axis=-1)

    return reorder


SAME: Final = Axes(lambda a: a, lambda a: a)
TRANSPOSED: Final = Axes(lambda a: a.T, lambda a: a.T)
# [1, width, in, out] <-> [out, in, width]
CONVOLUTION: Final = Axes(lambda a: a[0].transpose(2, 1, 0), lambda a: a.transpose(2, 1, 0)[None])
GATED: Final = Axes(_reordered(THEIR_GATES, GATES), _reordered(GATES, THEIR_GATES))


@dataclass(frozen=True, slots=True)
class Pair:
    """One of their datasets and the part of one of our tensors that it holds.

    Attributes:
        theirs: name of the dataset.
        their_shape: its shape.
        ours: tensors it is made of, which follow each other along its axis 0 (two for an LSTM kernel).
        axes: how the axes differ.
        direction: index into axis 0 of our tensors; None where they have no such axis.
    """

    theirs: str
    their_shape: tuple[int, ...]
    ours: tuple[str, ...]
    axes: Axes = SAME
    direction: int | None = None


def lstm_group(direction: int, layer: int) -> str:
    """Return the group of a direction's and layer's weights."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell"


def pairs(config: BiLMConfig, vocabulary_size: int | None) -> Iterator[Pair]:
    """Yield all pairs of a shape; with a vocabulary, those of the softmax too (the layout of pytorch-fast-elmo)."""
    yield from _encoder_pairs(config)
    yield from _lstm_pairs(config)
    if vocabulary_size is not None:
        yield Pair("softmax/W", (vocabulary_size, config.lstm.projection_dim), ("softmax.weight",))
        yield Pair("softmax/b", (vocabulary_size,), ("softmax.bias",))


def _encoder_pairs(config: BiLMConfig) -> Iterator[Pair]:
    cnn, encoder = config.char_cnn, "token_encoder"
    size, dim = cnn.filter_count, config.lstm.projection_dim
    yield Pair("char_embed", (CHARACTER_COUNT, cnn.embedding_dim), (f"{encoder}.embedding.weight",))
    for k, (width, count) in enumerate(cnn.filters):
        name = f"{encoder}.convolutions.{k}"
        yield Pair(f"CNN/W_cnn_{k}", (1, width, cnn.embedding_dim, count), (f"{name}.weight",), CONVOLUTION)
        yield Pair(f"CNN/b_cnn_{k}", (count,), (f"{name}.bias",))
    for k in range(cnn.highway_layers):
        for theirs, ours in (("carry", "gate"), ("transform", "transform")):
            name = f"{encoder}.highways.{k}.{ours}"
            yield Pair(f"CNN_high_{k}/W_{theirs}", (size, size), (f"{name}.weight",), TRANSPOSED)
            yield Pair(f"CNN_high_{k}/b_{theirs}", (size,), (f"{name}.bias",))
    if size != dim:
        yield Pair("CNN_proj/W_proj", (size, dim), (f"{encoder}.projection.weight",), TRANSPOSED)
        yield Pair("CNN_proj/b_proj", (dim,), (f"{encoder}.projection.bias",))


def _lstm_pairs(config: BiLMConfig) -> Iterator[Pair]:
    cell, dim = config.lstm.cell_dim, config.lstm.projection_dim
    for layer in range(config.lstm.layers):
        ours = f"layers.{layer}"
        for direction in (0, 1):
            group = lstm_group(direction, layer)
            kernel = (f"{ours}.input_weight", f"{ours}.recurrent_weight")
            yield Pair(f"{group}/W_0", (2 * dim, 4 * cell), kernel, GATED, direction)
            yield Pair(f"{group}/B", (4 * cell,), (f"{ours}.bias",), GATED, direction)
            if config.lstm.has_projection:
                yield Pair(f"{group}/W_P_0", (cell, dim), (f"{ours}.projection",), SAME, direction)
