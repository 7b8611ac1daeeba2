"""An index of the tokens of a corpus by their vectors: made, added to, opened."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from elmo_cli.embedding.write import SentenceEmbedder
from elmo_cli.errors import ConfigError, DataError, ModelError, OutputError, Place
from elmo_cli.locks import is_free
from elmo_cli.neighbors.corpus_text import CorpusText
from elmo_cli.neighbors.index_info import IndexInfo, ModelMark, PartInfo, damaged, read_info, write_info
from elmo_cli.neighbors.part import Part, StoredSentence
from elmo_cli.neighbors.part_writer import write_part
from elmo_cli.neighbors.selecting import TokenSelection
from elmo_cli.reporting import Reporter
from elmo_cli.storage.files import output_error, whole_folder
from elmo_cli.text.sources import display_name
from elmo_cli.text.workers import SentenceReader

_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A word where it stands in the corpus.

    Attributes:
        part: number of the part of the index, from 0.
        row: of its first token in that part.
        length: tokens it is.
    """

    part: int
    row: int
    length: int = 1


@dataclass(frozen=True, slots=True)
class Work:
    """All that making a part needs.

    Attributes:
        text: to be read.
        reader: of sentences; None for one without processes of its own.
        embedder: computes the vectors.
        selection: which tokens are kept.
    """

    text: CorpusText
    reader: SentenceReader | None
    embedder: SentenceEmbedder
    selection: TokenSelection


class NothingKept(DataError):
    """There is no token that an index could keep."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(
            f"there is no token to index in {', '.join(names)}", fix="name a text of words, or choose fewer filters"
        )


class Index:
    """An index that is open for reading.

    Args:
        folder: of the index.
        names: of the texts of its one part, where they are called otherwise now; None for those that it knows.

    Raises:
        DataError: there is no index, or it is damaged.
    """

    def __init__(self, folder: Path, names: Sequence[str] | None = None) -> None:
        self.folder = folder
        self.info = read_info(folder)
        if names is not None:
            self.info = replace(self.info, parts=(replace(self.info.parts[0], sources=tuple(names)),))

    @cached_property
    def parts(self) -> list[Part]:
        """The parts, in order."""
        return [Part(self.folder, info) for info in self.info.parts]

    def require_model(self, mark: ModelMark) -> None:
        """Refuse a model that did not make this index.

        Raises:
            ModelError: both are named.
        """
        if mark.fingerprint != self.info.model.fingerprint:
            raise ModelError(
                f"the index is of the model {self.info.model}, not of {mark}",
                where=Place(str(self.folder)),
                fix=f"choose -m {self.info.model.name}, or build an index with the other model",
            )

    def require_layer(self, layer: int) -> None:
        """Refuse a layer that is not stored.

        Raises:
            ConfigError: those that are stored are named.
        """
        if layer != 0 and layer not in self.info.layers:
            stored = ", ".join(map(str, sorted({0, *self.info.layers})))
            wanted = ",".join(map(str, sorted({*self.info.layers, layer})))
            raise ConfigError(
                f"the index {self.folder} has no layer {layer}; it has {stored}",
                fix=f"choose --layer {self.info.layers[-1]}, or build it with --layers {wanted}",
            )

    def place(self, occurrence: Occurrence) -> tuple[StoredSentence, int, int]:
        """Return the sentence of an occurrence, the number of its first token in it, and its line."""
        part = self.parts[occurrence.part]
        row = part.rows[occurrence.row]
        return part.sentence(int(row["sentence"])), int(row["token"]), int(row["line"])


def create_index(folder: Path, info: IndexInfo, work: Work, *, force: bool, reporter: Reporter) -> Index:
    """Make an index; it appears whole or not at all.

    Args:
        folder: where to.
        info: all but the parts.
        work: how.
        force: replace what is there.
        reporter: told about progress.

    Raises:
        OutputError: there is something and ``force`` is false, or it cannot be written.
        DataError: the text cannot be read, or holds no token to keep.
    """
    with whole_folder(folder, replace=force) as building:
        (building / "part-1").mkdir()
        part = _build_part(building / "part-1", info, work, reporter)
        write_info(building, replace(info, parts=(part,)))
    return Index(folder)


def append_to_index(folder: Path, work: Callable[[IndexInfo], Work], *, reporter: Reporter) -> Index:
    """Add a part to an index, which stays as it was until the part is whole.

    Args:
        folder: of the index.
        work: how, given what the index says of itself.
        reporter: told about progress.

    Raises:
        OutputError: another process is adding to it, or it cannot be written.
        DataError: there is no index, the text cannot be read, or holds no token to keep.
    """
    read_info(folder)
    with alone(folder):
        info = read_info(folder)
        name = f"part-{1 + max((_number(part) for part in info.parts), default=0)}"
        building = folder / name
        try:
            shutil.rmtree(building, ignore_errors=True)  # what a kill has left; no index.json names it
            building.mkdir()
            part = _build_part(building, info, work(info), reporter)
            # An approximate index knows nothing of the new part.
            write_info(folder, replace(info, parts=(*info.parts, part), approximate={}))
            for graph in info.approximate.values():
                (folder / graph).unlink(missing_ok=True)
        except BaseException as error:
            _discard(folder, name)
            if isinstance(error, OSError):
                raise output_error(folder, error) from error
            raise
    return Index(folder)


def _discard(folder: Path, name: str) -> None:
    """Remove a part that is not whole; one that index.json names already is, and the stop came just behind that."""
    with suppress(DataError):
        if all(part.folder != name for part in read_info(folder).parts):
            shutil.rmtree(folder / name, ignore_errors=True)


def _number(part: PartInfo) -> int:
    return int(part.folder.rpartition("-")[2])


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep all others from changing an index meanwhile; they may read it.

    Raises:
        OutputError: another process is changing it, or it cannot be written.
    """
    try:
        file = (folder / _LOCK).open("w", encoding="utf-8")
    except OSError as error:
        raise output_error(folder, error) from error
    with file:
        if not is_free(file, alone=True):
            raise OutputError(f"another process is adding to {folder}", fix="wait until it is done")
        yield


def _build_part(folder: Path, info: IndexInfo, work: Work, reporter: Reporter) -> PartInfo:
    with reporter.progress("indexing", None, "tokens") as progress:
        part = write_part(
            folder,
            work.text.read(work.reader),
            [display_name(source) for source in work.text.sources],
            work.embedder,
            info.layers,
            vector_dim=info.vector_dim,
            selection=work.selection,
            progress=progress,
        )
    if not part.rows:
        raise NothingKept(part.sources)
    return part


def check_parts(index: Index, *, block: int = 1 << 14) -> None:
    """Read all vectors of an index and compare them with the sums of their rows.

    Raises:
        DataError: something is not as it was written.
    """
    for part in index.parts:
        for layer in index.info.layers:
            for start in range(0, part.info.rows, block):
                part.vectors(layer, slice(start, start + block))
        if len(part.rows) != part.info.rows:
            raise damaged(index.folder, f"{part.info.folder} has {len(part.rows):,} rows, not {part.info.rows:,}")
