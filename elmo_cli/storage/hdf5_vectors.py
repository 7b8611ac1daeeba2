"""Vectors as HDF5, in the layout of AllenNLP's ``elmo`` command and bilm-tf's dumps."""

import json
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping
from typing import IO, Any

import numpy as np

from elmo_cli.config import DType
from elmo_cli.storage.extras import h5py_module
from elmo_cli.storage.late_header import ByteStream, spool_errors
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, finite


class HDF5Writer(Finishing):
    """Writes one dataset a sentence, named by its number from "0" on: [layers, tokens, dim], or [tokens, dim].

    The dataset ``sentence_to_index`` holds, as JSON, the number of each sentence by its text (its tokens, parted by
    spaces, where the text came tokenized); a text that occurs again keeps its last number, as in AllenNLP. An empty
    sentence has a dataset without tokens.

    Args:
        stream: where to. HDF5 is written here and there in its file, so it is put together in a temporary one (in
            ``$TMPDIR``) and copied at the end.
        row_shape: (dim,) or (layers, dim).
        dtype: what the numbers are rounded to.
        pooled: one vector a sentence instead of its tokens'.
    """

    def __init__(self, stream: ByteStream, row_shape: tuple[int, ...], dtype: DType, *, pooled: bool = False) -> None:
        h5py = h5py_module()
        self._stream = stream
        self._spool = _RememberingFile()
        self._file = h5py.File(self._spool, "w")
        self._row_shape = row_shape
        self._dtype = dtype
        self._pooled = pooled
        self._indices: dict[str, str] = {}
        self._count = 0

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows) -> None:
        """Write one sentence.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            OutputError: there is no room for the temporary file.
        """
        values = finite(vectors, self._dtype)
        if not self._pooled and len(self._row_shape) == 2:
            values = values.reshape(-1, *self._row_shape).transpose(1, 0, 2)
        self._file.create_dataset(str(self._count), data=np.ascontiguousarray(values))
        self._spool.check()
        self._indices[rows.text] = str(self._count)
        self._count += 1

    def flush(self) -> None:
        """Do nothing: the file is handed on when it is whole."""

    def finish(self) -> None:
        """Write the list of sentences and hand the file on."""
        names = h5py_module().string_dtype()
        self._file.create_dataset("sentence_to_index", (1,), dtype=names, data=[json.dumps(self._indices)])
        self._file.close()
        self._spool.pour_into(self._stream)
        self._stream.flush()

    def release(self) -> None:
        """Let go of the temporary file."""
        try:
            self._file.close()
        finally:
            self._spool.close()


class _RememberingFile:
    """A temporary file for a library that crashes when a write fails: the failure is kept, and told when asked.

    After a failure the file is as large as the library believes, and what it reads there may be zeros.
    """

    def __init__(self) -> None:
        with spool_errors():
            self._file: IO[bytes] = tempfile.TemporaryFile()
        self._error: BaseException | None = None

    def check(self) -> None:
        """Raise what went wrong, be it a signal that came during a write.

        Raises:
            OutputError: there was no room for a write.
        """
        if self._error is not None:
            with spool_errors():
                raise self._error

    def pour_into(self, stream: ByteStream) -> None:
        """Write all bytes into a stream."""
        self.check()
        self._file.seek(0)
        shutil.copyfileobj(self._file, stream, 1 << 20)

    def close(self) -> None:
        """Let go of the file; what is still in memory is not written first, as there may be no room for it."""
        getattr(self._file, "raw", self._file).close()

    def write(self, content: Any) -> int:  # noqa: ANN401 (a buffer of h5py)
        """Write at the place of the last `seek`."""
        self._try(lambda: self._file.write(content))
        return memoryview(content).nbytes

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a place."""
        return self._try(lambda: self._file.seek(offset, whence)) or 0

    def tell(self) -> int:
        """Return the place."""
        return self._try(self._file.tell) or 0

    def read(self, size: int = -1) -> bytes:
        """Read from the place of the last `seek`."""
        return self._try(lambda: self._file.read(size)) or b""

    def readinto(self, content: Any) -> int:  # noqa: ANN401 (a buffer of h5py)
        """Fill the content from the place of the last `seek`, with zeros behind the end."""
        view = memoryview(content).cast("B")
        view[:] = self.read(view.nbytes).ljust(view.nbytes, b"\0")
        return view.nbytes

    def truncate(self, size: int) -> int:
        """Make the file as large as this."""
        self._try(lambda: self._file.truncate(size))
        return size

    def flush(self) -> None:
        """Hand what is in memory to the disk."""
        self._try(self._file.flush)

    def _try(self, action: Callable[[], Any]) -> Any:  # noqa: ANN401 (whatever the action returns)
        """Do what may need room, unless there was none before."""
        if self._error is not None:
            return None
        try:
            return action()
        except BaseException as error:
            self._error = error
            return None
