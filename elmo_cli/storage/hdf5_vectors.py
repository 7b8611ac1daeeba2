"""Vectors as HDF5, in the layout of AllenNLP's ``elmo`` command and bilm-tf's dumps."""

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from elmo_cli.config import DType
from elmo_cli.storage.extras import h5py_module
from elmo_cli.storage.vectors import ByteStream, Vectors, finite


class HDF5Writer:
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
        h5py = h5py_module()  # before there is a folder to clear away
        self._stream = stream
        self._folder = tempfile.TemporaryDirectory(prefix="elmo-")
        self._path = Path(self._folder.name) / "vectors.hdf5"
        self._file = h5py.File(self._path, "w")
        self._row_shape = row_shape
        self._dtype = dtype
        self._pooled = pooled
        self._indices: dict[str, str] = {}
        self._count = 0

    def __enter__(self) -> "HDF5Writer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            names = h5py_module().string_dtype()
            self._file.create_dataset("sentence_to_index", (1,), dtype=names, data=[json.dumps(self._indices)])
        self._file.close()
        with self._folder:
            if kind is None:
                with self._path.open("rb") as file:
                    shutil.copyfileobj(file, self._stream, 1 << 20)
                self._stream.flush()

    def write(self, head: Mapping[str, Any], vectors: Vectors) -> None:
        """Write one sentence.

        Raises:
            ModelError: a number is not finite, or too large for float16.
        """
        values = finite(vectors, self._dtype)
        if not self._pooled and len(self._row_shape) == 2:
            values = values.reshape(-1, *self._row_shape).transpose(1, 0, 2)
        self._file.create_dataset(str(self._count), data=np.ascontiguousarray(values))
        self._indices[str(head.get("text", " ".join(head.get("tokens", ()))))] = str(self._count)
        self._count += 1

    def flush(self) -> None:
        """Do nothing: the file is handed on when it is whole."""
