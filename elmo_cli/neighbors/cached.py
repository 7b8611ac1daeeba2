"""The index of a corpus that is named for one query: made on the way, and kept in the user's cache for the next."""

import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Final

from elmo_cli.embedding.write import SentenceEmbedder
from elmo_cli.errors import DataError, ElmoError, Place
from elmo_cli.neighbors.corpus_text import CorpusText
from elmo_cli.neighbors.index import Index, NothingKept, Work, create_index
from elmo_cli.neighbors.index_info import FORMAT, IndexInfo
from elmo_cli.neighbors.matching import Form
from elmo_cli.neighbors.query import absent
from elmo_cli.neighbors.selecting import TokenSelection
from elmo_cli.reporting import Reporter
from elmo_cli.storage.pruning import mark_used, prune
from elmo_cli.text.sources import STDIN, display_name
from elmo_cli.text.workers import SentenceReader

DEMO_FILE: Final = "demo/senses.tsv"


@dataclass(frozen=True, slots=True)
class OnTheFly:
    """All that making an index on the way needs.

    Attributes:
        text: the corpus.
        info: of the index to be, without its parts.
        embedder: returns what computes the vectors; called only if there is something to compute.
        workers: processes that tokenize.
        cache: its folder ``neighbors`` holds such indexes, and is kept small as `prune` tells.
        reporter: told what is done.
    """

    text: CorpusText
    info: IndexInfo
    embedder: Callable[[], SentenceEmbedder]
    workers: int
    cache: Path
    reporter: Reporter

    @contextmanager
    def index(self, forms: Sequence[Form] | None) -> Iterator[Index]:
        """Give an index of the corpus.

        Only the sentences of the words are embedded, so that the first answer comes soon; a whole index that an
        earlier query has left is taken instead.

        Args:
            forms: of the words that have to be in it; None for all words.

        Raises:
            DataError: a text cannot be read, or holds no token.
        """
        names = [display_name(source) for source in self.text.sources]
        with ExitStack() as leaving:
            if any(_is_stream(source) for source in self.text.sources):
                folder = Path(leaving.enter_context(tempfile.TemporaryDirectory(prefix="elmo-"))) / "stream.idx"
                yield self._build(folder, forms)
                return
            digests = [_digest(source) for source in self.text.sources]
            target = self._folder(digests, None)
            index = self._open(target, names)
            if index is None and forms is not None:
                target = self._folder(digests, forms)
                index = self._open(target, names)
            if index is None:
                index = self._build(self._writable(target, leaving), forms)
                prune(target.parent)
            yield index

    def _folder(self, digests: Sequence[str], forms: Sequence[Form] | None) -> Path:
        info = self.info
        reading = {**info.reading.to_json(), "tokenizer": info.reading.options.tokenizer_record()}
        what = [FORMAT, digests, reading, info.model.fingerprint, info.layers, forms and sorted(set(forms))]
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
        return self.cache / "neighbors" / key[:32]

    def _open(self, folder: Path, names: Sequence[str]) -> Index | None:
        """Return the index in a folder; None if there is none, or a damaged one, which is made again."""
        if not mark_used(folder):
            return None
        try:
            index = Index(folder, names)
            return index if index.parts else None
        except ElmoError:
            return None

    def _writable(self, folder: Path, leaving: ExitStack) -> Path:
        """Return the folder, or one for this time alone where the cache cannot be written."""
        try:
            folder.parent.mkdir(parents=True, exist_ok=True)
            probe = folder.parent / f".{secrets.token_hex(8)}"
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            self.reporter.warn(f"cannot keep the index for the next query: {folder.parent}: {error.strerror}")
            temporary = tempfile.mkdtemp(prefix="elmo-")
            leaving.callback(shutil.rmtree, temporary, ignore_errors=True)
            return Path(temporary) / "corpus.idx"
        return folder

    def _build(self, folder: Path, forms: Sequence[Form] | None) -> Index:
        """Make the index, of all words or of some.

        Raises:
            DataError: there is no token, or none of the words.
        """
        selection = TokenSelection(forms=forms, met=None if forms is None else set())
        only = None if forms is None else [" ".join(form) for form in dict.fromkeys(forms)]
        info = replace(self.info, selection={"only": only})
        with SentenceReader(self.text.reading.options, self.workers) as reader:
            work = Work(self.text, reader, self.embedder(), selection)
            try:
                return create_index(folder, info, work, force=True, reporter=self.reporter)
            except NothingKept:
                if not selection.met or not only:
                    raise
                raise absent(only[0], selection.met, list(map(display_name, self.text.sources))) from None


@contextmanager
def demo_corpus() -> Iterator[Path]:
    """Give the file of the demonstration sentences that ship with the package.

    Raises:
        DataError: it is not there.
    """
    with resources.as_file(resources.files("elmo_cli.neighbors").joinpath(DEMO_FILE)) as path:
        if not path.is_file():
            raise DataError("the demonstration corpus is not installed", fix="name a corpus: --corpus FILE")
        yield path


def _is_stream(source: str) -> bool:
    return source == STDIN or not os.path.isfile(source)


def _digest(source: str) -> str:
    try:
        with open(source, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=Place(source)) from error
