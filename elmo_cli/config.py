"""Shapes of models as frozen dataclasses, the presets, and their JSON form."""

import math
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, get_args

from elmo_cli.errors import ConfigError, ModelError

ACTIVATIONS = ("relu", "tanh")
# Order of the LSTM's gates in its weights' columns: the three sigmoids stand together, so that one call computes them.
GATES = ("input", "forget", "output", "candidate")
DType = Literal["float32", "float16"]
DTYPES: tuple[DType, ...] = ("float32", "float16")  # in which weights and vectors are stored; the arithmetic is float32
Precision = Literal["float32", "bfloat16", "float16", "int8"]
PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16", "float16", "int8")  # of the LSTMs' products while embedding
TrainingPrecision = Literal["float32", "bfloat16", "float16"]
TRAINING_PRECISIONS: tuple[TrainingPrecision, ...] = ("float32", "bfloat16", "float16")  # the same while training
Recipe = Literal["adam", "bilm-tf"]
# Far above every shape that can be trained: a file that asks for more would only fill the memory.
MOST_LAYERS = 1_000
MOST_CHARACTERS = 10_000  # ids a token
WIDEST = 1 << 24
LARGEST_CLIP = 3e38  # about the largest float32
UNROLL_STEPS = 20  # of bilm-tf: tokens of each stream a step, and what its loss is multiplied with


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise ConfigError(message)


@dataclass(frozen=True, slots=True)
class CharCNNConfig:
    """Shape of the token encoder: characters -> convolutions -> highway -> projection."""

    embedding_dim: int = 16  # of one character id
    filters: tuple[tuple[int, int], ...] = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))  # (width, count)
    activation: str = "relu"  # of the pooled convolutions; the highway's own is always relu
    highway_layers: int = 1
    max_characters: int = 50  # ids a token, its begin and end marks included; longer words are cut on bytes

    def __post_init__(self) -> None:
        widths = [width for width, _ in self.filters]
        _require(bool(self.filters), "char_cnn.filters is empty")
        _require(min(self.embedding_dim, *(n for pair in self.filters for n in pair)) > 0, "char_cnn sizes must be > 0")
        _require(max(self.embedding_dim, self.filter_count) <= WIDEST, f"char_cnn sizes must be at most {WIDEST:,}")
        _require(0 <= self.highway_layers <= MOST_LAYERS, f"char_cnn.highway_layers is {self.highway_layers}")
        _require(self.activation in ACTIVATIONS, f"char_cnn.activation is {self.activation!r}, not relu or tanh")
        _require(self.max_characters >= 3, f"char_cnn.max_characters is {self.max_characters}, at least 3 are needed")
        _require(
            self.max_characters <= MOST_CHARACTERS,
            f"char_cnn.max_characters is {self.max_characters}, at most {MOST_CHARACTERS:,} are possible",
        )
        _require(max(widths) <= self.max_characters, f"a filter of width {max(widths)} is wider than a token")

    @property
    def filter_count(self) -> int:
        """Number of filters of all widths together."""
        return sum(count for _, count in self.filters)


@dataclass(frozen=True, slots=True)
class LSTMConfig:
    """Shape of the stack of LSTMs with projection, the same for both directions."""

    cell_dim: int = 512
    projection_dim: int = 128
    layers: int = 2
    cell_clip: float | None = 3.0  # None: no clipping
    projection_clip: float | None = 3.0  # applied only where there is a projection
    skip_connections: bool = True  # from the second layer on, a layer's input is added to its output

    def __post_init__(self) -> None:
        _require(min(self.cell_dim, self.projection_dim, self.layers) > 0, "lstm sizes must be > 0")
        _require(self.cell_dim <= WIDEST, f"lstm.cell_dim is {self.cell_dim}, at most {WIDEST:,} are possible")
        _require(self.layers <= MOST_LAYERS, f"lstm.layers is {self.layers}, at most {MOST_LAYERS:,} are possible")
        _require(
            self.projection_dim <= self.cell_dim,
            f"lstm.projection_dim {self.projection_dim} is larger than cell_dim {self.cell_dim}",
        )
        for name, clip in (("cell_clip", self.cell_clip), ("projection_clip", self.projection_clip)):
            _require(clip is None or 0 < clip < LARGEST_CLIP, f"lstm.{name} is {clip}; leave it out for no clipping")

    @property
    def has_projection(self) -> bool:
        """Whether the hidden state is projected; with equal sizes it is the cell's output as it is."""
        return self.projection_dim < self.cell_dim


@dataclass(frozen=True, slots=True)
class BiLMConfig:
    """Shape of a bidirectional language model, without its softmax."""

    char_cnn: CharCNNConfig = field(default_factory=CharCNNConfig)
    lstm: LSTMConfig = field(default_factory=LSTMConfig)

    @property
    def layer_count(self) -> int:
        """Number of layers a token has: the char CNN's (0) and one for each biLSTM layer."""
        return self.lstm.layers + 1

    @property
    def vector_dim(self) -> int:
        """Width of a layer's vector: both directions side by side."""
        return 2 * self.lstm.projection_dim

    def to_json(self) -> dict[str, Any]:
        """Return plain dicts and lists that `bilm_config_from_json` reads back."""
        return asdict(self)


def bilm_config_from_json(data: dict[str, Any]) -> BiLMConfig:
    """Read a shape written by `BiLMConfig.to_json`.

    Raises:
        ModelError: a key is unknown or a value makes no sense.
    """
    try:
        cnn = dict(data["char_cnn"])
        cnn["filters"] = tuple((width, count) for width, count in cnn["filters"])
        if any(type(number) is not int for pair in cnn["filters"] for number in pair):
            raise TypeError("filters are not pairs of whole numbers")
        for kind, values in ((CharCNNConfig, cnn), (LSTMConfig, data["lstm"])):
            _check_kinds(kind, values)
        return BiLMConfig(char_cnn=CharCNNConfig(**cnn), lstm=LSTMConfig(**data["lstm"]))
    except (KeyError, TypeError, ValueError, OverflowError, ConfigError) as error:
        raise ModelError(f"the shape of the model cannot be read: {error}") from error


def _check_kinds(kind: type, values: dict[str, Any]) -> None:
    """Refuse values that are of another kind than the fields of a dataclass say.

    Raises:
        TypeError: with the name of the field.
    """
    for part in (part for part in fields(kind) if part.name in values):
        value = values[part.name]
        if part.type is int and type(value) is not int:
            raise TypeError(f"{part.name} is {value!r}, not a whole number")
        if part.type is bool and type(value) is not bool:
            raise TypeError(f"{part.name} is {value!r}, not true or false")
        if part.type is str and type(value) is not str:
            raise TypeError(f"{part.name} is {value!r}, not a name")
        if part.type == float | None and type(value) not in (int, float, type(None)):
            raise TypeError(f"{part.name} is {value!r}, not a number")
        if part.type == float | None and type(value) is int and value >= 1 << 53:
            raise TypeError(f"{part.name} is more than any number in a model can be")


_PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


def _published(cell_dim: int, projection_dim: int, highway_layers: int) -> BiLMConfig:
    """Return one of the shapes of Peters et al. (2018), with 2,048 filters."""
    return BiLMConfig(
        char_cnn=CharCNNConfig(filters=_PUBLISHED_FILTERS, highway_layers=highway_layers),
        lstm=LSTMConfig(cell_dim=cell_dim, projection_dim=projection_dim),
    )


PRESETS: dict[str, BiLMConfig] = {
    # For tests and for texts of a few hundred sentences.
    "tiny": BiLMConfig(
        char_cnn=CharCNNConfig(embedding_dim=8, filters=((1, 8), (2, 16), (3, 24))),
        lstm=LSTMConfig(cell_dim=64, projection_dim=32),
    ),
    # The default: a third of a step goes into each of char CNN, LSTMs and softmax on two CPU cores.
    "small": BiLMConfig(
        char_cnn=CharCNNConfig(filters=((1, 32), (2, 32), (3, 64), (4, 128), (5, 256))),
        lstm=LSTMConfig(cell_dim=512, projection_dim=128),
    ),
    "elmo-small": _published(1024, 128, 1),
    "elmo-medium": _published(2048, 256, 1),
    "elmo-original": _published(4096, 512, 2),
}
DEFAULT_PRESET = "small"


def preset(name: str) -> BiLMConfig:
    """Return a preset's shape by its name.

    Raises:
        ConfigError: there is no such preset.
    """
    if name not in PRESETS:
        raise ConfigError(f"no preset {name!r}", fix=f"choose one of {', '.join(PRESETS)}")
    return PRESETS[name]


@dataclass(frozen=True, slots=True)
class Limits:
    """What ends a training run, whichever comes first; None where nothing is said."""

    epochs: int | None = None
    max_steps: int | None = None
    max_time_s: float | None = None

    def applied_to(self, settings: "TrainingSettings") -> "TrainingSettings":
        """Return settings in which these limits stand, and the old ones where these are None."""
        return replace(
            settings,
            epochs=self.epochs or settings.epochs,
            max_steps=self.max_steps or settings.max_steps,
            max_time_s=self.max_time_s or settings.max_time_s,
        )


FINETUNING_RATE = 0.001  # of Adam, at its highest; a quarter of training's


@dataclass(frozen=True, slots=True)
class FinetuneSettings:
    """What fine-tuning does beyond training, and what it keeps of its base."""

    freeze: str = "none"  # parts that are not trained, as `freeze.read_frozen` takes them
    l2sp: float = 0.0  # strength of the pull back to the base's weights; 0 for none
    extend_vocab: int = 0  # word types added to the base's vocabulary, at most
    softmax_epochs: int | None = None  # of a fresh softmax, where the base has none; None: by the size of the text

    def __post_init__(self) -> None:
        _require(0 <= self.l2sp < math.inf, f"l2sp is {self.l2sp}; it must be at least 0 and finite")
        _require(self.extend_vocab >= 0, f"extend_vocab is {self.extend_vocab}; it must be at least 0")
        _require(self.softmax_epochs is None or self.softmax_epochs > 0, f"softmax_epochs is {self.softmax_epochs}")


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How a biLM is trained. Every default holds from 20 sentences to hundreds of millions of tokens."""

    preset: str = DEFAULT_PRESET
    epochs: int | None = None  # None: by the size of the text
    max_steps: int | None = None
    max_time_s: float | None = None  # seconds of training, over all resumed parts
    # Of one process's part of a step, sentence markers included. None: a hundredth of the text, 128 to 1024; with
    # `stream` 2,560.
    batch_tokens: int | None = None
    accumulate: int = 1  # parts of a step that a process computes one after the other
    processes: int = 1  # that the run began with; with others it goes on in the same steps
    recipe: Recipe = "adam"
    stream: bool = False  # read the text as endless streams and carry the state on
    precision: TrainingPrecision = "float32"  # of the products of char CNN and LSTMs
    learning_rate: float = 0.004  # of the optimizer, at its highest
    warmup_steps: int = 100
    dropout: float = 0.1  # at the places of bilm-tf
    clip_norm: float = 1.0  # of the gradient of the mean loss
    negatives: int = 1024  # a direction and step, where the softmax is sampled
    sampled_above: int = 10_000  # word types; smaller vocabularies use the full softmax
    vocab_size: int = 50_000  # word types at most, the special ones not counted
    min_count: int | None = None  # None: 2, or 1 for less than 10,000 tokens
    max_sentence_tokens: int = 250  # longer sentences are cut into pieces
    seed: int = 1
    checkpoint_s: float = 300.0  # seconds between checkpoints
    weights_dtype: str = "float32"  # of the model's file

    def __post_init__(self) -> None:
        preset(self.preset)
        counts = ("epochs", "max_steps", "batch_tokens", "negatives", "vocab_size", "min_count")
        for name in (*counts, "max_time_s", "accumulate", "processes"):
            value = getattr(self, name)
            _require(value is None or value > 0, f"{name} is {value}; it must be more than 0")
        _require(self.max_sentence_tokens > 0, f"max_sentence_tokens is {self.max_sentence_tokens}")
        _require(
            0 < self.learning_rate < math.inf,
            f"learning_rate is {self.learning_rate}; it must be more than 0 and finite",
        )
        _require(0 <= self.dropout < 1, f"dropout is {self.dropout}; it must be at least 0 and less than 1")
        _require(self.clip_norm > 0, f"clip_norm is {self.clip_norm}; it must be more than 0")
        _require(self.weights_dtype in DTYPES, f"weights_dtype is {self.weights_dtype!r}, not {' or '.join(DTYPES)}")
        _require(self.recipe in get_args(Recipe), f"recipe is {self.recipe!r}, not {' or '.join(get_args(Recipe))}")
        _require(self.precision in TRAINING_PRECISIONS, f"precision is {self.precision!r}, not one of training")
        _require(
            not self.stream or self.accumulate == self.processes == 1,
            "streams are read by one process, a whole step at once",
        )

    @property
    def gradient_factor(self) -> float:
        """What the mean loss is multiplied with for its gradient; bilm-tf adds up the steps of its windows."""
        return float(UNROLL_STEPS) if self.recipe == "bilm-tf" else 1.0


RECIPES: dict[str, TrainingSettings] = {
    "adam": TrainingSettings(),
    # bin/train_elmo.py of bilm-tf.
    "bilm-tf": TrainingSettings(
        recipe="bilm-tf", learning_rate=0.2, warmup_steps=0, clip_norm=10.0, negatives=8192, dropout=0.1
    ),
}
