"""Vectors as JSON Lines: an object a sentence, with all that is known of it."""

import json
from collections.abc import Mapping
from typing import Any

from elmo_cli.config import DType
from elmo_cli.errors import DataError
from elmo_cli.storage.decimals import json_array
from elmo_cli.storage.late_header import ByteStream
from elmo_cli.storage.tables import utf8
from elmo_cli.storage.vectors import Finishing, SentenceRows, Vectors, finite, row_parts
from elmo_cli.text.sentence import RawJson


class JsonlWriter(Finishing):
    """Writes one JSON object a line: the fields of a sentence's head, then its ``vectors``.

    Every number reads back as exactly the one that was written. Text is UTF-8; a lone surrogate is escaped.

    Args:
        stream: where to; closed by whoever opened it.
        dtype: what the numbers are rounded to.
        pooled: the vectors of a line stand for the sentence as a whole, and the key is ``vector``. It always is for
            an array [dim].
    """

    def __init__(self, stream: ByteStream, dtype: DType = "float32", *, pooled: bool = False) -> None:
        self._stream = stream
        self._dtype: DType = dtype
        self._pooled = pooled

    def write(self, head: Mapping[str, Any], vectors: Vectors, rows: SentenceRows | None = None) -> None:
        """Write a line with vectors [n, dim], [n, layers, dim] or [dim]; a field of their name in the head gives way.

        Raises:
            ModelError: a number is not finite, or too large for float16.
            DataError: the head holds a number that is not finite, for which JSON has no word.
        """
        key = "vector" if self._pooled or vectors.ndim == 1 else "vectors"
        fields = {name: value for name, value in head.items() if name != key}
        try:
            start = _json_members(fields)
        except ValueError as error:
            raise DataError(f"the fields of a sentence cannot be written as JSON: {error}") from error
        opening = b'{%b"%b": ' % (utf8(start), key.encode())
        parts = [vectors] if vectors.ndim == 1 else list(row_parts(vectors))
        if len(parts) < 2:
            self._stream.write(opening + json_array(finite(vectors, self._dtype)) + b"}\n")
            return
        for part in parts:
            finite(part, self._dtype)  # all of them before the line begins
        separator = opening + b"["
        for part in parts:
            self._stream.write(separator + json_array(finite(part, self._dtype))[1:-1])
            separator = b","
        self._stream.write(b"]}\n")

    def flush(self) -> None:
        """Hand on all lines written so far."""
        self._stream.flush()

    def finish(self) -> None:
        """Hand on the last lines."""
        self._stream.flush()


def _json_members(fields: Mapping[str, Any]) -> str:
    """Return the members of an object, with a comma behind each; what came as JSON goes as it came."""
    parts = []
    for name, value in fields.items():
        text = value if isinstance(value, RawJson) else json.dumps(value, ensure_ascii=False, allow_nan=False)
        parts.append(f"{json.dumps(name, ensure_ascii=False)}: {text}, ")
    return "".join(parts)
