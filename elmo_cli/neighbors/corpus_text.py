"""The texts that occurrences are looked for in: files as for every command, and tables with a column of sentences."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from types import TracebackType
from typing import Any, Final

from elmo_cli.errors import ConfigError, Place
from elmo_cli.text.compression import PACKED_SUFFIXES
from elmo_cli.text.reader import SUFFIXES, TextOptions, sentences_of_block
from elmo_cli.text.sentence import TOKEN, Sentence
from elmo_cli.text.sources import Line, find_sources, read_lines
from elmo_cli.text.stimuli import CELL_MODES, StimulusTable
from elmo_cli.text.tokenizer import Tokenizer
from elmo_cli.text.workers import BlockWorkers, SentenceReader

_GUESSED: Final = ("jsonl", "conllu", "conll")  # modes known by the suffix; "lines" is what else a file may be
_TABLE_SUFFIX: Final = ".tsv"
_TEXT_COLUMNS: Final = ("sentence", "text")


@dataclass(frozen=True, slots=True)
class Reading:
    """How a corpus is read, and with it the sentence of a query.

    Attributes:
        mode: one of `reader.INPUT_MODES`.
        language: of the tokenizer.
        errors: what to do with bytes that are not UTF-8.
        column: of the token; for ``conll`` alone.
        text_col: name of the column that holds the sentence; None where the corpus is no table.
    """

    mode: str = "lines"
    language: str = "en"
    errors: str = "strict"
    column: int = 1
    text_col: str | None = None

    def __str__(self) -> str:
        return f"--input {self.mode}" if self.text_col is None else f"a table, its sentences in {self.text_col!r}"

    @property
    def options(self) -> TextOptions:
        """How the text becomes sentences of tokens."""
        return TextOptions(self.mode, self.language, "replace" if self.errors == "replace" else "strict", self.column)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


class Splitter:
    """Cuts the sentences of queries into tokens as a corpus has them; a tokenized one is cut at its spaces.

    A context manager: a process of its own loads spaCy while this one may load torch.

    Args:
        reading: of the corpus.
        workers: 0 to do it in this process.
    """

    def __init__(self, reading: Reading, workers: int) -> None:
        options = TextOptions("lines", reading.language)
        spaces = not reading.options.needs_tokenizer
        self._workers = None if spaces else BlockWorkers(split_block, options, min(workers, 1))

    def __enter__(self) -> "Splitter":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._workers is not None:
            self._workers.close()

    def split(self, texts: Sequence[str]) -> list[list[str]]:
        """Return the tokens of each text.

        Raises:
            ConfigError: spaCy does not know the language.
        """
        if self._workers is None:
            return [TOKEN.findall(text) for text in texts]
        lines = [Line(text, Place("a query", number)) for number, text in enumerate(texts, start=1)]
        return [tokens for block in self._workers.map([lines]) for tokens in block]


def split_block(lines: Sequence[Line], options: TextOptions, tokenizer: Tokenizer | None) -> list[list[str]]:
    """Return the tokens of each line: the work of a `Splitter`'s process."""
    sentences = sentences_of_block(lines, mode=options.mode, tokenizer=tokenizer)
    return [sentence.tokens for sentence in sentences]


def guess_reading(arguments: Sequence[str], reading: Reading, mode: str | None) -> Reading:
    """Return how texts are read whose form is not named: by the suffix of the first, ``lines`` where it says nothing.

    A ``.tsv`` is a table if its first row has a column ``sentence`` or ``text``.

    Raises:
        DataError: a ``.tsv`` is missing or cannot be read.
    """
    if mode is not None or reading.text_col is not None:
        return replace(reading, mode=mode or reading.mode)
    first = arguments[0] if arguments else ""
    name = _unpacked_name(first)
    for guess in _GUESSED:
        if name.endswith(SUFFIXES[guess]):
            return replace(reading, mode=guess)
    if name.endswith(_TABLE_SUFFIX):
        return replace(reading, text_col=_text_column(find_sources([first], (_TABLE_SUFFIX,))[0], reading))
    return reading


def lacks_text_column(source: str) -> bool:
    """Tell whether a file that `guess_reading` takes for lines looks like a table by its name."""
    return _unpacked_name(source).endswith(_TABLE_SUFFIX)


def _unpacked_name(source: str) -> str:
    return next((source.removesuffix(packed) for packed in PACKED_SUFFIXES if source.endswith(packed)), source)


def _text_column(source: str, reading: Reading) -> str | None:
    head = next(read_lines(source, errors=reading.options.errors), None)
    names = head.text.split("\t") if head is not None else []
    return next((name for name in _TEXT_COLUMNS if name in names), None)


class CorpusText:
    """Texts that can be read, once or again.

    Args:
        arguments: files, folders, patterns or ``-``.
        reading: how.

    Attributes:
        sources: the files they name.

    Raises:
        DataError: a file is missing.
        ConfigError: a table is to be read in a way that does not go.
    """

    def __init__(self, arguments: Sequence[str], reading: Reading) -> None:
        suffixes = (_TABLE_SUFFIX,) if reading.text_col is not None else SUFFIXES[reading.mode]
        self.reading = reading
        self.sources = find_sources(arguments, suffixes)
        if reading.text_col is not None and reading.mode not in CELL_MODES:
            raise ConfigError(
                f"a column of a table cannot be read with --input {reading.mode}",
                fix=f"choose {' or '.join(CELL_MODES)}, or leave out --text-col",
            )

    def read(self, reader: SentenceReader | None) -> Iterator[tuple[int, Sentence]]:
        """Yield the number of the source, from 0, and each sentence, in order and in constant memory.

        Args:
            reader: reads texts that are no tables; None for a new one without processes of its own.
        """
        if self.reading.text_col is not None:
            tokenizer = self.reading.options.make_tokenizer()
            for number, source in enumerate(self.sources):
                table = StimulusTable(source, self.reading.text_col, errors=self.reading.options.errors)
                for stimulus in table.stimuli(mode=self.reading.mode, tokenizer=tokenizer):
                    cells = zip(table.columns, stimulus.cells, strict=True)
                    fields = {name: cell for name, cell in cells if name != self.reading.text_col}
                    yield number, replace(stimulus.sentence, fields=fields)
            return
        reader = reader or SentenceReader(self.reading.options, 0)
        for number, source in enumerate(self.sources):
            for sentence in reader.read([source]):
                yield number, sentence
