"""`elmo mix apply`: stored layers to one vector a token, in pieces, however large the array is."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_cli.embedding.pooling import mix_layers
from elmo_cli.errors import DataError, Place
from elmo_cli.storage.late_header import ByteStream
from elmo_cli.storage.mix_file import MixWeights
from elmo_cli.text.corpus import NPY_ERRORS

_PIECE_BYTES: Final = 1 << 24  # of layers in memory at once
_FIX: Final = "name an array [tokens, layers, dim] of `elmo embed --layers all`"


@dataclass(frozen=True, slots=True)
class LayerRows:
    """An array of layers that is read piece by piece.

    Attributes:
        name: for messages.
        shape: [tokens, layers, dim].
        pieces: of rows, in order.
    """

    name: str
    shape: tuple[int, int, int]
    pieces: Iterator[NDArray[Any]]


def file_rows(path: str) -> LayerRows:
    """Return the array of an npy file, which is mapped into memory.

    Raises:
        DataError: the file is missing, no npy file, cut off, or no array of layers.
    """
    place = Place(path)
    try:
        with _npy_errors(place):
            array = np.load(path, mmap_mode="r")
    except OSError as error:
        reason = error.strerror or str(error)
        raise DataError(reason[:1].lower() + reason[1:], where=place, fix="check the name") from error
    if not isinstance(array, np.ndarray):
        raise DataError("holds several arrays (npz)", where=place, fix=_FIX)
    shape = _checked_shape(array.shape, array.dtype, place)
    step = _piece_rows(shape, array.dtype)
    pieces = (np.asarray(array[start : start + step]) for start in range(0, shape[0], step))
    return LayerRows(path, shape, pieces)


def stream_rows(stream: ByteStream, name: str) -> LayerRows:
    """Return the array that a pipe brings in npy form.

    Raises:
        DataError: it is no npy stream or no array of layers; while it is read, that it ends early.
    """
    place = Place(name)
    with _npy_errors(place):
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        found, by_columns, dtype = read(stream)
    shape = _checked_shape(found, dtype, place)
    if by_columns and sum(size > 1 for size in shape) > 1:  # else both orders are one
        raise DataError("the array is in Fortran order", where=place, fix="name it as a file in place of a pipe")
    return LayerRows(name, shape, _pieces_of_stream(stream, shape, dtype, place))


def _pieces_of_stream(
    stream: ByteStream, shape: tuple[int, int, int], dtype: "np.dtype[Any]", place: Place
) -> Iterator[NDArray[Any]]:
    row_size = shape[1] * shape[2] * dtype.itemsize
    step = _piece_rows(shape, dtype)
    for start in range(0, shape[0], step):
        rows = min(step, shape[0] - start)
        content = stream.read(rows * row_size)
        if len(content) < rows * row_size:
            done = start + len(content) // row_size
            raise DataError(
                f"the array ends early: {done:,} of {shape[0]:,} rows", where=place, fix="make it again: it is cut off"
            )
        yield np.frombuffer(content, dtype=dtype).reshape(rows, *shape[1:])


@contextmanager
def _npy_errors(place: Place) -> Iterator[None]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of files from Python 2, which read all the same
            yield
    except NPY_ERRORS as error:
        raise DataError("is not a whole npy file", where=place, fix=_FIX) from error


def _checked_shape(shape: tuple[int, ...], dtype: "np.dtype[Any]", place: Place) -> tuple[int, int, int]:
    if dtype.kind != "f":
        raise DataError(f"the array holds {dtype}, not floats", where=place, fix=_FIX)
    if len(shape) != 3:
        raise DataError(f"the array has the shape {list(shape)}, not [tokens, layers, dim]", where=place, fix=_FIX)
    return shape


def _piece_rows(shape: tuple[int, int, int], dtype: "np.dtype[Any]") -> int:
    return max(1, _PIECE_BYTES // max(1, shape[1] * shape[2] * max(dtype.itemsize, 4)))


def check_shape(rows: LayerRows, layer_count: int, dim: int | None, whose: str) -> None:
    """Refuse an array that weights do not fit.

    Args:
        rows: the array.
        layer_count: number of weights.
        dim: of the model of a mix; None for weights of the command line.
        whose: weights they are, for the message.

    Raises:
        DataError: with both shapes.
    """
    _, found_layers, found_dim = rows.shape
    if found_layers == layer_count and dim in (None, found_dim):
        return
    wanted = f"{layer_count} layers" + ("" if dim is None else f" of {dim}")
    raise DataError(
        f"the array has {found_layers} layers of {found_dim} numbers, {whose} {wanted}",
        where=Place(rows.name),
        fix="choose vectors of the model that the mix was learned with, all layers of them",
    )


def mixed_pieces(rows: LayerRows, weights: MixWeights) -> Iterator[NDArray[np.float32]]:
    """Yield the mixed vectors [n, dim] of one piece of rows after the other, computed in float32.

    Raises:
        DataError: a sum is not finite.
    """
    done = 0
    for piece in rows.pieces:
        with np.errstate(over="ignore"):  # what is too large for float32 is told below
            # A copy, as torch warns of arrays that may not be written.
            layers = torch.from_numpy(np.array(piece.transpose(1, 0, 2), dtype=np.float32, order="C"))
        mixed: NDArray[np.float32] = mix_layers(layers, weights).numpy()
        wrong = np.flatnonzero(~np.isfinite(mixed).all(axis=1))
        if len(wrong):
            _refuse_row(rows.name, done + int(wrong[0]), piece[wrong[0]])
        yield mixed
        done += len(mixed)


def _refuse_row(name: str, number: int, row: NDArray[Any]) -> NoReturn:
    """Say what is wrong with a row [layers, dim] whose sum is not finite."""
    wrong = row[~np.isfinite(row)]
    message = f"row {number + 1:,} holds {wrong[0]}" if len(wrong) else f"the sum of row {number + 1:,} is too large"
    fix = "make the array again, with a sound model" if len(wrong) else "choose smaller weights, or another array"
    raise DataError(message, where=Place(name), fix=fix)
