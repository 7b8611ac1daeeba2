"""Vectors on their way out, sentence by sentence in constant memory: what the writers of all formats have in common."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import DType
from elmo_cli.errors import ModelError
from elmo_cli.text.sentence import Position

Vectors = NDArray[np.floating[Any]]
Context = TypeVar("Context", bound="Finishing")

_ROWS_AT_ONCE: Final = 4096  # converted at once: a sentence may have a million


@dataclass(frozen=True, slots=True)
class SentenceRows:
    """What the rows of a sentence's vectors are: one for each of its tokens, or a single one for all of them.

    Attributes:
        sentence: its number, counted from 1 over the whole output.
        line: in which it starts.
        text: of the sentence; its tokens, parted by spaces, where it came tokenized.
        tokens: that have a row. With ``--skip-punct`` some have none.
        numbers: of these tokens in their sentence, counted from 1.
        places: line number (from 1), start and end of each of these tokens; start and end may be None.
    """

    sentence: int
    line: int
    text: str
    tokens: Sequence[str]
    numbers: Sequence[int]
    places: Sequence[Position]


@runtime_checkable  # the types of arguments are checked in tests
class VectorSink(Protocol):
    """Takes the vectors of one sentence after another; a context manager that finishes, or abandons on an exception."""

    def __enter__(self) -> "VectorSink": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write one sentence: its fields and what its rows are, for formats that keep either, and its vectors."""

    def flush(self) -> None:
        """Hand on what has been written so far, as far as the format can."""


class Finishing:
    """A context that finishes what it writes, or abandons it on an exception, and then lets go of what it needed."""

    def __enter__(self: Context) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self.finish()
        finally:
            self.release()

    def finish(self) -> None:
        """Make the output whole."""
        raise NotImplementedError

    def release(self) -> None:
        """Let go of temporary files and the like; called once, whatever has happened."""


def finite(vectors: Vectors, dtype: DType) -> Vectors:
    """Return the vectors as ``dtype``, all of them finite.

    Raises:
        ModelError: a number is not finite, or too large for float16.
    """
    if not vectors.size:
        return vectors.astype(dtype, copy=False)
    with np.errstate(over="ignore"):
        rounded = vectors.astype(dtype, copy=False)
    if np.isfinite(rounded).all():
        return rounded
    first = vectors[~np.isfinite(rounded)][0]
    if np.isfinite(first):
        raise ModelError(f"{first:g} does not fit into {dtype}", fix="write float32: --dtype float32")
    raise ModelError(f"a vector holds {first}", fix="use another model: the training of this one has diverged")


def row_chunks(rows: Vectors, row_shape: tuple[int, ...], dtype: DType) -> Iterator[bytes]:
    """Yield rows [n, *row_shape], or a single one [*row_shape], as little-endian bytes in C order, all finite.

    Piece by piece, so that of a sentence of a million tokens no second copy is held.
    """
    if row_shape not in (rows.shape, rows.shape[1:]):
        raise ValueError(f"rows have the shape {row_shape}, these are of shape {rows.shape}")
    for part in row_parts(rows.reshape(-1, *row_shape)):
        yield finite(part, dtype).astype(descr_of(dtype), copy=False).tobytes()


def row_parts(rows: Vectors) -> Iterator[Vectors]:
    """Yield rows [n, ...] in parts of `_ROWS_AT_ONCE`."""
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))


def descr_of(dtype: DType) -> str:
    """Return NumPy's name of the little-endian type."""
    return "<f4" if dtype == "float32" else "<f2"
