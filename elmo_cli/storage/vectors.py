"""Token vectors on their way out, sentence by sentence in constant memory: npy, JSON Lines, and the table of tokens."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import DType
from elmo_cli.errors import DataError, ModelError
from elmo_cli.storage.decimals import json_array
from elmo_cli.storage.late_header import ByteStream, LateHeader
from elmo_cli.storage.tables import escaped, utf8
from elmo_cli.text.sentence import Position, RawJson

Vectors = NDArray[np.floating[Any]]
Context = TypeVar("Context", bound="Finishing")

_MAGIC: Final = b"\x93NUMPY\x01\x00"
_ROWS_AT_ONCE: Final = 4096  # converted at once: a sentence may have a million
NPY_HEADER_SIZE: Final = 128  # as NumPy writes it for these shapes; a multiple of 64 lets rows be memory-mapped


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


class NpyWriter(Finishing):
    """Writes a single npy array whose number of rows is known only after the last one, as `LateHeader` does.

    Args:
        stream: where to; closed by whoever opened it.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType = "float32") -> None:
        self.rows = 0  # written so far
        self._row_shape = row_shape
        self._dtype: DType = dtype
        self._stream = LateHeader(stream, NPY_HEADER_SIZE)

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows | None = None) -> None:
        """Write the rows of one sentence; an npy file has no room for what they are."""
        self.add(vectors)

    def add(self, rows: Vectors) -> None:
        """Write rows [n, *row_shape], or a single one [*row_shape].

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary file.
        """
        for content in row_chunks(rows, self._row_shape, self._dtype):
            self._stream.write(content)
        self.rows += 1 if rows.shape == self._row_shape else len(rows)

    def flush(self) -> None:
        """Hand the rows on, unless they have to wait for the end; the array is not whole before `finish`."""
        self._stream.flush()

    def finish(self) -> None:
        """Make the array whole: write the header that says how many rows there are."""
        self._stream.finish(npy_header((self.rows, *self._row_shape), descr_of(self._dtype)))

    def release(self) -> None:
        """Let go of the temporary file."""
        self._stream.abandon()


class JsonlWriter(Finishing):
    """Writes one JSON object a line: the fields of a sentence's head, then its ``vectors``.

    Every number reads back as exactly the one that was written. Text is UTF-8; a lone surrogate is escaped.

    Args:
        stream: where to; closed by whoever opened it.
        dtype: what the numbers are rounded to.
        pooled: the vectors of a line stand for the sentence as a whole, and the key is ``vector``. It always is for
            an array [dim].
    """

    def __init__(self, stream: ByteStream, dtype: DType = "float32", *, pooled: bool = False) -> None:
        self._stream = stream
        self._dtype: DType = dtype
        self._pooled = pooled

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows | None = None) -> None:
        """Write a line with vectors [n, dim], [n, layers, dim] or [dim]; a field of their name in the head gives way.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            DataError: the head holds a number that is not finite, for which JSON has no word.
        """
        key = "vector" if self._pooled or vectors.ndim == 1 else "vectors"
        fields = {name: value for name, value in head.items() if name != key}
        try:
            start = _json_members(fields)
        except ValueError as error:
            raise DataError(f"the fields of a sentence cannot be written as JSON: {error}") from error
        opening = b'{%b"%b": ' % (utf8(start), key.encode())
        if vectors.ndim == 1 or len(vectors) <= _ROWS_AT_ONCE:
            self._stream.write(opening + json_array(finite(vectors, self._dtype)) + b"}\n")
            return
        for part in _parts(vectors):
            finite(part, self._dtype)  # all of them before the line begins
        separator = opening + b"["
        for part in _parts(vectors):
            self._stream.write(separator + json_array(finite(part, self._dtype))[1:-1])
            separator = b","
        self._stream.write(b"]}\n")

    def flush(self) -> None:
        """Hand on all lines written so far."""
        self._stream.flush()

    def finish(self) -> None:
        """Hand on the last lines."""
        self._stream.flush()


def _json_members(fields: Mapping[str, Any]) -> str:
    """Return the members of an object, with a comma behind each; what came as JSON goes as it came."""
    parts = []
    for name, value in fields.items():
        text = value if isinstance(value, RawJson) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: {text}, ")
    return "".join(parts)


class TokenTableWriter:
    r"""Writes a table with a row for each row of an npy file: tab-separated line, sentence, token, start, end, text.

    Lines, sentences and the tokens of a sentence are counted from 1. ``start`` and ``end`` are the place of the token
    in characters of its line, from 0, ``end`` excluded; both are empty where they are not known. In ``text`` a
    backslash is written as ``\\``, tab, newline and carriage return as ``\t``, ``\n`` and ``\r``, a lone surrogate as
    ``\ud800``. Nothing is ever quoted: read it with ``quoting=csv.QUOTE_NONE`` or, in R, ``quote=""``.

    Args:
        stream: where to; closed by whoever opened it.
    """

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        stream.write(b"line\tsentence\ttoken\tstart\tend\ttext\n")

    def write(
        self,
        sentence: int,
        tokens: Sequence[str],
        positions: Sequence[Position],
        numbers: Sequence[int] | None = None,
    ) -> None:
        """Write a row for each of some tokens of a sentence.

        Args:
            sentence: its number, counted from 1 by the caller.
            tokens: that have a row.
            positions: line number (from 1), start and end of each; start and end may be None.
            numbers: of the tokens, counted from 1; None for all tokens of the sentence.
        """
        rows = [
            f"{line}\t{sentence}\t{number}\t{'' if start is None else start}\t{'' if end is None else end}"
            f"\t{escaped(token)}\n"
            for number, token, (line, start, end) in zip(
                numbers or range(1, len(tokens) + 1), tokens, positions, strict=True
            )
        ]
        self._stream.write(utf8("".join(rows)))

    def write_pooled(self, line: int, sentence: int, text: str) -> None:
        """Write the one row of a pooled sentence, which has a text but no token number and no place."""
        self._stream.write(utf8(f"{line}\t{sentence}\t\t\t\t{escaped(text)}\n"))


def finite(vectors: Vectors, dtype: DType) -> Vectors:
    """Return the vectors as ``dtype``, all of them finite."""
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
    for part in _parts(rows.reshape(-1, *row_shape)):
        yield finite(part, dtype).astype(descr_of(dtype), copy=False).tobytes()


def _parts(rows: Vectors) -> Iterator[Vectors]:
    return (rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE))


def descr_of(dtype: DType) -> str:
    """Return NumPy's name of the little-endian type."""
    return "<f4" if dtype == "float32" else "<f2"


def npy_header(shape: tuple[int, ...], descr: str) -> bytes:
    """Return the first ``NPY_HEADER_SIZE`` bytes of an npy file in C order."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    room = NPY_HEADER_SIZE - len(_MAGIC) - 2  # two bytes hold the length of the text
    if len(text) >= room:
        raise ValueError(f"the shape {shape} does not fit into a header of {NPY_HEADER_SIZE} bytes")
    return _MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1).encode() + b"\n"
