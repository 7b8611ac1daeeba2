"""`elmo mix predict` and `elmo mix score`: the labels that a mix's head gives, and how good they are."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands.mix_options import (
    EncoderOption,
    Json,
    LabelColumn,
    MixModel,
    MixPath,
    TextColumn,
    check_output,
    find_identity,
    make_tokenizer,
    open_encoder,
)
from elmo_cli.commands.mix_tables import print_score
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Device,
    EncodingErrorsOption,
    Force,
    ModelLang,
    Threads,
    choose,
    complete_from,
    refuse_own_input,
    use_threads,
)
from elmo_cli.commands.streams import note_terminal, output_stream, show_answer_alone
from elmo_cli.errors import ConfigError, Place
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from elmo_cli.mixing.layouts import Layout
    from elmo_cli.mixing.predict import Predictor
    from elmo_cli.storage.mix_file import MixFile

_File = Annotated[str, typer.Argument(metavar="FILE", help="The text: a file, or - for standard input.  [default: -]")]
_Input = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="MODE",
        autocompletion=complete_from("conll", "conllu", "tsv", "jsonl", "lines", "tokens"),
        help="How the text is laid out: conll, conllu, tsv, jsonl, lines or tokens.  [default: by its name, else by "
        "its first lines]",
    ),
]


def predict(
    ctx: typer.Context,
    mix: MixPath,
    file: _File = "-",
    model: MixModel = None,
    encoder: EncoderOption = None,
    input_mode: _Input = None,
    column: TextColumn = None,
    label_column: LabelColumn = None,
    lang: ModelLang = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Label text with the head of a mix.

    The text comes out as it came in, with the labels put in. In conll and conllu they stand in the column of the label,
    or behind the last column of rows that are shorter than those learned on; in tsv before the text; in jsonl as tags
    or label, beside the tokens they belong to. Of plain lines each token becomes a row, token and label parted by a
    tab, with a blank line behind each sentence; where the mix labels sentences, the label and a tab stand before the
    line.
    """
    from elmo_cli.mixing.fill_in import fill_in, slots_of
    from elmo_cli.mixing.label_sets import has_json_labels
    from elmo_cli.mixing.layouts import LABELLED, PLAIN, open_text

    reporter: Reporter = ctx.obj
    asked = _Asked(mix, model, encoder, device, reporter)
    if output is not None and str(output) != "-":
        check_output(output, force=force)
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    mode = None if input_mode is None else choose("--input", input_mode, (*LABELLED, *PLAIN))
    note_terminal([file], reporter)
    show_answer_alone(output, reporter)
    task = asked.mix.task
    text = open_text(file, mode, errors=errors, own_mode=task.input, own_columns=task.columns)
    refuse_own_input([output], [text.name, *asked.sources])
    if text.how:
        reporter.note(f"{text.name}: {text.layout_told}")
    layout = layout_for(text.mode, column, label_column, asked.mix)
    tokenizer = make_tokenizer(layout, lang or task.language)
    columns = task.columns if text.mode == task.input else 0
    # Who has named the column knows what is replaced.
    told = reporter if label_column is None else None
    as_json = has_json_labels(asked.mix)
    slots = slots_of(text, layout, task.unit, tokenizer, columns, reporter=told, as_json=as_json)
    use_threads(threads)
    predictor = asked.predictor()
    done = 0
    with output_stream(output) as stream, reporter.progress("labelling", None, "sentences") as progress:
        for lines in fill_in(slots, predictor.labels):
            stream.write(lines.encode("utf-8", errors="surrogatepass"))
            done += 1
            progress.update(done)
    asked.tell_coverage()


def score(
    ctx: typer.Context,
    mix: MixPath,
    file: _File = "-",
    model: MixModel = None,
    encoder: EncoderOption = None,
    input_mode: _Input = None,
    column: TextColumn = None,
    label_column: LabelColumn = None,
    lang: ModelLang = None,
    as_json: Json = False,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Score the head of a mix on labelled text.

    Prints the scores of all labels together and of each one: of spans by precision, recall and F1 as conlleval counts
    them, else accuracy, and for labels of sentences macro F1: the mean F1 of all labels in the text or predicted.
    """
    from elmo_cli.mixing.label_sets import check_gold, note_never_learned
    from elmo_cli.mixing.labelled import collect, read_examples
    from elmo_cli.mixing.layouts import LABELLED, open_text
    from elmo_cli.mixing.metrics import score_labels

    reporter: Reporter = ctx.obj
    asked = _Asked(mix, model, encoder, device, reporter)
    learned = asked.mix
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    mode = None if input_mode is None else choose("--input", input_mode, LABELLED)
    note_terminal([file], reporter)
    opened = open_text(file, mode, errors=errors)
    if opened.how:
        reporter.note(f"{opened.name}: {opened.layout_told}")
    layout = layout_for(opened.mode, column, label_column, learned)
    text = collect(opened.name, read_examples(opened, layout, make_tokenizer(layout, lang or learned.task.language)))
    if text.unit != learned.task.unit:
        message = f"in the text each {text.unit} has a label, the mix labels each {learned.task.unit}"
        raise ConfigError(message, where=Place(text.name), fix="choose a text of the kind that the mix was learned on")
    gold = [example.labels for example in text.examples]
    check_gold(gold, learned.task.labels, text.name)
    note_never_learned(gold, learned.task.labels, reporter)
    use_threads(threads)
    predicted = list(_watched(asked.predictor().labels(text.tokens), len(text.examples), reporter))
    found = score_labels(learned.task.metric, gold, predicted, of_tokens=text.unit == "token")
    print_score(found, as_json=as_json)
    asked.tell_coverage()


def _watched(labels: Iterable[Sequence[str]], total: int, reporter: Reporter) -> Iterator[Sequence[str]]:
    with reporter.progress("labelling", total, "sentences") as progress:
        for done, found in enumerate(labels, start=1):
            progress.update(done)
            yield found


def layout_for(mode: str, column: int | None, label_column: str | None, mix: "MixFile") -> "Layout":
    """Return the layout of a text: as told, else as that of the text that the mix was learned on."""
    from elmo_cli.mixing.layouts import Layout

    if mode == mix.task.input:
        return Layout(mode, column or mix.task.column, label_column or mix.task.label_column)
    return Layout(mode, column, label_column)


@dataclass(slots=True)
class _Asked:
    """The mix and the encoder that the command line names; both are found, and the encoder not yet loaded."""

    path: Path
    model: str | None
    vectors: str | None
    device: str
    reporter: Reporter
    mix: "MixFile" = field(init=False)
    _folder: Path | None = field(init=False)  # of the model; None for static vectors
    _coverage: object = field(default=None, init=False)

    def __post_init__(self) -> None:
        from elmo_cli.storage.mix_file import read_mix

        self.mix = read_mix(self.path)
        self._folder = find_identity(self.mix.encoder, self.model, self.vectors, Place(str(self.path)))

    @property
    def sources(self) -> list[str]:
        """Files that are read beside the text."""
        vectors = [] if self._folder is not None else [self.vectors or self.mix.encoder.source]
        return [str(self.path), *vectors]

    def predictor(self) -> "Predictor":
        """Load the encoder and the head."""
        from elmo_cli.mixing.predict import Predictor

        encoder = open_encoder(
            self.mix,
            self._folder,
            self.vectors,
            device=self.device,
            place=Place(str(self.path)),
            reporter=self.reporter,
        )
        self._coverage = getattr(encoder, "coverage", None)
        return Predictor(self.mix, encoder)

    def tell_coverage(self) -> None:
        """Say how many tokens had a static vector."""
        if self._coverage is not None:
            self.reporter.note(f"{self.mix.encoder.name}: {self._coverage}")
