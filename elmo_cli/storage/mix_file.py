"""A learned mix as one JSON file: weights of the layers, what they were learned with and on, the head, and the scores.

The file holds its own sum, so that a changed or truncated one is refused; the head's tensors are a safetensors blob in
base64, and nothing is unpickled.
"""

import base64
import binascii
import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from elmo_cli.errors import ModelError, Place, damage
from elmo_cli.reporting import counted
from elmo_cli.storage.files import write_bytes_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

FORMAT: Final = 1
_SUM: Final = "sum"
_NAME_A_MIX: Final = "name a file of `elmo mix learn`"


@dataclass(frozen=True, slots=True)
class MixWeights:
    """Equation (1) of Peters et al. (2018) with its numbers: ``gamma * sum_k s_k h_k``.

    Attributes:
        s: weight of each layer, the char CNN's first; they sum to 1.
        gamma: scale of the sum.
        layer_norm: each layer's vector is brought to mean 0 and variance 1 first, token by token.
    """

    s: tuple[float, ...]
    gamma: float = 1.0
    layer_norm: bool = False


@dataclass(frozen=True, slots=True)
class EncoderIdentity:
    """By what a mix knows the encoder it was learned with.

    Attributes:
        kind: ``bilm``, or ``vectors`` for a file of static vectors.
        name: for messages: of the model's folder, or of the file.
        source: as it was named on the command line.
        fingerprint: SHA-256 of the weights, or of the file's text.
        layer_count: layers of a token.
        dim: numbers of a layer.
    """

    kind: str
    name: str
    source: str
    fingerprint: str
    layer_count: int
    dim: int

    def __str__(self) -> str:
        layers = counted(self.layer_count, "layer")
        return f"{self.name} ({layers} of {self.dim}, {self.fingerprint[:12]})"


@dataclass(frozen=True, slots=True)
class LabelTask:
    """What the labels are and where they stand.

    Attributes:
        unit: what has a label: ``token`` or ``sentence``.
        metric: the score that counts: ``accuracy`` or ``span_f1``.
        labels: all that the head can give, sorted.
        input: layout of the text it was learned on.
        column: where the token or the text stood there; None where the layout has no choice.
        label_column: where the label stood: a number, a name, or None for the layout's usual place.
        columns: of a row of CoNLL text there; 0 elsewhere.
        language: of the tokenizer, for text that does not come tokenized.
    """

    unit: str
    metric: str
    labels: tuple[str, ...]
    input: str
    column: int | None
    label_column: str | None
    columns: int
    language: str


@dataclass(frozen=True, slots=True)
class StoredHead:
    """The part that turns mixed vectors into labels.

    Attributes:
        kind: ``linear``, ``bilstm`` or ``pooled``.
        hidden_dim: of each direction of a biLSTM; 0 elsewhere.
        weights: its tensors as a safetensors file.
    """

    kind: str
    hidden_dim: int
    weights: bytes

    def tensors(self) -> "dict[str, NDArray[Any]]":
        """Return the tensors by name.

        Raises:
            ModelError: they cannot be read.
        """
        from safetensors import SafetensorError
        from safetensors.numpy import load

        try:
            found: dict[str, NDArray[Any]] = load(self.weights)
        except SafetensorError as error:
            raise ModelError(f"the head of the mix cannot be read: {error}") from error
        return found


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """Dev scores of one way to use the layers.

    Attributes:
        name: ``mix``, ``top``, ``average``, ``layer 0`` ...
        layers: that are read.
        values: of the metric that counts, one a seed.
        others: further metrics by name, one value a seed.
        s: of each seed.
        gamma: of each seed.
    """

    name: str
    layers: tuple[int, ...]
    values: tuple[float, ...]
    others: Mapping[str, tuple[float, ...]]
    s: tuple[tuple[float, ...], ...]
    gamma: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return math.fsum(self.values) / len(self.values)

    @property
    def sd(self) -> float | None:
        """Standard deviation over the seeds (n - 1); None for a single seed."""
        return deviation(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, mean and deviation included."""
        return {"name": self.name, "mean": self.mean, "sd": self.sd, **asdict(self), "others": dict(self.others)}


def deviation(values: tuple[float, ...]) -> float | None:
    """Return the standard deviation of a sample; None for less than two values."""
    if len(values) < 2:
        return None
    mean = math.fsum(values) / len(values)
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class MixFile:
    """All that a mix file says.

    Attributes:
        weights: of the layers.
        w: the numbers whose softmax they are.
        encoder: the mix was learned with.
        task: it was learned for.
        head: learned together with it.
        seeds: of the runs, in the order of the scores' values.
        kept: the seed whose weights and head these are.
        scores: on the dev text.
        settings: of the learning.
        data: what was learned on.
    """

    weights: MixWeights
    w: tuple[float, ...]
    encoder: EncoderIdentity
    task: LabelTask
    head: StoredHead
    seeds: tuple[int, ...]
    kept: int
    scores: tuple[ScoreRow, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)
    data: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return everything but the head's tensors, as ``--json`` prints it."""
        return {
            "format": FORMAT,
            "s": list(self.weights.s),
            "gamma": self.weights.gamma,
            "w": list(self.w),
            "layer_norm": self.weights.layer_norm,
            "encoder": asdict(self.encoder),
            "task": asdict(self.task),
            "seeds": list(self.seeds),
            "kept": self.kept,
            "scores": [row.to_json() for row in self.scores],
            "settings": dict(self.settings),
            "data": dict(self.data),
            "head": {"kind": self.head.kind, "hidden_dim": self.head.hidden_dim},
        }


def write_mix(path: Path, mix: MixFile) -> None:
    """Write a mix; the same mix gives the same bytes."""
    data = mix.to_json()
    data["head"]["weights"] = base64.b64encode(mix.head.weights).decode("ascii")
    data[_SUM] = _sum_of(data)
    text = json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_bytes_whole(path, text.encode("utf-8", errors="surrogatepass"))


def read_mix(path: Path) -> MixFile:
    """Read a mix.

    Raises:
        ModelError: the file cannot be read, is no mix, of a later format, or not as it was written.
    """
    place = Place(str(path))
    again = "learn it again: elmo mix learn"
    try:
        content = path.read_bytes()
        if content.strip()[:1] not in (b"", b"{", b"["):  # an empty file may be a mix that was cut off
            raise ModelError("is not a mix file", where=place, fix=_NAME_A_MIX)
        data = json.loads(content.decode("utf-8", errors="surrogatepass"))
        if not isinstance(data, dict) or not isinstance(data.get("format"), int) or "s" not in data:
            raise ModelError("is not a mix of elmo", where=place, fix=_NAME_A_MIX)
        if data["format"] > FORMAT:
            message = f"has format {data['format']}; this version reads up to {FORMAT}"
            raise ModelError(message, where=place, fix="install a newer elmo-cli")
        if data.pop(_SUM, None) != _sum_of(data):
            raise ModelError("is not as it was written: its sum differs", where=place, fix=again)
        return _from_json(data)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=place) from error
    except ModelError as error:
        raise ModelError(error.message, where=place, fix=error.fix) from error
    except json.JSONDecodeError as error:
        message = f"is damaged: not JSON at line {error.lineno}, perhaps cut off"
        raise ModelError(message, where=place, fix=again) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ModelError(f"is damaged: {damage(error)}", where=place, fix=again) from error


def _sum_of(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _from_json(data: dict[str, Any]) -> MixFile:
    encoder = EncoderIdentity(**data["encoder"])
    weights = MixWeights(tuple(map(float, data["s"])), float(data["gamma"]), bool(data["layer_norm"]))
    if len(weights.s) != encoder.layer_count or not all(map(math.isfinite, (*weights.s, weights.gamma))):
        raise ValueError(f"s is {data['s']!r} for {encoder.layer_count} layers, gamma {data['gamma']!r}")
    try:
        blob = base64.b64decode(data["head"]["weights"], validate=True)
    except binascii.Error as error:
        raise ValueError(f"the head's weights are not base64: {error}") from error
    return MixFile(
        weights=weights,
        w=tuple(map(float, data["w"])),
        encoder=encoder,
        task=LabelTask(**{**data["task"], "labels": tuple(map(str, data["task"]["labels"]))}),
        head=StoredHead(str(data["head"]["kind"]), int(data["head"]["hidden_dim"]), blob),
        seeds=tuple(map(int, data["seeds"])),
        kept=int(data["kept"]),
        scores=tuple(map(_score_row, data["scores"])),
        settings=dict(data["settings"]),
        data=dict(data["data"]),
    )


def _score_row(data: dict[str, Any]) -> ScoreRow:
    return ScoreRow(
        name=str(data["name"]),
        layers=tuple(map(int, data["layers"])),
        values=tuple(map(float, data["values"])),
        others={name: tuple(map(float, values)) for name, values in data["others"].items()},
        s=tuple(tuple(map(float, s)) for s in data["s"]),
        gamma=tuple(map(float, data["gamma"])),
    )
