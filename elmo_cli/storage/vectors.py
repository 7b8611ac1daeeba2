"""Token vectors on their way out, sentence by sentence in constant memory: npy, JSON Lines, and the table of tokens."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BufferedIOBase, UnsupportedOperation
from types import TracebackType
from typing import Any, BinaryIO, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import DType
from elmo_cli.errors import DataError, ModelError, OutputError
from elmo_cli.storage.decimals import json_array

Vectors = NDArray[np.floating[Any]]
ByteStream = BinaryIO | BufferedIOBase  # the first alone would leave out streams in memory, which have no name

_MAGIC: Final = b"\x93NUMPY\x01\x00"
_HEADER_SIZE: Final = 128  # as NumPy writes it for these shapes; a multiple of 64 lets rows be memory-mapped

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


@runtime_checkable  # the types of arguments are checked in tests
class VectorSink(Protocol):
    """Takes the vectors of one sentence after another; a context manager that finishes, or abandons on an exception."""

    def __enter__(self) -> "VectorSink": ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def write(self, head: Mapping[str, Any], vectors: Vectors) -> None:
        """Write one sentence: what is known of it, for formats that keep that, and its vectors."""

    def flush(self) -> None:
        """Hand on what has been written so far, as far as the format can."""


class NpyWriter:
    """Writes a single npy array whose number of rows is known only after the last one.

    To a file the rows go at once and the number of rows is patched into the header at the end. Until then the header
    is 128 zero bytes, so that what a killed run leaves behind is an npy file to nobody: with a count in it, the rows
    that happened to be there could pass for a whole array. A pipe, and a file opened for appending (``>>``), where
    every write lands at the end, cannot be patched; their rows wait in a temporary file (in ``$TMPDIR``) until then.

    The stream may stand anywhere in its file; it is left behind the last row, and closed by whoever opened it.

    Args:
        stream: where to.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType = "float32") -> None:
        self.rows = 0  # written so far
        self._stream = stream
        self._row_shape = row_shape
        self._dtype: DType = dtype
        self._spool: ByteStream | None = None
        self._start = 0
        if _can_be_patched(stream):
            self._start = stream.tell()
            stream.write(bytes(_HEADER_SIZE))
        else:
            with _spool_errors():
                self._spool = tempfile.TemporaryFile()

    def __enter__(self) -> "NpyWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()
        elif self._spool is not None:
            self._spool.close()

    def write(self, head: Mapping[str, Any], vectors: Vectors) -> None:
        """Write the rows of one sentence; an npy file has no room for its head."""
        self.add(vectors)

    def add(self, rows: Vectors) -> None:
        """Write rows [n, *row_shape], or a single one [*row_shape].

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary file.
        """
        single = rows.shape == self._row_shape
        if not single and rows.shape[1:] != self._row_shape:
            raise ValueError(f"rows have the shape {self._row_shape}, these are of shape {rows.shape}")
        content = finite(rows, self._dtype).astype(_descr(self._dtype), copy=False).tobytes()
        if self._spool is None:
            self._stream.write(content)
        else:
            with _spool_errors():
                self._spool.write(content)
        self.rows += 1 if single else len(rows)

    def flush(self) -> None:
        """Hand the rows on, unless they have to wait for the end; the array is not whole before `finish`."""
        if self._spool is None:
            self._stream.flush()

    def finish(self) -> None:
        """Make the array whole: write the header that says how many rows there are."""
        header = _header((self.rows, *self._row_shape), self._dtype)
        if self._spool is None:
            end = self._stream.tell()
            self._stream.seek(self._start)
            self._stream.write(header)
            self._stream.seek(end)
        else:
            with self._spool as spool:
                with _spool_errors():
                    spool.seek(0)
                self._stream.write(header)
                shutil.copyfileobj(spool, self._stream, 1 << 20)
        self._stream.flush()


class JsonlWriter:
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

    def __enter__(self) -> "JsonlWriter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish()

    def write(self, head: Mapping[str, Any], vectors: Vectors) -> None:
        """Write a line with vectors [n, dim], [n, layers, dim] or [dim]; a field of their name in the head gives way.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            DataError: the head holds a number that is not finite, for which JSON has no word.
        """
        key = "vector" if self._pooled or vectors.ndim == 1 else "vectors"
        fields = {name: value for name, value in head.items() if name != key}
        try:
            start = json.dumps(fields, ensure_ascii=False, allow_nan=False)[:-1] + (", " if fields else "")
        except ValueError as error:
            raise DataError(f"the fields of a sentence cannot be written as JSON: {error}") from error
        numbers = json_array(finite(vectors, self._dtype))
        self._stream.write(b'%b"%b": %b}\n' % (_utf8(start), key.encode(), numbers))

    def flush(self) -> None:
        """Hand on all lines written so far."""
        self._stream.flush()

    def finish(self) -> None:
        """Hand on the last lines."""
        self._stream.flush()


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
        self, sentence: int, tokens: Sequence[str], positions: Sequence[tuple[int, int | None, int | None]]
    ) -> None:
        """Write a row for each token of a sentence.

        Args:
            sentence: its number, counted from 1 by the caller.
            tokens: of the sentence.
            positions: line number (from 1), start and end of each; start and end may be None.
        """
        rows = [
            f"{line}\t{sentence}\t{number}\t{'' if start is None else start}\t{'' if end is None else end}"
            f"\t{token.translate(_ESCAPES)}\n"
            for number, (token, (line, start, end)) in enumerate(zip(tokens, positions, strict=True), start=1)
        ]
        self._stream.write(_utf8("".join(rows)))

    def write_pooled(self, line: int, sentence: int, text: str) -> None:
        """Write the one row of a pooled sentence, which has a text but no token number and no place."""
        self._stream.write(_utf8(f"{line}\t{sentence}\t\t\t\t{text.translate(_ESCAPES)}\n"))


def _utf8(text: str) -> bytes:
    r"""Return UTF-8, with an escape such as ``\ud800``, which JSON knows, for a lone surrogate."""
    return text.encode("utf-8", errors="backslashreplace")


def finite(vectors: Vectors, dtype: DType) -> Vectors:
    """Return the vectors as ``dtype``, all of them finite."""
    with np.errstate(over="ignore"):
        rounded = vectors.astype(dtype, copy=False)
    if np.isfinite(rounded).all():
        return rounded
    first = vectors[~np.isfinite(rounded)][0]
    if np.isfinite(first):
        raise ModelError(f"{first:g} does not fit into {dtype}", fix="write float32: --dtype float32")
    raise ModelError(f"a vector holds {first}", fix="use another model: the training of this one has diverged")


def _descr(dtype: DType) -> str:
    """Return NumPy's name of the little-endian type."""
    return "<f4" if dtype == "float32" else "<f2"


def _header(shape: tuple[int, ...], dtype: DType) -> bytes:
    text = f"{{'descr': '{_descr(dtype)}', 'fortran_order': False, 'shape': {shape}, }}"
    room = _HEADER_SIZE - len(_MAGIC) - 2  # two bytes hold the length of the text
    if len(text) >= room:
        raise ValueError(f"the shape {shape} does not fit into a header of {_HEADER_SIZE} bytes")
    return _MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1).encode() + b"\n"


def _can_be_patched(stream: ByteStream) -> bool:
    """Tell whether a write after a seek lands there; a file open for appending claims so, but writes at its end."""
    if not stream.seekable():
        return False
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:
        return True  # in memory
    if sys.platform == "win32":
        return True
    import fcntl

    return not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND


@contextmanager
def _spool_errors() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot keep the vectors in a temporary file: {error.strerror}",
            fix="set TMPDIR to a folder with more room, or write to a file: -o vectors.npy",
        ) from error
