"""Vectors as one npy array, streamed behind a header that is written last."""

from collections.abc import Mapping
from typing import Any, Final

from elmo_cli.config import DType
from elmo_cli.storage.late_header import ByteStream, LateHeader
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, descr_of, row_chunks

_MAGIC: Final = b"\x93NUMPY\x01\x00"
_HEADER_SIZE: Final = 128  # as NumPy writes it for these shapes; a multiple of 64 lets rows be memory-mapped


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
        self._stream = LateHeader(stream, _HEADER_SIZE)

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


def npy_header(shape: tuple[int, ...], descr: str) -> bytes:
    """Return the beginning of an npy file in C order, up to its first number: always as many bytes.

    Raises:
        ValueError: the shape does not fit into them.
    """
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    room = _HEADER_SIZE - len(_MAGIC) - 2  # two bytes hold the length of the text
    if len(text) >= room:
        raise ValueError(f"the shape {shape} does not fit into a header of {_HEADER_SIZE} bytes")
    return _MAGIC + room.to_bytes(2, "little") + text.ljust(room - 1).encode() + b"\n"
