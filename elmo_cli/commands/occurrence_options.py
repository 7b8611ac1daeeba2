"""What `elmo neighbors`, `elmo senses` and `elmo index` share: their options, and the model and corpus behind them."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmo_cli import settings
from elmo_cli.commands.asked_model import AskedModel
from elmo_cli.commands.command import ElmoCommand
from elmo_cli.commands.options import check_column, complete_from, reading_workers
from elmo_cli.commands.streams import note_terminal
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from elmo_cli.neighbors.corpus_text import Reading, Splitter
    from elmo_cli.neighbors.index import Index
    from elmo_cli.neighbors.matching import Form
    from elmo_cli.neighbors.spelling import SpellingEmbedder

CorpusOption = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus",
        metavar="FILE...",
        help="Texts to look in: files, folders or -; several may stand behind one --corpus.  [default: the "
        "demonstration sentences that ship with elmo]",
    ),
]
IndexOption = Annotated[
    Path | None, typer.Option("--index", metavar="INDEX", help="An index of `elmo index` to look in, for many queries.")
]
InputGuessed = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="MODE",
        autocompletion=complete_from("lines", "text", "tokens", "jsonl", "conll", "conllu"),
        help="What the text is, as for elmo embed: lines, text, tokens, jsonl, conll or conllu.  [default: by the "
        "suffix, else lines]",
    ),
]
TextCol = Annotated[
    str | None,
    typer.Option(
        "--text-col",
        metavar="NAME",
        help="The texts are tables (TSV with a header), their sentences this column.  [default for .tsv: sentence or "
        "text]",
    ),
]
LayerOption = Annotated[
    str | None,
    typer.Option(
        "--layer",
        metavar="N",
        autocompletion=complete_from("top"),
        help="Layer that is compared: top or a number, 0 the char CNN.",
    ),
]
IgnoreCase = Annotated[
    bool,
    typer.Option("--ignore-case", help="Take upper and lower case for the same; else only where there is no other."),
]

AnswerFormat = Annotated[
    str | None,
    typer.Option(
        "-f",
        "--format",
        metavar="FORMAT",
        autocompletion=complete_from("text", "tsv", "jsonl"),
        help="text, tsv or jsonl.  [default: text on a terminal, else tsv]",
    ),
]
AnswerWidth = Annotated[
    int | None, typer.Option("--width", metavar="N", min=1, help="Columns of -f text.  [default: the terminal's]")
]


class ManyCorpora(ElmoCommand):
    """A command in which several files may stand behind one ``--corpus``, as a shell's pattern puts them there.

    Those behind the first are taken only if they exist, so that a word and its sentence may stand there too.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:  # noqa: ANN401 (Typer's own types)
        """Put ``--corpus`` before each of its files."""
        spread: list[str] = []
        first = more = False  # whether the next word is the first text, or may be a further one
        for number, word in enumerate(args):
            if word == "--":
                spread += args[number:]
                break
            if first:
                first, more = False, True
            elif word == "--corpus":
                first, more = True, False
            elif word.startswith("--corpus="):
                more = True
            elif more and not word.startswith("-") and _exists(word):
                spread.append("--corpus")
            else:
                more = False
            spread.append(word)
        return super().parse_args(ctx, spread)


def _exists(word: str) -> bool:
    try:
        return Path(word).exists()
    except (OSError, ValueError):  # longer than a name may be, or a NUL in it: a sentence
        return False


@dataclass
class Source:
    """A model, and the corpus or index whose occurrences are looked at.

    Attributes:
        model: that was asked for.
        corpus: texts that were named, if any.
        index_folder: of the index that was named, if one was.
        reading: how the texts are read, as far as it was said.
        mode: of the texts; None where it was not said.
        lang: language of the tokenizer, if it was said.
        layer: as it was asked for.
        workers: processes that tokenize, if it was said.
        reporter: takes notes.
    """

    model: AskedModel
    corpus: Sequence[str]
    index_folder: Path | None
    reading: "Reading"
    mode: str | None
    lang: str | None
    layer: str | None
    workers: int | None
    reporter: Reporter
    _open: ExitStack = field(default_factory=ExitStack)

    def __enter__(self) -> "Source":
        return self

    def __exit__(self, *problem: object) -> None:
        self._open.close()

    def prepare(self) -> None:
        """Find all that was named, before anything heavy is loaded.

        Raises:
            ElmoError: something is not there, or does not fit the rest.
        """
        from elmo_cli.neighbors.cached import demo_corpus
        from elmo_cli.neighbors.corpus_text import CorpusText
        from elmo_cli.neighbors.index import Index

        if self.index_folder is not None:
            if self.corpus:
                raise ConfigError("--corpus and --index exclude each other", fix="leave one of them out")
            self._index: Index | None = Index(self.index_folder)
            check_column(self.reading.column, self.mode or self._index.info.reading.mode)
            self.reading = self._index.info.reading
            self.model.fit(self._index)
            self._index.require_layer(self.layer_number)
            return
        self._index = None
        corpus = list(self.corpus)
        if not corpus:
            corpus = [str(self._open.enter_context(demo_corpus()))]
            self.reporter.note("corpus: the demonstration sentences; --corpus FILE takes your own")
        reading = replace(self.reading, language=self.lang or self.model.config.language)
        self.reading = reading_told(corpus, reading, self.mode, self.reporter if self.corpus else None)
        note_terminal(corpus, self.reporter)
        self._text = CorpusText(corpus, self.reading)
        _ = self.layer_number  # refused now, if the model has no such layer

    @cached_property
    def layer_number(self) -> int:
        """The layer that is compared: as asked for, else the model's top layer, or the highest that an index has."""
        count = self.model.config.bilm.layer_count
        if self.layer is None and self._index is not None:
            return self._index.info.layers[-1]
        return parse_layer(self.layer or "top", count)

    @property
    def has_index(self) -> bool:
        """Whether an index was named."""
        return self._index is not None

    @cached_property
    def splitter(self) -> "Splitter":
        """What cuts the sentences of queries; a process of its own loads spaCy."""
        from elmo_cli.neighbors.corpus_text import Splitter

        return self._open.enter_context(Splitter(self.reading, self._workers()))

    def _workers(self) -> int:
        return reading_workers(self.workers, self.reading.options)

    @contextmanager
    def opened(self, forms: "Sequence[Form] | None", *, spelling: bool = False) -> "Iterator[Index]":
        """Give the index: the one named, or one of the texts.

        Args:
            forms: of the words that have to be in it; None for all words.
            spelling: whether layer 0 is enough.
        """
        from elmo_cli.neighbors.cached import OnTheFly
        from elmo_cli.neighbors.index_info import IndexInfo

        if self._index is not None:
            yield self._index
            return
        layer = 0 if spelling else self.layer_number
        info = IndexInfo(self.model.mark, (layer,), self.model.config.bilm.vector_dim, self.reading)
        embedder = self._spelling if layer == 0 else lambda: self.model.embedder
        cache = settings.cache_folder()
        with OnTheFly(self._text, info, embedder, self._workers(), cache, self.reporter).index(forms) as index:
            yield index

    def _spelling(self) -> "SpellingEmbedder":
        from elmo_cli.neighbors.spelling import SpellingEmbedder

        return SpellingEmbedder(self.model.embedder.bilm, self.model.embedder.device)


def reading_told(corpus: Sequence[str], reading: "Reading", mode: str | None, reporter: Reporter | None) -> "Reading":
    """Return how texts are read; a guess is told.

    Args:
        corpus: the texts.
        reading: as far as it was said.
        mode: that was asked for, if any.
        reporter: told what was guessed; None where nobody asked for these texts.

    Raises:
        ConfigError: there is no such mode, or no column to choose in this one.
    """
    from elmo_cli.neighbors.corpus_text import guess_reading, lacks_text_column

    if mode is not None:
        check_column(reading.column, mode)
    found = guess_reading(corpus, reading, mode)
    check_column(reading.column, found.mode)
    if reporter is not None and mode is None:
        if (found.mode, found.text_col) != ("lines", reading.text_col):
            reporter.note(f"reading {corpus[0]} as {found}")
        elif found.text_col is None and lacks_text_column(corpus[0]):
            reporter.note(f"{corpus[0]} has no column 'sentence' or 'text', so it is read as lines; see --text-col")
    return found


def refuse_empty(word: str) -> None:
    """Refuse a word without a character.

    Raises:
        ConfigError: it is empty or white space.
    """
    if not word.strip():
        raise ConfigError("the word is empty", fix="name a word")


def parse_layer(text: str, count: int) -> int:
    """Return the number of a layer of a model with ``count`` layers.

    Raises:
        ConfigError: there is no such layer.
    """
    known = {"top": count - 1, **{str(number): number for number in range(count)}}
    if text not in known:
        raise ConfigError(
            f"the model has no layer {text}", fix=f"choose --layer top, or a number from 0 to {count - 1}"
        )
    return known[text]
