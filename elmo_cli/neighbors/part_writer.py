"""Writing a part of an index, sentence by sentence in constant memory but for the list of its word types."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.embedding.write import SentenceEmbedder
from elmo_cli.neighbors.index_info import PartInfo
from elmo_cli.neighbors.part import (
    ROW,
    ROWS_FILE,
    SENTENCES_FILE,
    STARTS_FILE,
    TYPE_VECTORS_FILE,
    TYPES_FILE,
    layer_file,
    mark_file,
    row_sums,
    sums_file,
)
from elmo_cli.neighbors.selecting import TokenSelection
from elmo_cli.reporting import Progress
from elmo_cli.storage.npy_vectors import NpyWriter
from elmo_cli.text.sentence import RawJson, Sentence


class PartWriter:
    """Writes the files of a part into a folder that is there; a context manager that finishes or gives up.

    Args:
        folder: of the part.
        layers: that are stored; layer 0 is stored once a type, and always.
        vector_dim: numbers a vector has.
    """

    def __init__(self, folder: Path, layers: Sequence[int], vector_dim: int) -> None:
        self._folder = folder
        self._layers = [layer for layer in layers if layer != 0]
        self._dim = vector_dim
        self._open = ExitStack()
        self._types: dict[str, int] = {}
        self._sentences = self._bytes = self.rows = 0

    def __enter__(self) -> "PartWriter":
        self._rows = self._file(ROWS_FILE)
        self._text = self._file(SENTENCES_FILE)
        self._starts = self._file(STARTS_FILE)
        self._vectors = {layer: self._array(layer_file(layer)) for layer in self._layers}
        self._sums = {layer: self._file(sums_file(layer)) for layer in self._layers}
        self._type_vectors = self._array(TYPE_VECTORS_FILE)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._starts.write(np.uint64(self._bytes).tobytes())
            (self._folder / TYPES_FILE).write_text(json.dumps(list(self._types)), encoding="utf-8")
        self._open.__exit__(kind, error, trace)

    def _file(self, name: str) -> BinaryIO:
        return self._open.enter_context((self._folder / name).open("wb"))

    def _array(self, name: str) -> NpyWriter:
        return self._open.enter_context(NpyWriter(self._file(name), (self._dim,), "float16"))

    def add(
        self, source: int, sentence: Sentence, kept: Sequence[int], vectors: NDArray[np.float32], layers: Sequence[int]
    ) -> None:
        """Write a sentence and the vectors of its kept tokens.

        Args:
            source: number of its text.
            sentence: as read.
            kept: numbers of the tokens that get a row.
            vectors: of all of its tokens [tokens, layers, dim].
            layers: that stand in ``vectors``, layer 0 among them.
        """
        numbers = []
        for number in kept:
            token = sentence.tokens[number]
            if token not in self._types:
                self._types[token] = len(self._types)
                self._type_vectors.add(vectors[number, layers.index(0)])
            numbers.append(self._types[token])
        places = sentence.positions
        rows = np.zeros(len(kept), ROW)
        rows["type"], rows["sentence"], rows["token"] = numbers, self._sentences, kept
        rows["line"] = [places[number][0] for number in kept]
        self._rows.write(rows.tobytes())
        for layer in self._layers:
            stored = vectors[list(kept), layers.index(layer)].astype(np.float16)
            self._vectors[layer].add(stored)
            self._sums[layer].write(row_sums(stored).tobytes())
        line = _json_line(source, sentence)
        self._starts.write(np.uint64(self._bytes).tobytes())
        self._text.write(line)
        self._bytes += len(line)
        self._sentences += 1
        self.rows += len(kept)

    def info(self, sources: Sequence[str], tokens: int) -> PartInfo:
        """Return what the part holds; to be called when the context has ended."""
        vectors = {layer_file(layer) for layer in self._layers}
        names = sorted(path.name for path in self._folder.iterdir())
        files = {name: mark_file(self._folder / name, with_sum=name not in vectors) for name in names}
        return PartInfo(self._folder.name, tuple(sources), self.rows, self._sentences, len(self._types), tokens, files)


def write_part(
    folder: Path,
    sentences: Iterable[tuple[int, Sentence]],
    sources: Sequence[str],
    embedder: SentenceEmbedder,
    layers: Sequence[int],
    *,
    vector_dim: int,
    selection: TokenSelection,
    progress: Progress,
) -> PartInfo:
    """Embed sentences and write those that have a token to keep; the others are not even embedded.

    Args:
        folder: of the part, empty.
        sentences: each with the number of its source.
        sources: names of the texts.
        embedder: computes the vectors.
        layers: that are stored.
        vector_dim: numbers a vector has.
        selection: of tokens.
        progress: told the number of tokens read.
    """
    waiting: deque[tuple[int, Sentence, Sequence[int]]] = deque()  # read ahead by the embedder
    choice = sorted({0, *layers})
    read = 0

    def wanted() -> Iterator[list[str]]:
        nonlocal read
        for source, sentence in sentences:
            read += len(sentence.tokens)
            kept = selection.kept(sentence.tokens)
            if kept:
                waiting.append((source, sentence, kept))
                yield sentence.tokens
            progress.update(read)

    with PartWriter(folder, layers, vector_dim) as writer:
        for vectors in embedder.embed(wanted(), LayerChoice(tuple(choice))):
            source, sentence, kept = waiting.popleft()
            array = vectors.numpy()
            writer.add(source, sentence, kept, array if array.ndim == 3 else array[:, None], choice)
    return writer.info(sources, read)


def _json_line(source: int, sentence: Sentence) -> bytes:
    data: dict[str, Any] = {"source": source, "line": sentence.place.line or 1}
    if sentence.text is not None and sentence.spans is not None:
        data["text"] = sentence.text
        spans: Sequence[tuple[int, int]] = sentence.spans
    else:
        data["text"] = " ".join(sentence.tokens)
        ends = np.cumsum([len(token) + 1 for token in sentence.tokens])
        spans = [(int(end) - 1 - len(token), int(end) - 1) for end, token in zip(ends, sentence.tokens, strict=True)]
    if sentence.tokens != [data["text"][start:end] for start, end in spans]:
        data["tokens"] = sentence.tokens
    data["spans"] = [at for span in spans for at in span]
    if sentence.fields:
        data["fields"] = {name: _plain(value) for name, value in sentence.fields.items()}
    return json.dumps(data).encode() + b"\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 (any value of JSON)
    """Return the value of a field; a number that Python does not read stays the text it was."""
    if not isinstance(value, RawJson):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return str(value)
