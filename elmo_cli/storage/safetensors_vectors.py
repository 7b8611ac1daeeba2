"""Vectors as safetensors: the vectors and what each row of them is, streamed behind a header that is written last."""

import json
from collections.abc import Mapping
from typing import Any, Final

from elmo_cli.config import DType
from elmo_cli.storage.late_header import ByteStream, LateHeader
from elmo_cli.storage.row_columns import RowColumns
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, row_chunks

_HEADER_SIZE: Final = 2048  # bytes, with the eight of its length; the rest is spaces, as the format allows
_ALIGNMENT: Final = 8  # bytes: readers that map the file take an int64 from nowhere else
_DTYPES: Final = {"float32": "F32", "float16": "F16", "<i8": "I64", "|u1": "U8"}


class SafetensorsWriter(Finishing):
    """Writes the tensor ``vectors`` and the tensors of `RowColumns`.

    Args:
        stream: where to; into a pipe all waits for the end in a temporary file.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
        pooled: one vector a sentence instead of its tokens'.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType, *, pooled: bool = False) -> None:
        self._row_shape = row_shape
        self._dtype: DType = dtype
        self._size = 0  # bytes of tensors written
        self._columns = RowColumns(pooled=pooled)
        self._stream = LateHeader(stream, _HEADER_SIZE)
        self._header: dict[str, Any] = {"__metadata__": {"rows": "sentences" if pooled else "tokens"}}

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write one sentence.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary files.
        """
        for content in row_chunks(vectors, self._row_shape, self._dtype):
            self._stream.write(content)
            self._size += len(content)
        self._columns.add(rows)

    def flush(self) -> None:
        """Hand the rows on, unless they have to wait for the end; the file is not whole before that."""
        self._stream.flush()

    def finish(self) -> None:
        """Write the columns and, in its place, the header."""
        self._describe("vectors", _DTYPES[self._dtype], [self._columns.count, *self._row_shape], self._size)
        padding = -self._size % _ALIGNMENT
        if padding:  # an odd number of float16 rows of a width that is no multiple of 4
            self._stream.write(bytes(padding))
            self._describe("padding", "U8", [padding], padding)
        for column in self._columns.columns():
            self._describe(column.name, _DTYPES[column.descr], [column.count], column.content.size)
            column.content.pour_into(self._stream)
        room = _HEADER_SIZE - 8
        text = json.dumps(self._header).encode().ljust(room)
        self._stream.finish(room.to_bytes(8, "little") + text)

    def release(self) -> None:
        """Let go of the temporary files."""
        self._columns.close()
        self._stream.abandon()

    def _describe(self, name: str, dtype: str, shape: list[int], size: int) -> None:
        """Say what stands next in the file."""
        tensors = [entry for entry in self._header.values() if "data_offsets" in entry]
        start = tensors[-1]["data_offsets"][1] if tensors else 0
        self._header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, start + size]}
