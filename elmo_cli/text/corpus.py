"""A prepared corpus: text tokenized once, as numbers on disk that are mapped into memory, not read."""

import io
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from tokenize import TokenError
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike, NDArray

from elmo_cli.errors import DataError, Place

# What NumPy raises of bytes that are no npy file, or say of themselves what cannot be: its header is an expression.
NPY_ERRORS: Final = (
    ValueError,
    EOFError,
    SyntaxError,
    TokenError,
    MemoryError,
    OverflowError,
    RecursionError,
    io.UnsupportedOperation,
)

FORMAT = 1
_BLOCK_TOKENS: Final = 1 << 24  # renumbered at once
_ARRAYS = ("tokens", "sentence_ends", "type_bytes", "type_ends", "type_counts")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One input of a corpus, by name and content."""

    name: str
    sha256: str
    size: int  # bytes as stored, compressed or not


@dataclass(frozen=True, slots=True)
class CorpusInfo:
    """What a corpus was made of and how."""

    sources: tuple[SourceFile, ...]
    mode: str  # how the text was read: one of `reader.INPUT_MODES`
    tokenizer: dict[str, Any]  # its name ("none" when the text came tokenized), language and version
    sentences: int
    empty_sentences: int
    tokens: int
    types: int

    def to_json(self) -> dict[str, Any]:
        """Return plain values, the format number among them."""
        return {"format": FORMAT, **asdict(self)}


class Corpus:
    """Token ids, sentence borders and one table of word types, all memory-mapped.

    A token's id is the number of its type; types are numbered by falling count, ties in text order.

    Attributes:
        folder: where the files are.
        info: what the corpus was made of.
        tokens: uint32 [tokens], type of each token, sentences end to end.
        sentence_ends: int64 [sentences], position after each sentence's last token.
        type_counts: int64 [types].
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            self.info = _info_from_json(json.loads((folder / "corpus.json").read_text(encoding="utf-8")))
            arrays = {name: np.load(folder / f"{name}.npy", mmap_mode="r") for name in _ARRAYS}
        except (OSError, KeyError, TypeError, AttributeError, *NPY_ERRORS) as error:
            raise DataError(
                f"the prepared corpus cannot be read: {error}", where=Place(str(folder)), fix="delete this folder"
            ) from error
        self.tokens: NDArray[np.uint32] = arrays["tokens"]
        self.sentence_ends: NDArray[np.int64] = arrays["sentence_ends"]
        self.type_counts: NDArray[np.int64] = arrays["type_counts"]
        self._type_bytes, self._type_ends = arrays["type_bytes"], arrays["type_ends"]

    def named(self, names: Sequence[str]) -> "Corpus":
        """Give the sources the names they have now; the same contents may have been prepared under other ones."""
        pairs = zip(self.info.sources, names, strict=True)
        self.info = replace(self.info, sources=tuple(replace(source, name=name) for source, name in pairs))
        return self

    def type_texts(self, ids: Iterable[int]) -> list[str]:
        """Return the text of each type."""
        ends, raw = self._type_ends, self._type_bytes
        texts = []
        for number in ids:
            start = int(ends[number - 1]) if number else 0
            texts.append(raw[start : int(ends[number])].tobytes().decode("utf-8", "surrogatepass"))
        return texts

    @cached_property
    def all_type_texts(self) -> list[str]:
        """Text of every type, in the order of the ids."""
        raw, ends = self._type_bytes.tobytes(), self._type_ends.tolist()
        starts = [0, *ends[:-1]]
        return [raw[a:b].decode("utf-8", "surrogatepass") for a, b in zip(starts, ends, strict=True)]

    @cached_property
    def sentence_starts(self) -> NDArray[np.int64]:
        """Position of each sentence's first token."""
        return np.concatenate((np.zeros(1, dtype=np.int64), self.sentence_ends[:-1]))


def write_corpus(
    folder: Path, info: CorpusInfo, raw_tokens: Path, sentence_ends: NDArray[np.int64], types: Sequence[str]
) -> None:
    """Number the types by falling count and write a corpus's files into ``folder``.

    Args:
        folder: an existing folder.
        info: what the corpus was made of.
        raw_tokens: file of uint32, the tokens with types numbered as in ``types``.
        sentence_ends: position after each sentence's last token.
        types: text of each type.
    """
    old = np.memmap(raw_tokens, dtype=np.uint32, mode="r")
    starts = range(0, len(old), _BLOCK_TOKENS)
    counts = np.zeros(len(types), dtype=np.int64)
    for start in starts:
        counts += np.bincount(old[start : start + _BLOCK_TOKENS], minlength=len(types))
    by_count = sorted(range(len(types)), key=lambda number: (-counts[number], types[number]))
    new_number = np.empty(len(types), dtype=np.uint32)
    new_number[by_count] = np.arange(len(types), dtype=np.uint32)
    renumbered = (new_number[old[start : start + _BLOCK_TOKENS]] for start in starts)
    texts = [types[number].encode("utf-8", "surrogatepass") for number in by_count]
    _write_array(folder / "tokens.npy", np.uint32, len(old), renumbered)
    for name, array in (
        ("sentence_ends", sentence_ends),
        ("type_counts", counts[by_count]),
        ("type_bytes", np.frombuffer(b"".join(texts), dtype=np.uint8)),
        ("type_ends", np.cumsum([len(text) for text in texts], dtype=np.int64)),
    ):
        _write_array(folder / f"{name}.npy", array.dtype, len(array), [array])
    # Escaped to ASCII, as the name of a source need not be UTF-8.
    (folder / "corpus.json").write_text(json.dumps(info.to_json(), indent=2), encoding="utf-8")


def _write_array(path: Path, dtype: DTypeLike, count: int, blocks: Iterable[NDArray[Any]]) -> None:
    """Write an array [count] as npy, block by block, down to the disk: a corpus that has its name is whole.

    On a full disk a write says why it fails. `np.save` does not, and a mapped file ends the process (SIGBUS).
    """
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": (count,)}
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(block.tobytes())
        file.flush()
        os.fsync(file.fileno())


def _info_from_json(data: dict[str, Any]) -> CorpusInfo:
    """Read `CorpusInfo.to_json`; a format that is not ours is an error."""
    if data.pop("format") != FORMAT:
        raise ValueError("it was made by another version of elmo")
    sources = tuple(SourceFile(**source) for source in data.pop("sources"))
    return CorpusInfo(sources=sources, **data)
