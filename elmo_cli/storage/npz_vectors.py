"""Vectors as npz: an archive of NumPy arrays, the vectors and what each row of them is."""

import zipfile
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from elmo_cli.config import DType
from elmo_cli.storage.late_header import ByteStream, Outlet, Spool
from elmo_cli.storage.npy_vectors import npy_header
from elmo_cli.storage.row_columns import RowColumns
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, descr_of, row_chunks


class NpzWriter(Finishing):
    """Writes the array ``vectors`` and the arrays of `RowColumns`.

    Nothing is compressed, as the numbers of vectors have no pattern. The same input gives the same bytes.

    Args:
        stream: where to. An array in an archive begins with its size and checksum, so all arrays wait in temporary
            files (in ``$TMPDIR``) until the end.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
        pooled: one vector a sentence instead of its tokens'.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType, *, pooled: bool = False) -> None:
        self._stream = stream
        self._row_shape = row_shape
        self._dtype: DType = dtype
        self._vectors = Spool()
        self._columns = RowColumns(pooled=pooled)

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write one sentence.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary files.
        """
        for content in row_chunks(vectors, self._row_shape, self._dtype):
            self._vectors.write(content)
        self._columns.add(rows)

    def flush(self) -> None:
        """Do nothing: the archive is put together at the end."""

    def finish(self) -> None:
        """Put the archive together."""
        outlet = Outlet(self._stream)
        archive = zipfile.ZipFile(outlet, "w")
        try:
            shape = (self._columns.count, *self._row_shape)
            _add(archive, "vectors", npy_header(shape, descr_of(self._dtype)), self._vectors)
            for column in self._columns.columns():
                _add(archive, column.name, npy_header((column.count,), column.descr), column.content)
            archive.close()
        except BaseException:
            outlet.abandon()
            with suppress(ValueError):  # "while an array is being written"
                archive.close()
            raise
        outlet.flush()

    def release(self) -> None:
        """Let go of the temporary files."""
        self._vectors.close()
        self._columns.close()


def _add(archive: zipfile.ZipFile, name: str, header: bytes, content: Spool) -> None:
    # Without a date of its own an entry has that of 1980: the same bytes each time.
    with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as entry:
        entry.write(header)
        content.pour_into(entry)
