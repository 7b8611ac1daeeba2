"""A part of an index: its files, mapped into memory and checked as they are read."""

import hashlib
import json
import mmap
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.neighbors.index_info import INFO_FILE, FileMark, PartInfo, damaged
from elmo_cli.neighbors.matching import Form
from elmo_cli.text.corpus import NPY_ERRORS

ROW: Final = np.dtype([("type", "<u4"), ("sentence", "<u4"), ("token", "<u4"), ("line", "<u4")])
ROWS_FILE: Final = "rows.bin"
TYPES_FILE: Final = "types.json"
TYPE_VECTORS_FILE: Final = "types.npy"
SENTENCES_FILE: Final = "sentences.jsonl"
STARTS_FILE: Final = "sentences.u64"

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


def layer_file(layer: int) -> str:
    """Return the name of the file of a layer's vectors, float16 [rows, dim]."""
    return f"layer-{layer}.npy"


def sums_file(layer: int) -> str:
    """Return the name of the file of the sums of these rows."""
    return f"layer-{layer}.u64"


def row_sums(vectors: NDArray[np.float16]) -> NDArray[np.uint64]:
    """Return a sum of each row's bits, modulo 2**64, which any change of a single number changes.

    Far faster than a digest: the rows that a query reads are looked at each time. The weights are odd, and so lose
    nothing, and they differ, so that numbers that change places are seen too.
    """
    width = vectors.shape[1] * vectors.itemsize
    raw = np.ascontiguousarray(vectors).view(np.uint8).reshape(len(vectors), width)
    if width % 8:
        raw = np.ascontiguousarray(np.pad(raw, ((0, 0), (0, -width % 8))))
    words = raw.view(np.uint64)
    return np.asarray(words @ (2 * np.arange(words.shape[1], dtype=np.uint64) + 1))


def mark_file(path: Path, *, with_sum: bool = True) -> FileMark:
    """Return a file's size and, if asked, its sum."""
    if not with_sum:
        return FileMark(path.stat().st_size)
    with path.open("rb") as file:
        return FileMark(path.stat().st_size, hashlib.file_digest(file, "sha256").hexdigest())


@dataclass(frozen=True, slots=True)
class StoredSentence:
    """A sentence as an index keeps it.

    Attributes:
        source: name of its text.
        line: in which it starts.
        text: the tokens parted by spaces where it came tokenized.
        tokens: of it.
        spans: start and end of each token in ``text``.
        fields: what else the corpus says of it.
    """

    source: str
    line: int
    text: str
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    fields: Mapping[str, Any] = field(default_factory=dict)


class Part:
    """The rows of one part.

    Args:
        index: folder of the index.
        info: of the part.

    Raises:
        DataError: a file is missing, has another size, or is not the one that was written.
    """

    def __init__(self, index: Path, info: PartInfo) -> None:
        self.info = info
        self._index = index
        self._folder = index / info.folder
        for name, mark in info.files.items():
            self._check(name, mark)
        self.rows: NDArray[np.void] = np.memmap(self._folder / ROWS_FILE, dtype=ROW, mode="r")

    def _check(self, name: str, mark: FileMark) -> None:
        path = self._folder / name
        try:
            found = mark_file(path, with_sum=mark.sha256 is not None)
        except OSError as error:
            raise damaged(self._index, f"{self.info.folder}/{name} cannot be read ({error.strerror})") from error
        if found.size != mark.size:
            raise damaged(
                self._index, f"{self.info.folder}/{name} has {found.size:,} bytes, not the {mark.size:,} written"
            )
        if found != mark:
            raise damaged(self._index, f"{self.info.folder}/{name} is not as it was written")

    @cached_property
    def types(self) -> list[str]:
        """The word types, in order of their first token."""
        found: list[str] = json.loads((self._folder / TYPES_FILE).read_text(encoding="utf-8"))
        return found

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.types)}

    @cached_property
    def _folded(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for number, word in enumerate(self.types):
            found.setdefault(word.casefold(), []).append(number)
        return found

    @cached_property
    def type_counts(self) -> Numbers:
        """How often each type has a vector."""
        return np.bincount(self.rows["type"], minlength=len(self.types))

    @cached_property
    def type_vectors(self) -> NDArray[np.float16]:
        """Layer 0 of each type [types, dim], which does not depend on a context."""
        return np.asarray(np.load(self._folder / TYPE_VECTORS_FILE, mmap_mode="r"))

    def first_rows(self, form: Form, *, ignore_case: bool) -> Numbers:
        """Return the rows at which a run of tokens begins."""
        if not all(self._type_numbers(token, ignore_case) for token in form):
            return np.zeros(0, np.int64)
        masks = [np.isin(self.rows["type"], self._type_numbers(token, ignore_case)) for token in form]
        starts = np.flatnonzero(masks[0])
        for shift, mask in enumerate(masks[1:], start=1):
            starts = starts[starts + shift < len(self.rows)]
            first, later = self.rows[starts], self.rows[starts + shift]
            follows = (first["sentence"] == later["sentence"]) & (first["token"] + shift == later["token"])
            starts = starts[mask[starts + shift] & follows]
        return starts

    def _type_numbers(self, token: str, ignore_case: bool) -> list[int]:
        if ignore_case:
            return self._folded.get(token.casefold(), [])
        return [self._numbers[token]] if token in self._numbers else []

    def vectors(self, layer: int, rows: Numbers | slice) -> Floats:
        """Return vectors of a layer [n, dim] in float32; layer 0, which is that of the type, is always there.

        Raises:
            DataError: they are not as they were written.
        """
        if layer == 0:
            return np.asarray(self.type_vectors[self.rows["type"][rows]], np.float32)
        stored = self._layer(layer)[rows]
        if (row_sums(stored) != self._sums(layer)[rows]).any():
            raise damaged(self._index, f"{self.info.folder}/{layer_file(layer)} is not as it was written")
        return stored.astype(np.float32)

    def _layer(self, layer: int) -> NDArray[np.float16]:
        if layer not in self._open:
            path = self._folder / layer_file(layer)
            try:
                vectors = np.load(path, mmap_mode="r")
            except NPY_ERRORS as error:
                raise damaged(self._index, f"{self.info.folder}/{path.name} is no array") from error
            sums = np.memmap(self._folder / sums_file(layer), dtype="<u8", mode="r")
            if vectors.ndim != 2 or len(vectors) != len(self.rows) or vectors.dtype != np.float16:
                raise damaged(self._index, f"{self.info.folder}/{path.name} is not as it was written")
            self._open[layer] = (vectors, sums)
        return self._open[layer][0]

    def _sums(self, layer: int) -> NDArray[np.uint64]:
        return self._open[layer][1]

    @cached_property
    def _open(self) -> dict[int, tuple[NDArray[np.float16], NDArray[np.uint64]]]:
        return {}

    @cached_property
    def _sentence_starts(self) -> NDArray[np.uint64]:
        return np.memmap(self._folder / STARTS_FILE, dtype="<u8", mode="r")

    @cached_property
    def _sentence_bytes(self) -> mmap.mmap:
        with (self._folder / SENTENCES_FILE).open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def sentence(self, number: int) -> StoredSentence:
        """Return a sentence by its number in this part."""
        try:
            start, end = (int(at) for at in self._sentence_starts[number : number + 2])
            data = json.loads(self._sentence_bytes[start:end])
            spans = tuple(zip(data["spans"][::2], data["spans"][1::2], strict=True))
            tokens = data.get("tokens") or [data["text"][begin:stop] for begin, stop in spans]
            source = self.info.sources[data["source"]]
            return StoredSentence(source, data["line"], data["text"], tuple(tokens), spans, data.get("fields", {}))
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise damaged(self._index, f"{self.info.folder}/{SENTENCES_FILE} and {INFO_FILE} do not fit") from error
