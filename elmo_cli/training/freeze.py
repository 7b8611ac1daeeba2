"""Which parts of a model fine-tuning leaves as they are."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from elmo_cli.errors import ConfigError

if TYPE_CHECKING:
    from elmo_cli.bilm.language_model import LanguageModel


@dataclass(frozen=True, slots=True)
class Frozen:
    """Parts that are not trained.

    Attributes:
        layers: 0 for the char CNN, 1 and up for the biLSTM layers.
        softmax: whether the softmax is one of them.
    """

    layers: frozenset[int]
    softmax: bool

    def apply(self, model: "LanguageModel") -> None:
        """Let the frozen weights take no gradient, and all others take one."""
        model.requires_grad_(True)
        parts = [model.bilm.token_encoder, *model.bilm.lstm_layers]
        for number in self.layers:
            parts[number].requires_grad_(False)
        if self.softmax:
            model.softmax.requires_grad_(False)


def read_frozen(text: str, lstm_layers: int) -> Frozen:
    """Read parts separated by commas: ``none``, ``encoder``, ``lstm``, ``softmax``, ``all-but-softmax``, layer numbers.

    Args:
        text: such as ``encoder,1``.
        lstm_layers: of the model.

    Raises:
        ConfigError: there is no such part, or nothing would be left to train.
    """
    lstm = frozenset(range(1, lstm_layers + 1))
    named = {"none": frozenset[int](), "encoder": frozenset({0}), "lstm": lstm, "all-but-softmax": lstm | {0}}
    known = named | {str(number): frozenset({number}) for number in range(lstm_layers + 1)}
    layers: frozenset[int] = frozenset()
    softmax = False
    for name in (part.strip() for part in text.split(",")):
        if name == "softmax":
            softmax = True
        elif name in known:
            layers |= known[name]
        else:
            raise ConfigError(
                f"--freeze {name!r} is no part of the model",
                fix=f"choose from {', '.join(named)}, softmax, and layers 0 to {lstm_layers}",
            )
    if softmax and len(layers) > lstm_layers:
        raise ConfigError("with all parts frozen there is nothing to train", fix="leave one out of --freeze")
    return Frozen(layers, softmax)
