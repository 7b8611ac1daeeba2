"""Vectors as tables: Parquet and Arrow files, a row a token or a sentence, written group by group."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from elmo_cli.config import DType
from elmo_cli.storage.extras import pyarrow_module
from elmo_cli.storage.late_header import ByteStream, Outlet
from elmo_cli.storage.tables import utf8
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, finite

_GROUP_BYTES: Final = 16 << 20  # of vectors and text, in memory at once


class ArrowWriter(Finishing):
    """Writes the columns ``line``, ``sentence``, ``token``, ``start``, ``end``, ``text`` and ``vector``.

    They are as in the table of tokens; ``vector`` is a list of fixed size, [dim] or [layers, dim]. A row that is a
    sentence has no token, start and end. Both formats are written from front to back, into a pipe too, and end in a
    part without which nobody reads them.

    Args:
        stream: where to.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
        pooled: one vector a sentence instead of its tokens'.
        parquet: Parquet, else an Arrow file (Feather, version 2).
    """

    def __init__(
        self,
        stream: ByteStream,
        row_shape: tuple[int, ...],
        dtype: DType,
        *,
        pooled: bool = False,
        parquet: bool = True,
    ) -> None:
        arrow = pyarrow_module("pyarrow")
        self._arrow = arrow
        self._row_shape = row_shape
        self._dtype: DType = dtype
        self._pooled = pooled
        vector = arrow.float32() if dtype == "float32" else arrow.float16()
        for size in reversed(row_shape):
            vector = arrow.list_(arrow.field("element", vector, nullable=False), size)
        places = () if pooled else ("token", "start", "end")
        names = [(name, arrow.int64()) for name in ("line", "sentence", *places)]
        self._schema = arrow.schema([*names, ("text", arrow.string()), arrow.field("vector", vector, nullable=False)])
        self._outlet = Outlet(stream)
        # Where a file begins is said by its end; the vectors of one row resemble those of no other.
        if parquet:
            module = pyarrow_module("pyarrow.parquet")
            self._writer = module.ParquetWriter(self._outlet, self._schema, use_dictionary=["text"])
        else:
            self._writer = arrow.ipc.new_file(self._outlet, self._schema)
        self._clear()

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write one sentence.

        Raises:
            ModelError: a number is not finite, or too large for float16.
        """
        values = finite(vectors, self._dtype).reshape(-1, *self._row_shape)
        texts = [utf8(text) for text in ([rows.text] if self._pooled else rows.tokens)]
        self._vectors.append(values)
        self._bytes += values.nbytes + sum(map(len, texts))
        if self._pooled:
            self._rows.append((rows.line, rows.sentence, texts[0].decode()))
        else:
            for number, text, (line, start, end) in zip(rows.numbers, texts, rows.places, strict=True):
                self._rows.append((line, rows.sentence, number, start, end, text.decode()))
        if self._bytes >= _GROUP_BYTES:
            self._write_group()

    def flush(self) -> None:
        """Hand on the groups written so far; the file is not whole before its end."""
        self._outlet.flush()

    def finish(self) -> None:
        """Write the last group and the end of the file."""
        self._write_group()
        self._writer.close()
        self._outlet.flush()

    def release(self) -> None:
        """Let go of the writer: after a failure the end of the file must not be written, and closing would write it."""
        self._outlet.abandon()
        with suppress(Exception):
            self._writer.close()

    def _clear(self) -> None:
        self._vectors: list[Vectors] = []
        self._rows: list[tuple[Any, ...]] = []
        self._bytes = 0

    def _write_group(self) -> None:
        if not self._rows:
            return
        arrow = self._arrow
        vector = arrow.array(np.concatenate(self._vectors).ravel())
        kinds = [self._schema.field("vector").type]
        for _ in self._row_shape[1:]:
            kinds.append(kinds[-1].value_type)
        for kind in reversed(kinds):
            vector = arrow.FixedSizeListArray.from_arrays(vector, type=kind)
        columns = [
            arrow.array(column, type=field.type)
            for column, field in zip(zip(*self._rows, strict=True), self._schema, strict=False)
        ]
        self._writer.write_batch(arrow.record_batch([*columns, vector], schema=self._schema))
        self._clear()
