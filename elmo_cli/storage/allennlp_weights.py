"""Weights of bilm-tf and AllenNLP, read from HDF5 (or a TensorFlow checkpoint) and written to HDF5."""

import io
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from elmo_cli.config import BiLMConfig
from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.allennlp_names import Array, Pair, pairs
from elmo_cli.storage.extras import h5py_module, tensorflow_module
from elmo_cli.storage.files import whole_file

# Zeros may be packed well, numbers of a model not; a shape alone costs nothing to write, but all of it to read.
_LARGEST_RATIO = 50
_ALWAYS_FINE = 1 << 24  # bytes

_NUMPY_FAULTS = (ValueError, TypeError)  # about what is no number

# Beside the model's variables a checkpoint holds counters, and the optimizer's accumulators under the weights' names.
_MODEL_VARIABLE = re.compile(r"lm/(char_embed|CNN|RNN_|softmax)(?!.*/Adagrad)")


@runtime_checkable  # the types of arguments are checked in tests
class WeightSource(Protocol):
    """Named arrays, each read when it is asked for."""

    place: Place

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every array by name."""

    def read(self, name: str) -> Array:
        """Return one array as float32."""


class HDF5Weights:
    """The datasets of an open HDF5 file."""

    def __init__(self, file: Any, place: Place) -> None:  # noqa: ANN401 (h5py is an extra)
        self.place = place
        self._file = file
        self._names: dict[str, str] = {}  # in the file
        self._shapes: dict[str, tuple[int, ...]] = {}
        self._size = self._stored = 0  # bytes
        file.visititems(self._note)  # links are not followed
        if self._size > _ALWAYS_FINE + _LARGEST_RATIO * self._stored:
            problem = f"has shapes for {self._size:,} bytes, of which {self._stored:,} are stored"
            raise ModelError(problem, where=place, fix="fetch or copy the file again")

    def _note(self, name: str, node: Any) -> None:  # noqa: ANN401
        if hasattr(node, "shape"):
            if node.is_virtual or node.external:
                raise ModelError(f"{name} lies in another file, which is not read", where=self.place)
            self._size += node.nbytes
            self._stored += node.id.get_storage_size()
            # One LSTM layer alone has no numbered cell in bilm-tf's files.
            known = re.sub(r"/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/", name)
            self._names[known] = name
            self._shapes[known] = tuple(node.shape or ())

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every dataset by name."""
        return self._shapes

    def read(self, name: str) -> Array:
        """Return one dataset as float32."""
        with _damage_told(self.place):
            return np.asarray(self._file[self._names[name]], dtype=np.float32)


class CheckpointWeights:
    """The variables of a TensorFlow checkpoint of bilm-tf, under the names that its HDF5 dump gives them.

    Raises:
        ModelError: the checkpoint is damaged or not whole.
        ConfigError: TensorFlow is missing.
    """

    def __init__(self, prefix: Path) -> None:
        self.place = Place(str(prefix))
        self._faults = (*_NUMPY_FAULTS, tensorflow_module().errors.OpError)
        with self._damage_told():
            self._reader = tensorflow_module().train.load_checkpoint(str(prefix))
            shapes = self._reader.get_variable_to_shape_map()
        self._names = {dumped_name(name): name for name in shapes if _MODEL_VARIABLE.match(name)}
        self._shapes = {dumped: tuple(shapes[name]) for dumped, name in self._names.items()}

    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Return the shape of every variable by its name in a dump."""
        return self._shapes

    def read(self, name: str) -> Array:
        """Return one variable as float32."""
        with self._damage_told():
            return np.asarray(self._reader.get_tensor(self._names[name]), dtype=np.float32)

    @contextmanager
    def _damage_told(self) -> Iterator[None]:
        try:
            yield
        except self._faults as error:
            problem = f"is a damaged TensorFlow checkpoint: {error}"
            raise ModelError(problem, where=self.place, fix="copy all of its files again") from error


def dumped_name(variable: str) -> str:
    """Return the dataset that bilm-tf's dump makes of a training variable.

    ``lm/RNN_0/rnn/multi_rnn_cell/cell_1/lstm_cell/kernel`` is ``RNN_0/RNN/MultiRNNCell/Cell1/LSTMCell/W_0``.
    """
    name = variable.removeprefix("lm/")
    for old, new in (
        ("/rnn/", "/RNN/"),
        ("/multi_rnn_cell/", "/MultiRNNCell/"),
        ("/cell_", "/Cell"),
        ("/lstm_cell/", "/LSTMCell/"),
        ("/projection/kernel", "/W_P_0"),
        ("LSTMCell/kernel", "LSTMCell/W_0"),
        ("LSTMCell/bias", "LSTMCell/B"),
    ):
        name = name.replace(old, new)
    return name.replace("/RNN/LSTMCell/", "/RNN/MultiRNNCell/Cell0/LSTMCell/")


@contextmanager
def open_hdf5_weights(path: Path) -> Iterator[HDF5Weights]:
    """Open a weights file.

    Raises:
        ModelError: the file is missing, not HDF5, damaged, or holds something other than weights.
    """
    h5py = h5py_module()
    place = Place(str(path))
    _refuse_other_files(path, place)
    with ExitStack() as open_files:
        with _damage_told(place):
            weights = HDF5Weights(open_files.enter_context(h5py.File(path, "r")), place)
        _refuse_other_contents(weights)
        yield weights


@contextmanager
def _damage_told(place: Place) -> Iterator[None]:
    """Turn what h5py raises about a damaged file, which is of many kinds, into a `ModelError`."""
    try:
        yield
    except (OSError, RuntimeError, KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise ModelError(f"is a damaged HDF5 file: {error}", where=place, fix="fetch or copy the file again") from error


def read_weights(source: WeightSource, config: BiLMConfig) -> tuple[dict[str, Array], int | None]:
    """Return our tensors by name, and the size of the softmax's vocabulary (None if there is no softmax).

    Raises:
        ModelError: an array is missing, misshapen, or not part of a model of this shape.
    """
    found = source.shapes()
    vocabulary_size = _vocabulary_size(found, source.place)
    wanted = list(pairs(config, vocabulary_size))
    for pair in wanted:
        if pair.theirs not in found:
            raise ModelError(f"{pair.theirs} {list(pair.their_shape)} is missing", where=source.place)
        if found[pair.theirs] != pair.their_shape:
            raise ModelError(
                f"{pair.theirs} is {list(found[pair.theirs])}, the options ask for {list(pair.their_shape)}",
                where=source.place,
                fix="name the options.json that belongs to these weights",
            )
    unknown = sorted(set(found) - {pair.theirs for pair in wanted})
    if unknown:
        raise ModelError(
            f"{unknown[0]} {list(found[unknown[0]])} is not part of the model that the options describe",
            where=source.place,
            fix="name the options.json that belongs to these weights",
        )
    tensors: dict[str, Array] = {}
    for pair in wanted:
        _put(tensors, pair, pair.axes.to_ours(source.read(pair.theirs)))
    return tensors, vocabulary_size


def _vocabulary_size(shapes: Mapping[str, tuple[int, ...]], place: Place) -> int | None:
    """Return the size of the softmax, None if there is none."""
    if not {"softmax/W", "softmax/b"} <= set(shapes):
        return None
    shape = shapes["softmax/W"]
    if shape and not shape[0]:
        raise ModelError(f"softmax/W is {list(shape)}, without any word type", where=place)
    return shape[0] if shape else 1  # a single number is refused as any wrong shape is


def theirs_from_ours(pair: Pair, tensors: Mapping[str, Array]) -> Array:
    """Return the array that one of their datasets holds."""
    parts = [tensors[name] if pair.direction is None else tensors[name][pair.direction] for name in pair.ours]
    return np.ascontiguousarray(pair.axes.to_theirs(np.concatenate(parts) if len(parts) > 1 else parts[0]))


def write_hdf5_weights(
    path: Path, config: BiLMConfig, vocabulary_size: int | None, tensors: Mapping[str, Array]
) -> None:
    """Write the datasets of a model, float32, as bilm-tf and AllenNLP read them.

    Put together in memory: HDF5's library brings the whole process down where it finds the disk full.
    """
    whole = io.BytesIO()
    with h5py_module().File(whole, "w") as file:
        for pair in pairs(config, vocabulary_size):
            file.create_dataset(pair.theirs, data=theirs_from_ours(pair, tensors).astype(np.float32, copy=False))
    with whole_file(path) as stream:
        stream.write(whole.getbuffer())


def _put(tensors: dict[str, Array], pair: Pair, values: Array) -> None:
    """Put a converted dataset where it belongs in our tensors."""
    parts = np.split(values, len(pair.ours)) if len(pair.ours) > 1 else [values]
    for name, part in zip(pair.ours, parts, strict=True):
        if pair.direction is None:
            tensors[name] = np.ascontiguousarray(part)
        else:
            tensors.setdefault(name, np.empty((2, *part.shape), dtype=np.float32))[pair.direction] = part


def _refuse_other_files(path: Path, place: Place) -> None:
    """Tell by the first bytes what a file is that is no HDF5."""
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=place) from error
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        return
    if head.startswith(b"PK\x03\x04"):
        what = "a zip archive or a PyTorch file"
    elif head[:1] == b"\x80" and head[1:2] in b"\x02\x03\x04\x05":
        what = "a Python pickle, which is never opened"
    elif head[4:9] == b"\0\0\0\0{":  # after the length of its header, which is far below 4 GB
        what = "a safetensors file"
    elif not head:
        what = "empty"
    else:
        what = "text" if all(byte in b"\t\r\n" or 32 <= byte < 127 for byte in head) else "something else"
    raise ModelError(f"is no HDF5 file of weights; it is {what}", where=place)


def _refuse_other_contents(weights: HDF5Weights) -> None:
    """Recognise HDF5 files of vectors, which are often taken for weights."""
    names = set(weights.shapes())
    if "sentence_to_index" in names or (names and all(name.isdecimal() for name in names)):
        raise ModelError("holds vectors of sentences, not weights", where=weights.place, fix="name the weights' file")
    if names == {"embedding"}:
        raise ModelError("holds vectors of word types, not weights", where=weights.place, fix="name the weights' file")
    if "embedding" in names and "char_embed" not in names:
        raise ModelError("holds a model of whole-word ids, which elmo does not read", where=weights.place)
