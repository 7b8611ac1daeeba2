"""Text to a prepared corpus: read, tokenized by several processes, numbered, and kept for the next run."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from elmo_cli.errors import DataError, OutputError, Place
from elmo_cli.locks import held, remove_abandoned
from elmo_cli.reporting import Reporter
from elmo_cli.text.corpus import FORMAT, Corpus, CorpusInfo, SourceFile, write_corpus
from elmo_cli.text.reader import TextOptions, line_blocks, sentences_of_block
from elmo_cli.text.sources import STDIN, Line, display_name
from elmo_cli.text.tokenizer import Tokenizer
from elmo_cli.text.workers import BlockWorkers

# Below this much text a second process costs more to start than it saves.
_WORTH_PROCESSES_BYTES = 4_000_000
_BUILDING: Final = ".building-"  # begins the name of a corpus that is not whole


@dataclass(frozen=True, slots=True)
class _Numbered:
    """Sentences of one block, with the block's own numbering of its types."""

    types: list[str]
    tokens: NDArray[np.uint32]
    lengths: NDArray[np.int64]


def prepare_corpus(
    sources: Sequence[str], options: TextOptions, *, cache: Path, workers: int, reporter: Reporter
) -> Corpus:
    """Return the prepared corpus of some sources, made now or found from an earlier run.

    Args:
        sources: files as `sources.find_sources` returns them.
        options: how to read them.
        cache: folder that holds one folder for each prepared corpus, named by content and settings.
        workers: processes that tokenize a large text; with less than 2 this one does.
        reporter: told about progress.

    Raises:
        DataError: a source cannot be read or all of them together hold no token.
        OutputError: the cache cannot be written.
    """
    remove_abandoned(cache.glob(f"{_BUILDING}*"))
    files = {name: _source_file(name) for name in dict.fromkeys(sources) if not _is_stream(name)}
    if all(name in files for name in sources):
        found = cache / _key([files[name] for name in sources], options)
        if (found / "corpus.json").is_file():
            return Corpus(found).named(sources)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=_BUILDING, dir=cache))
    except OSError as error:
        raise _cannot_write(cache, error) from error
    try:
        with held(building):
            return _build(sources, files, options, building, workers, reporter)
    except OSError as error:
        raise _cannot_write(cache, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _build(
    sources: Sequence[str],
    files: dict[str, SourceFile],
    options: TextOptions,
    building: Path,
    workers: int,
    reporter: Reporter,
) -> Corpus:
    """Tokenize into the folder ``building``, then give it its final name."""
    if all(name in files for name in sources) and sum(files[name].size for name in sources) < _WORTH_PROCESSES_BYTES:
        workers = 1
    types: dict[str, int] = {}
    lengths = [np.zeros(0, dtype=np.int64)]
    raw = building / "tokens.raw"
    streams = {display_name(name): _StreamDigest() for name in sources if name not in files}
    blocks = _watched(line_blocks(sources, mode=options.mode, errors=options.errors), streams)
    done = 0
    with (
        raw.open("wb") as file,
        reporter.progress("reading text", None, "tokens") as progress,
        BlockWorkers(_number, options, workers if workers > 1 else 0) as processes,
    ):
        for block in processes.map(blocks):
            numbers = np.array([types.setdefault(text, len(types)) for text in block.types], dtype=np.uint32)
            file.write(numbers[block.tokens].tobytes())
            lengths.append(block.lengths)
            done += len(block.tokens)
            progress.update(done)
    if not done:
        raise DataError(
            "there is no token in the text",
            where=Place(", ".join(map(display_name, sources))),
            fix="name a text of at least one word",
        )
    all_lengths = np.concatenate(lengths)
    read = [files[name] if name in files else streams[display_name(name)].source_file(name) for name in sources]
    info = CorpusInfo(
        sources=tuple(read),
        mode=options.mode,
        tokenizer=options.tokenizer_record(),
        sentences=len(all_lengths),
        empty_sentences=int((all_lengths == 0).sum()),
        tokens=done,
        types=len(types),
    )
    write_corpus(building, info, raw, all_lengths.cumsum(), list(types))
    raw.unlink()
    final = building.parent / _key(read, options)
    try:
        os.replace(building, final)
    except OSError:
        if not final.exists():  # else another process, or an earlier run that read from a pipe, has prepared the same
            raise
    return Corpus(final).named([file.name for file in read])


def _key(files: Iterable[SourceFile], options: TextOptions) -> str:
    """Return the name of a prepared corpus: the same for the same contents read in the same way."""
    mode = options.mode if options.column == 1 else f"{options.mode}, column {options.column}"
    what = [FORMAT, [file.sha256 for file in files], mode, options.errors, options.tokenizer_record()]
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:32]


def _number(lines: list[Line], options: TextOptions, tokenizer: Tokenizer | None) -> _Numbered:
    """Tokenize a block and number its types in order of appearance."""
    types: dict[str, int] = {}
    tokens: list[int] = []
    lengths: list[int] = []
    for sentence in sentences_of_block(lines, mode=options.mode, tokenizer=tokenizer, column=options.column):
        tokens.extend([types.setdefault(token, len(types)) for token in sentence.tokens])
        lengths.append(len(sentence.tokens))
    return _Numbered(list(types), np.array(tokens, dtype=np.uint32), np.array(lengths, dtype=np.int64))


class _StreamDigest:
    """Content hash of a source that can be read only once, taken while it is read."""

    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.size = 0

    def add(self, text: str) -> None:
        raw = text.encode() + b"\n"
        self.hash.update(raw)
        self.size += len(raw)

    def source_file(self, name: str) -> SourceFile:
        return SourceFile(display_name(name), self.hash.hexdigest(), self.size)


def _watched(blocks: Iterator[list[Line]], streams: dict[str, _StreamDigest]) -> Iterator[list[Line]]:
    """Pass blocks on, adding the lines of streams to their digests."""
    for lines in blocks:
        for line in lines if streams else ():
            if line.place.source in streams:
                streams[line.place.source].add(line.text)
        yield lines


def _source_file(name: str) -> SourceFile:
    """Return a file's record, its SHA-256 taken from the bytes as stored."""
    try:
        with open(name, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return SourceFile(name, digest, os.fstat(file.fileno()).st_size)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=Place(name)) from error


def _is_stream(name: str) -> bool:
    """Tell whether a source can be read only once: standard input, a pipe, a device."""
    return name == STDIN or not os.path.isfile(name)


def _cannot_write(cache: Path, error: OSError) -> OutputError:
    return OutputError(
        f"cannot write the prepared corpus: {error.strerror or error}",
        where=Place(str(cache)),
        fix="set ELMO_CACHE to a folder that can be written and has room",
    )
