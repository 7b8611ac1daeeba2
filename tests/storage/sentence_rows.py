"""Sentences with vectors for the tests of formats, and the reading of what stands beside the vectors."""

import io
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from elmo_cli.config import DType
from elmo_cli.storage.vector_formats import VectorForm
from elmo_cli.storage.vectors import SentenceRows

Array = NDArray[np.generic]
Sentences = list[tuple[SentenceRows, NDArray[np.float32]]]

LINES = ["The ferry left .", "", "你好 é", "a _ \t b", "The ferry left ."]


def sentences(row_shape: tuple[int, ...], *, pooled: bool = False, lines: Iterable[str] = LINES) -> Sentences:
    """Return lines as sentences: each token with a place but for the last of a line, which has none."""
    made = []
    generator = np.random.default_rng(1)
    for number, line in enumerate(lines, start=1):
        tokens = line.split(" ") if line else []
        places = [(number, 10 * at, 10 * at + 5) for at in range(len(tokens))]
        places[-1:] = [(number, None, None)] * bool(tokens)
        shape = row_shape if pooled else (len(tokens), *row_shape)
        rows = SentenceRows(number, number, line, tokens, list(range(1, len(tokens) + 1)), places)
        made.append((rows, generator.standard_normal(shape).astype(np.float32)))
    return made


def form(name: str, row_shape: tuple[int, ...] = (4,), dtype: DType = "float32", *, pooled: bool = False) -> VectorForm:
    return VectorForm(name, dtype, row_shape, pooled)


def written(form: VectorForm, content: Sentences) -> bytes:
    """Return what the format makes of sentences."""
    stream = io.BytesIO()
    with form.sink(stream) as sink:
        for rows, vectors in content:
            sink.write({"tokens": rows.tokens}, vectors, rows)
            sink.flush()
    return stream.getvalue()


def rows_of(content: Sentences, *, pooled: bool = False) -> NDArray[np.float32]:
    return np.stack([v for _, v in content]) if pooled else np.concatenate([v for _, v in content])


def texts_of(arrays: Mapping[str, Any]) -> list[str]:
    """Read the texts of npz and safetensors files as the manual says."""
    content, offsets = arrays["text_bytes"], arrays["text_offsets"]
    return [content[offsets[i] : offsets[i + 1]].tobytes().decode() for i in range(len(offsets) - 1)]


def table_of(content: Sentences) -> list[tuple[int, int, int, int | None, int | None, str]]:
    """Return (line, sentence, token, start, end, text) of all rows."""
    return [
        (line, rows.sentence, number, start, end, token)
        for rows, _ in content
        for number, token, (line, start, end) in zip(rows.numbers, rows.tokens, rows.places, strict=True)
    ]
