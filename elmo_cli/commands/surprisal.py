"""`elmo surprisal`: how unexpected each token of a text is to a model."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    BatchTokens,
    Column,
    Device,
    EncodingErrorsOption,
    Force,
    Input,
    Model,
    ModelLang,
    Threads,
    check_column,
    choose,
    complete_from,
    refuse_existing,
    refuse_own_input,
    use_threads,
)
from elmo_cli.commands.streams import note_form, note_terminal, output_stream, show_answer_alone
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter, counted
from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli.text.reader import TextOptions
    from elmo_cli.text.stimuli import Stimulus

_UNITS = ("bits", "nats")


def surprisal(
    ctx: typer.Context,
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="Text: a file, or - for standard input.  [default: -]")
    ] = "-",
    model: Model = DEFAULT_MODEL,
    input_mode: Input = "lines",
    text_col: Annotated[
        str | None,
        typer.Option(
            "--text-col", metavar="NAME", help="FILE is a table (TSV with a header); its text is this column."
        ),
    ] = None,
    words: Annotated[
        bool, typer.Option("--words", help="A row for what stands between white space, its tokens' surprisals summed.")
    ] = False,
    boundaries: Annotated[bool, typer.Option("--boundaries", help="Also rows for the marks <S> and </S>.")] = False,
    unit: Annotated[
        str, typer.Option("--unit", metavar="UNIT", autocompletion=complete_from(*_UNITS), help="bits or nats.")
    ] = "bits",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    column: Column = 1,
    lang: ModelLang = None,
    encoding_errors: EncodingErrorsOption = "strict",
    batch_tokens: BatchTokens = 4096,
    device: Device = "auto",
    threads: Threads = None,
    force: Force = False,
) -> None:
    r"""Tell how unexpected each token of a text is.

    Writes a table (TSV) with a row for each token as it was split, the first of a sentence included: line (from 1),
    token (its number in the sentence, from 1), text, forward and backward (the surprisal given all tokens before it,
    and given all after it, within the sentence), in_vocab (0 for a word predicted as <UNK>). Empty lines have no row.

    With --boundaries, <S> is token 0 and has no forward surprisal (NA), </S> follows the last token and has no backward
    one; then 2 to the mean of a column is the perplexity.

    With --text-col, the columns of the table stand before these on each row; one that has the name of one of these
    becomes stimulus_NAME. In text, a backslash is written as \\ and a tab as \t. Nothing is ever quoted.
    """
    from elmo_cli.storage.model_dir import read_config, require_softmax
    from elmo_cli.storage.registry import find_model
    from elmo_cli.text.reader import INPUT_MODES, TextOptions

    reporter: Reporter = ctx.obj
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    choose("--input", input_mode, INPUT_MODES)
    choose("--unit", unit, _UNITS)
    check_column(column, input_mode)
    if output is not None:
        refuse_existing(output, force=force)
    folder = find_model(model)
    config = read_config(folder)
    require_softmax(folder, config)
    source = _source(file, input_mode)
    refuse_own_input([output], [source])
    note_terminal([source], reporter)
    note_form([source], input_mode, ctx, reporter)
    show_answer_alone(output, reporter)

    columns, stimuli = _stimuli(source, text_col, TextOptions(input_mode, lang or config.language, errors, column))
    stimuli = chain([*islice(stimuli, 1)], stimuli)  # a text that is none is told before anything is written

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.evaluation.losses import load_predictor
    from elmo_cli.evaluation.surprisal import SurprisalForm, header, write_surprisals
    from elmo_cli.storage.tables import TableWriter

    use_threads(threads)
    predictor = load_predictor(folder, config, choose_device(device), batch_tokens=batch_tokens)
    form = SurprisalForm(unit, words=words, boundaries=boundaries)
    with output_stream(output) as stream:
        table = TableWriter(stream, header(columns))
        tokens = write_surprisals(table, stimuli, predictor, form, reporter=reporter)
    reporter.note(f"{counted(tokens, 'token')} (model {folder.name})")


def _source(file: str, mode: str) -> str:
    """Return the one text that is named."""
    from elmo_cli.text.reader import SUFFIXES
    from elmo_cli.text.sources import find_sources

    sources = find_sources([file], SUFFIXES[mode])
    if len(sources) > 1:
        raise ConfigError(f"{file} names {len(sources)} texts", fix="name one; a row tells its line, not its file")
    return sources[0]


def _stimuli(source: str, text_col: str | None, options: "TextOptions") -> tuple[Sequence[str], "Iterator[Stimulus]"]:
    """Return the columns that go before ours, and the sentences with their cells."""
    from elmo_cli.text.reader import read_sentences
    from elmo_cli.text.stimuli import Stimulus, StimulusTable

    mode, tokenizer, errors = options.mode, options.make_tokenizer(), options.errors
    if text_col is None:
        sentences = read_sentences([source], mode=mode, tokenizer=tokenizer, errors=errors, column=options.column)
        return (), map(Stimulus, sentences)
    table = StimulusTable(source, text_col, errors=errors)
    return table.columns, table.stimuli(mode=mode, tokenizer=tokenizer)
