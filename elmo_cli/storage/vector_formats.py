"""The formats in which vectors leave, by name and by the ending of a file; loads nothing until one is opened."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from elmo_cli.config import DType
from elmo_cli.errors import ConfigError

if TYPE_CHECKING:
    from elmo_cli.storage.late_header import ByteStream
    from elmo_cli.storage.vectors import VectorSink

# The first ending of a format is the one that files named by the tool get.
FORMATS: Final[dict[str, tuple[str, ...]]] = {
    "npy": (".npy",),
    "npz": (".npz",),
    "jsonl": (".jsonl",),
    "safetensors": (".safetensors",),
    "hdf5": (".hdf5", ".h5"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "word2vec": (".vec", ".w2v"),
}
TEXT_FORMATS: Final = ("jsonl", "word2vec")
SPOOLED_FORMATS: Final = ("npz", "hdf5")  # put together in $TMPDIR, then copied


def format_of(path: Path) -> str | None:
    """Return the format that a file's name tells, None if it tells none."""
    return next((name for name, endings in FORMATS.items() if path.suffix in endings), None)


@dataclass(frozen=True, slots=True)
class VectorForm:
    """The form of an output.

    Attributes:
        format: one of `FORMATS`.
        dtype: of the numbers.
        row_shape: of a row of vectors: (dim,) or (layers, dim).
        pooled: a row is a sentence, not a token.
    """

    format: str
    dtype: DType
    row_shape: tuple[int, ...]
    pooled: bool

    def check(self) -> None:
        """Refuse vectors that the format has no room for, and a format whose package is missing.

        Raises:
            ConfigError: with what to do.
        """
        from elmo_cli.storage import extras

        if self.format == "word2vec" and not self.pooled:
            raise ConfigError("word2vec holds a vector a line, not a token", fix="add --pool mean, or choose -f npy")
        if self.format == "word2vec" and len(self.row_shape) > 1:
            raise ConfigError(
                f"word2vec holds one vector a line, not {self.row_shape[0]} layers",
                fix="choose --layers average, top or one number",
            )
        if self.format == "hdf5":
            extras.h5py_module()
        elif self.format in ("parquet", "arrow"):
            extras.pyarrow_module("pyarrow")

    def sink(self, stream: "ByteStream") -> "VectorSink":
        """Return what writes vectors into a stream, which is closed by whoever opened it."""
        from elmo_cli.storage.arrow_vectors import ArrowWriter
        from elmo_cli.storage.hdf5_vectors import HDF5Writer
        from elmo_cli.storage.jsonl_vectors import JsonlWriter
        from elmo_cli.storage.npy_vectors import NpyWriter
        from elmo_cli.storage.npz_vectors import NpzWriter
        from elmo_cli.storage.safetensors_vectors import SafetensorsWriter
        from elmo_cli.storage.word2vec_vectors import Word2vecWriter

        if self.format == "npy":
            return NpyWriter(stream, self.row_shape, self.dtype)
        if self.format == "jsonl":
            return JsonlWriter(stream, self.dtype, pooled=self.pooled)
        if self.format == "word2vec":
            return Word2vecWriter(stream, self.row_shape, self.dtype)
        if self.format in ("parquet", "arrow"):
            is_parquet = self.format == "parquet"
            return ArrowWriter(stream, self.row_shape, self.dtype, pooled=self.pooled, parquet=is_parquet)
        if self.format == "npz":
            return NpzWriter(stream, self.row_shape, self.dtype, pooled=self.pooled)
        if self.format == "safetensors":
            return SafetensorsWriter(stream, self.row_shape, self.dtype, pooled=self.pooled)
        return HDF5Writer(stream, self.row_shape, self.dtype, pooled=self.pooled)
