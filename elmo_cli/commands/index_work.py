"""The work of `elmo index` once its command line is understood."""

from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elmo_cli.commands import console
from elmo_cli.commands.asked_model import AskedModel
from elmo_cli.commands.occurrence_options import reading_told
from elmo_cli.commands.options import reading_workers
from elmo_cli.commands.streams import note_terminal
from elmo_cli.embedding.selection import parse_layers
from elmo_cli.errors import ConfigError, TargetExists
from elmo_cli.reporting import Reporter
from elmo_cli.text.sources import STDIN

if TYPE_CHECKING:
    from elmo_cli.neighbors.corpus_text import CorpusText, Reading
    from elmo_cli.neighbors.index import Index, Work
    from elmo_cli.neighbors.index_info import IndexInfo
    from elmo_cli.neighbors.selecting import TokenSelection
    from elmo_cli.text.workers import SentenceReader

_SEED = 1  # of the tokens by which an approximate index is measured
_UNSEEN_NAMED = 5  # words of a list, in a note


@dataclass(frozen=True, slots=True)
class Chosen:
    """What an index keeps, as the options of the command tell."""

    layers: str
    only: str | None
    min_count: int
    stop_words: bool
    punctuation: bool


@dataclass(frozen=True)
class IndexWork:
    """Makes an index, or adds to one. The attributes are what the options of the command tell."""

    model: AskedModel
    corpus: list[str]
    mode: str | None
    reading: "Reading"
    text_col: str | None
    lang: str | None
    workers: int | None
    reporter: Reporter

    def create(self, output: Path, chosen: Chosen, *, force: bool) -> "Index":
        """Make an index."""
        from elmo_cli.neighbors.index import create_index
        from elmo_cli.neighbors.index_info import INFO_FILE, IndexInfo
        from elmo_cli.neighbors.selecting import read_word_list

        if output.exists() and not force:
            raise TargetExists(f"{output} exists", fix="add to it with --append, or replace it with --force")
        if output.exists() and not (output / INFO_FILE).is_file():
            raise TargetExists(f"{output} exists and is no index, so it is not replaced", fix="choose another -o")
        text = self._text(self.lang or self.model.config.language)
        layers = parse_layers(chosen.layers, self.model.config.bilm.layer_count).indices
        if layers is None:
            raise ConfigError("an index keeps layers, not their average", fix="choose top, all, or numbers such as 0,2")
        selection = {
            "only": None if chosen.only is None else read_word_list(chosen.only),
            "min_count": chosen.min_count,
            "stop_words": chosen.stop_words,
            "punctuation": chosen.punctuation,
        }
        info = IndexInfo(self.model.mark, layers, self.model.config.bilm.vector_dim, text.reading, selection)
        with ExitStack() as leaving:
            work = self._work(text, selection, leaving)
            made = create_index(output, info, work, force=force, reporter=self.reporter)
        self._note_unseen(work.selection)
        return made

    def append(self, output: Path) -> "Index":
        """Add to an index."""
        from elmo_cli.neighbors.index import Index, append_to_index
        from elmo_cli.neighbors.repeated import texts_twice

        index = Index(output)
        self.model.fit(index)
        old = index.info.reading
        text = self._text(self.lang or old.language)
        new = text.reading
        if (new.language, new.options.needs_tokenizer) != (old.language, old.options.needs_tokenizer):
            raise ConfigError(
                f"the index was read as {old} in the language {old.language}, this text as {new} in {new.language}",
                fix="choose --input and --lang so that both are cut into tokens alike",
            )
        with ExitStack() as leaving:
            reader = leaving.enter_context(self._reader(text))

            def work(info: "IndexInfo") -> "Work":
                return self._work(text, info.selection, leaving, reader)

            grown = append_to_index(output, work, reporter=self.reporter)
        for name in texts_twice(grown):
            self.reporter.note(f"{name} was in the index already, and is in it twice now")
        return grown

    def _text(self, language: str) -> "CorpusText":
        from elmo_cli.neighbors.corpus_text import CorpusText

        asked = replace(self.reading, language=language, text_col=self.text_col)
        reading = reading_told(self.corpus, asked, self.mode, self.reporter)
        note_terminal(self.corpus, self.reporter)
        return CorpusText(self.corpus, reading)

    def _reader(self, text: "CorpusText") -> "SentenceReader":
        from elmo_cli.text.workers import SentenceReader

        return SentenceReader(text.reading.options, reading_workers(self.workers, text.reading.options))

    def _work(
        self,
        text: "CorpusText",
        chosen: "Any",  # noqa: ANN401 (what index.json says)
        leaving: ExitStack,
        reader: "SentenceReader | None" = None,
    ) -> "Work":
        from elmo_cli.neighbors.index import Work

        reader = reader or leaving.enter_context(self._reader(text))
        embedder = self.model.embedder
        return Work(text, reader, embedder, self._selection(text, chosen, reader))

    def _selection(self, text: "CorpusText", chosen: "Any", reader: "SentenceReader") -> "TokenSelection":  # noqa: ANN401
        from elmo_cli.neighbors.corpus_text import Splitter
        from elmo_cli.neighbors.matching import word_forms
        from elmo_cli.neighbors.selecting import TokenSelection, frequent_types, stop_words_of

        forms = frequent = None
        if chosen["only"] is not None:
            with Splitter(text.reading, reading_workers(self.workers, text.reading.options)) as splitter:
                pieces = splitter.split(chosen["only"])
            forms = [form for word, cut in zip(chosen["only"], pieces, strict=True) for form in word_forms(word, cut)]
        if chosen["min_count"] > 1:
            if STDIN in text.sources:
                raise ConfigError(
                    "--min-count reads the text twice, which standard input does not allow", fix="save it in a file"
                )
            self.reporter.note("counting words")
            frequent = frequent_types((sentence.tokens for _, sentence in text.read(reader)), chosen["min_count"])
        stop_words = frozenset() if chosen["stop_words"] else stop_words_of(text.reading.language)
        return TokenSelection(forms, stop_words, chosen["punctuation"], frequent)

    def _note_unseen(self, selection: "TokenSelection") -> None:
        unseen = [" ".join(form) for form in selection.unseen]
        if unseen:
            shown = ", ".join(unseen[:_UNSEEN_NAMED]) + (", ..." if len(unseen) > _UNSEEN_NAMED else "")
            self.reporter.note(f"{len(unseen):,} of the words do not occur: {shown}")


def add_graphs(output: Path, reporter: Reporter) -> None:
    """Make the approximate index of an index and say how good it is."""
    from elmo_cli.neighbors.approximate import add_approximate

    for layer, recall in add_approximate(output, seed=_SEED, reporter=reporter).items():
        reporter.note(f"approximate index of layer {layer}: finds {recall:.1%} of the 10 nearest, of 100 tokens")


def check_index(output: Path) -> None:
    """Read all of an index and print what it holds."""
    from elmo_cli.neighbors.index import Index, check_parts

    index = Index(output)
    check_parts(index)
    info = index.info
    console.answer_json(
        {
            "model": asdict(info.model),
            "layers": list(info.layers),
            "dim": info.vector_dim,
            "rows": info.rows,
            "types": len({word for part in index.parts for word in part.types}),
            "parts": [{"sources": list(part.sources), "tokens": part.tokens, "rows": part.rows} for part in info.parts],
            "approximate": sorted(info.approximate),
            "sound": True,
        }
    )


def summary(index: "Index") -> str:
    """Return what an index holds, in a line."""
    info, new = index.info, index.info.parts[-1]
    size = sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file())
    added = f"added {new.rows:,} of {new.tokens:,} tokens: " if len(info.parts) > 1 else ""
    read = f"{info.rows:,} of {sum(part.tokens for part in info.parts):,} tokens"
    layers = ", ".join(map(str, info.layers))
    return f"{added}{index.folder} holds {read}, layer {layers}, {size / 1e6:,.1f} MB (model {info.model.name})"
