"""Layers of labelled text, computed once and kept on the disk, mapped into memory: learning reads them many times."""

import hashlib
import json
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from elmo_cli.config import DType
from elmo_cli.errors import OutputError
from elmo_cli.mixing.encoder import Encoder
from elmo_cli.reporting import Reporter
from elmo_cli.storage.files import make_folder, whole_file
from elmo_cli.storage.mix_file import EncoderIdentity
from elmo_cli.storage.npy_vectors import NpyWriter
from elmo_cli.storage.pruning import mark_used, prune
from elmo_cli.storage.tables import utf8
from elmo_cli.text.corpus import NPY_ERRORS

_FORMAT = 1  # of the files; in their names
_SUFFIX = ".npy"


@dataclass(frozen=True, slots=True)
class StoredLayers:
    """The layers of some sentences.

    Attributes:
        rows: [tokens, layers, dim] of all sentences, one behind the other; mapped from a file.
        starts: row of each sentence's first token, and the number of rows behind the last.
    """

    rows: NDArray[Any]
    starts: NDArray[np.int64]

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence."""
        return np.diff(self.starts)

    def take(self, sentences: Sequence[int], layers: Sequence[int]) -> Float[Tensor, "layers tokens dim"]:
        """Return some layers of some sentences' tokens, in float32, one sentence behind the other."""
        spans = [np.arange(self.starts[number], self.starts[number + 1]) for number in sentences]
        places = np.concatenate(spans) if spans else np.zeros(0, np.int64)
        found = np.stack([self.rows[places, layer] for layer in layers])
        return torch.from_numpy(found.astype(np.float32, copy=False))


@dataclass(frozen=True, slots=True)
class LayerCache:
    """Where layers are kept.

    Attributes:
        folder: holds a file for each encoder and text, and is kept small as `prune` tells; None to keep nothing beyond
            the process.
        dtype: of the numbers on the disk.
        reporter: told about progress.
    """

    folder: Path | None
    dtype: DType
    reporter: Reporter

    def get(self, encoder: Encoder, sentences: Sequence[Sequence[str]], title: str) -> StoredLayers:
        """Return the layers of sentences, computed now or found from an earlier run.

        Where the folder cannot be written, they are computed as if there were none.

        Raises:
            OutputError: there is no room for them in a temporary file either.
            ModelError: a number does not fit into the type.
        """
        lengths = np.array([len(sentence) for sentence in sentences], dtype=np.int64)
        starts = np.concatenate(([0], lengths.cumsum()))
        shape = (int(starts[-1]), encoder.identity.layer_count, encoder.identity.dim)
        if self.folder is None:
            return StoredLayers(self._computed_aside(encoder, sentences, shape, title), starts)
        path = self.folder / f"{_key(encoder.identity, sentences, self.dtype)}{_SUFFIX}"
        rows = _open(path, shape, self.dtype) if mark_used(path) else None
        if rows is None:
            try:
                self._keep(path, encoder, sentences, shape, title)
            except OutputError as error:
                self.reporter.warn(f"the layers of {title} are not kept for the next time: {error.message}")
                return StoredLayers(self._computed_aside(encoder, sentences, shape, title), starts)
            rows = _open(path, shape, self.dtype)
        if rows is None:
            raise OutputError(f"the layers in {path} have been changed by another program", fix="run it again")
        return StoredLayers(rows, starts)

    def _keep(
        self, path: Path, encoder: Encoder, sentences: Sequence[Sequence[str]], shape: tuple[int, ...], title: str
    ) -> None:
        """Compute into a file for this run and later ones.

        Raises:
            OutputError: it cannot be written.
        """
        make_folder(path.parent)
        size = np.prod(shape) * np.dtype(self.dtype).itemsize
        with whole_file(path) as stream:
            self.reporter.note(f"keeping the layers of {title} in {path} ({size / 1e6:,.0f} MB; may be deleted)")
            self._compute(encoder, sentences, shape, NpyWriter(stream, shape[1:], self.dtype), title)
        prune(path.parent, _SUFFIX)

    def _computed_aside(
        self, encoder: Encoder, sentences: Sequence[Sequence[str]], shape: tuple[int, ...], title: str
    ) -> NDArray[Any]:
        """Compute into a file that has no name, so that it is gone with the process."""
        try:
            with tempfile.TemporaryFile(prefix="elmo-") as stream:
                writer = NpyWriter(stream, shape[1:], self.dtype)
                self._compute(encoder, sentences, shape, writer, title)
                offset = stream.tell() - int(np.prod(shape)) * np.dtype(self.dtype).itemsize
                if not shape[0]:
                    return np.zeros(shape, self.dtype)
                return np.memmap(stream, dtype=self.dtype, mode="r", offset=offset, shape=shape)
        except OSError as error:
            raise OutputError(
                f"cannot keep the layers in a temporary file: {error.strerror}",
                fix="set TMPDIR (which --no-cache uses) or ELMO_CACHE to a folder that can be written and has room",
            ) from error

    def _compute(
        self,
        encoder: Encoder,
        sentences: Iterable[Sequence[str]],
        shape: tuple[int, ...],
        writer: NpyWriter,
        title: str,
    ) -> None:
        with writer, self.reporter.progress(f"layers of {title}", shape[0], "tokens") as progress:
            for layers in encoder.layers(sentences):
                writer.add(layers.transpose(0, 1).contiguous().numpy())
                progress.update(writer.rows)


def _key(identity: EncoderIdentity, sentences: Sequence[Sequence[str]], dtype: DType) -> str:
    """Return the name of a file: the same for the same encoder and tokens, wherever they come from."""
    known = {name: value for name, value in asdict(identity).items() if name not in ("name", "source")}
    digest = hashlib.sha256(utf8(json.dumps([_FORMAT, known, dtype], sort_keys=True)))
    for sentence in sentences:
        digest.update(utf8(json.dumps(list(sentence))) + b"\n")
    return digest.hexdigest()[:32]


def _open(path: Path, shape: tuple[int, ...], dtype: DType) -> NDArray[Any] | None:
    """Map a file; None if it is missing or not what its name says, so that it is made anew."""
    try:
        rows: NDArray[Any] = np.load(path, mmap_mode="r") if shape[0] else np.load(path)
    except (OSError, *NPY_ERRORS):
        return None
    return rows if rows.shape == shape and rows.dtype == np.dtype(dtype) else None
