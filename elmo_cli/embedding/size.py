"""How much room vectors will take, told from the beginnings of the texts before any work is done."""

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Final

from elmo_cli.storage.vector_formats import TEXT_FORMATS, VectorForm
from elmo_cli.text.sources import STDIN

_SAMPLE_SIZE: Final = 1 << 18  # bytes of a file that are counted
_SAMPLE_FILES: Final = 16  # spread over all of them
_PACKED: Final = (b"\x1f\x8b", b"\xfd7zXZ", b"BZh", b"\x28\xb5\x2f\xfd")  # gzip, xz, bzip2, zstd

# A run of letters and digits, or a single other sign; in Chinese and Japanese about every sign is a token.
_TOKEN: Final = re.compile(r"[^\W\u3040-\u30ff\u3400-\u9fff]+|\S")
_SENTENCE_END: Final = re.compile(r"[.!?]\s|[。！？]")

_BYTES: Final = {"float32": 4.0, "float16": 2.0}
# Measured: a number as text, places and token of a row, and what HDF5 keeps of a dataset.
_DIGITS: Final = {"float32": 12.5, "float16": 8.5}
_ROW_BYTES: Final = {"npz": 56.0, "safetensors": 56.0, "parquet": 12.0, "arrow": 56.0, "jsonl": 24.0}
_HDF5_SENTENCE_BYTES: Final = 450.0


@dataclass(frozen=True, slots=True)
class TextSize:
    """About how much text there is."""

    tokens: float
    sentences: float

    def vector_bytes(self, form: VectorForm) -> float:
        """Return about how many bytes an output of all the text takes."""
        rows = self.sentences if form.pooled else self.tokens
        number_bytes = _DIGITS[form.dtype] if form.format in TEXT_FORMATS else _BYTES[form.dtype]
        row_bytes = prod(form.row_shape) * number_bytes + _ROW_BYTES.get(form.format, 0.0)
        sentence_bytes = _HDF5_SENTENCE_BYTES if form.format == "hdf5" else 0.0
        return rows * row_bytes + self.sentences * sentence_bytes


def estimate_size(sources: Sequence[str], mode: str) -> TextSize | None:
    """Return about how many tokens and sentences the sources hold.

    Reads the beginnings of a few of them and takes the rest to be alike.

    Returns:
        None where it cannot be known cheaply: a pipe, or a compressed file.
    """
    sizes: list[int] = []
    for source in sources:
        size = _regular_size(source)
        if size is None:
            return None
        sizes.append(size)
    step = max(1, len(sources) // _SAMPLE_FILES)
    tokens = sentences = sampled = 0
    for source in sources[::step]:
        head = _head(source)
        if head.startswith(_PACKED):
            return None
        # A line that is cut would be a wrong sentence; a text that is one long line has no other.
        whole = head[: head.rfind(b"\n") + 1] if len(head) == _SAMPLE_SIZE and b"\n" in head else head
        found = _count(whole.decode("utf-8", errors="replace"), mode)
        tokens, sentences, sampled = tokens + found[0], sentences + found[1], sampled + len(whole)
    scale = sum(sizes) / sampled if sampled else 0.0
    return TextSize(tokens * scale, sentences * scale)


def _regular_size(source: str) -> int | None:
    """Return the bytes of a regular file that is not named like a compressed one, else None."""
    if source == STDIN or source.endswith((".gz", ".xz", ".bz2", ".zst")):
        return None
    try:
        status = os.stat(source)
    except OSError:  # reading it will tell
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _head(source: str) -> bytes:
    try:
        with open(source, "rb") as file:
            return file.read(_SAMPLE_SIZE)
    except OSError:  # reading it will tell
        return b""


def _count(text: str, mode: str) -> tuple[int, int]:
    """Return the numbers of tokens and sentences in some text."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if mode == "tokens":
        return len(text.split()), len(lines)
    if mode in ("conll", "conllu"):
        rows = [line for line in lines if line.strip()]
        return sum(not row.startswith("#") for row in rows), len(lines) - len(rows) + 1
    if mode == "jsonl":
        return sum(map(_json_tokens, lines)), len(lines)
    tokens = len(_TOKEN.findall(text))
    return tokens, max(1, len(_SENTENCE_END.findall(text))) if mode == "text" else len(lines)


def _json_tokens(line: str) -> int:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):  # reading it will tell
        return 0
    if not isinstance(fields, dict):
        return 0
    tokens = fields.get("tokens")
    return len(tokens) if isinstance(tokens, list) else len(_TOKEN.findall(str(fields.get("text", ""))))
