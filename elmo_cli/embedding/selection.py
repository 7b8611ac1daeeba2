"""Which layers and which tokens of a sentence leave the embedder: the choice itself, which needs no torch."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from elmo_cli.errors import ConfigError
from elmo_cli.storage.mix_file import MixWeights

Pooling = Literal["mean", "max", "first", "last", "mean-max"]
POOLS: tuple[str, ...] = ("none", *get_args(Pooling))


@dataclass(frozen=True, slots=True)
class LayerChoice:
    """What is taken of the layers of a token.

    Attributes:
        indices: layers that leave side by side; None for one vector a token made of all of them.
        mix: how that vector is made; None for the average.
    """

    indices: tuple[int, ...] | None
    mix: MixWeights | None = None

    def row_shape(self, vector_dim: int) -> tuple[int, ...]:
        """Return the shape of a token's output: [dim], or [layers, dim] for several layers."""
        if self.indices is None or len(self.indices) == 1:
            return (vector_dim,)
        return (len(self.indices), vector_dim)


def pooled_shape(row_shape: tuple[int, ...], how: str) -> tuple[int, ...]:
    """Return the shape of an output row: that of a token, twice as wide for ``mean-max``."""
    return (*row_shape[:-1], 2 * row_shape[-1]) if how == "mean-max" else row_shape


def is_punctuation(token: str) -> bool:
    """Tell whether a token has a punctuation mark or symbol and neither letter nor digit, by Unicode's categories."""
    categories = {unicodedata.category(character)[0] for character in token}
    return not categories.isdisjoint("PS") and categories.isdisjoint("LN")


def kept_tokens(tokens: Sequence[str], *, skip_punct: bool) -> Sequence[int]:
    """Return the numbers, from 0, of the tokens whose vectors are wanted."""
    if not skip_punct:
        return range(len(tokens))
    return [number for number, token in enumerate(tokens) if not is_punctuation(token)]


def check_pool(how: str) -> None:
    """Refuse what is none of `POOLS`.

    Raises:
        ConfigError: with the choices there are.
    """
    if how not in POOLS:
        raise ConfigError(f"--pool {how!r} is not known", fix=f"choose {', '.join(POOLS[:-1])} or {POOLS[-1]}")


def parse_layers(layers: str | int | Sequence[int], layer_count: int) -> LayerChoice:
    """Read ``average``, ``top``, ``all``, or layer numbers such as ``1`` or ``0,2`` (0 is the char CNN).

    Args:
        layers: as text; Python may give a number or several as what they are.
        layer_count: of the model.

    Raises:
        TypeError: ``layers`` is neither text nor numbers.
        ConfigError: the text is none of these, or the model has no such layer.
    """
    text = _as_text(layers)
    if text == "average":
        return LayerChoice(None)
    if text == "top":
        return LayerChoice((layer_count - 1,))
    if text == "all":
        return LayerChoice(tuple(range(layer_count)))
    try:
        indices = tuple(int(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(
            f"--layers {text!r} is not understood", fix="choose average, top, all, or numbers such as 0,2"
        ) from error
    for place, index in enumerate(indices):
        if index in indices[:place]:
            raise ConfigError(f"--layers {text!r} names layer {index} twice", fix="name each layer once")
        if not 0 <= index < layer_count:
            raise ConfigError(
                f"--layers {text!r}: the model has no layer {index}, but layers 0 to {layer_count - 1}",
                fix="choose average, top, all, or numbers such as 0,2",
            )
    return LayerChoice(indices)


def _as_text(layers: str | int | Sequence[int]) -> str:
    if isinstance(layers, str):
        return layers
    numbers = [layers] if isinstance(layers, int) else layers
    if isinstance(numbers, Sequence) and all(isinstance(number, int) for number in numbers):
        return ",".join(map(str, numbers))
    raise TypeError(f"layers is {layers!r}; give average, top, all, or numbers such as [0, 2]")
