"""How a mix is learned; what is asked for before torch is loaded."""

from dataclasses import dataclass
from typing import Final

from elmo_cli.errors import ConfigError
from elmo_cli.mixing.labelled import SENTENCE, LabelledText
from elmo_cli.mixing.metrics import SPAN_F1, metric_for

HEADS: Final = ("linear", "bilstm", "pooled")
# Of Adam. On UD EWT a linear head reached 91.0% in four epochs at 0.01, and 90.7% at 0.003; a biLSTM wants less.
RATES: Final = {"linear": 0.01, "bilstm": 0.003, "pooled": 0.01}


@dataclass(frozen=True, slots=True)
class FitSettings:
    """How long and how fast.

    Attributes:
        epochs: at most.
        patience: epochs without a better dev score after which it ends.
        learning_rate: of Adam.
        clip_norm: of the gradient.
    """

    epochs: int = 50
    patience: int = 5
    learning_rate: float = 0.01
    clip_norm: float = 5.0


@dataclass(frozen=True, slots=True)
class LearnSettings:
    """How a mix is learned.

    Attributes:
        head: ``linear``, ``bilstm`` or ``pooled``.
        strength: lambda, of the L2 penalty on w. Peters et al. (2018), section 5.1: with 0.001 the weights may vary, 1
            keeps them near the average.
        layer_norm: bring each token's vector of a layer to mean 0 and variance 1 first.
        dropout: of the mixed vectors.
        batch_tokens: about how many tokens a step; None: a hundredth of the text, 128 to 1024.
        fit: how long and how fast.
    """

    head: str
    strength: float = 0.001
    layer_norm: bool = False
    dropout: float = 0.1
    batch_tokens: int | None = None
    fit: FitSettings = FitSettings()


def choose_head(asked: str | None, text: LabelledText) -> str:
    """Return the head: as asked, or by the labels: pooled for sentences, biLSTM for spans, else linear.

    Raises:
        ConfigError: the head gives labels of another unit.
    """
    labels = [label for example in text.examples for label in example.labels]
    if asked is None:
        if text.unit == SENTENCE:
            return "pooled"
        return "bilstm" if metric_for(labels, of_tokens=True) == SPAN_F1 else "linear"
    if (asked == "pooled") != (text.unit == SENTENCE):
        fix = "choose pooled" if text.unit == SENTENCE else "choose linear or bilstm"
        raise ConfigError(f"--head {asked} does not fit: in {text.name} each {text.unit} has a label", fix=fix)
    return asked
