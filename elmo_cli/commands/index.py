"""`elmo index`: the tokens of a corpus by their vectors, for `elmo neighbors` and `elmo senses`."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_cli.commands.asked_model import AskedModel
from elmo_cli.commands.index_work import Chosen, IndexWork, add_graphs, check_index, summary
from elmo_cli.commands.occurrence_options import InputGuessed, TextCol
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Column,
    Device,
    EncodingErrorsOption,
    Force,
    Model,
    ModelLang,
    PrecisionOption,
    Threads,
    Workers,
    check_column,
    choose,
    complete_from,
    is_named,
    refuse_stdout,
)
from elmo_cli.config import PRECISIONS
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL


def index(
    ctx: typer.Context,
    corpus: Annotated[
        list[str] | None, typer.Argument(metavar="CORPUS...", help="Texts: files, folders, or - for standard input.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="INDEX", help="The index: a folder, such as news.idx.")
    ] = None,
    model: Model = DEFAULT_MODEL,
    append: Annotated[bool, typer.Option("--append", help="Add to an index that is there.")] = False,
    layers: Annotated[
        str,
        typer.Option(
            "--layers",
            metavar="LAYERS",
            autocompletion=complete_from("top", "all"),
            help="Layers to keep: top, all, or numbers such as 0,2.",
        ),
    ] = "top",
    only: Annotated[
        str | None,
        typer.Option(
            "--only", metavar="WORDS", help="Keep these words alone: a file with a word a line, or bank,play."
        ),
    ] = None,
    min_count: Annotated[
        int, typer.Option("--min-count", metavar="N", min=1, help="Keep words that occur N times; reads a text twice.")
    ] = 1,
    no_stop_words: Annotated[bool, typer.Option("--no-stop-words", help="Leave out spaCy's stop words.")] = False,
    no_punct: Annotated[bool, typer.Option("--no-punct", help="Leave out tokens without a letter or digit.")] = False,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Also make an approximate index, for --any on many million tokens.")
    ] = False,
    check: Annotated[bool, typer.Option("--check", help="Read all of an index and say whether it is sound.")] = False,
    input_mode: InputGuessed = None,
    text_col: TextCol = None,
    column: Column = 1,
    lang: ModelLang = None,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    workers: Workers = None,
    precision: PrecisionOption = "float32",
    force: Force = False,
) -> None:
    """Index the tokens of a corpus by their vectors.

    Makes a folder for elmo neighbors --index and elmo senses --index. It holds float16 vectors, which are mapped into
    memory, the tokens, their sentences and places, and which model made them: about 540 bytes a token and layer with
    256 numbers each. A sentence without a token to keep is not embedded: --only is fast.

    An index is whole at any moment: a new one appears when it is done, and with --append the old one stays as it is
    until then. What is added has the layers, the words and the filters that the index was made with; --min-count looks
    at what is added alone. An approximate index is made anew: say --approximate again.

    --check prints an object of what an index holds, or what is wrong with it; the index may stand in the place of the
    text: elmo index --check news.idx.
    """
    from elmo_cli.neighbors.corpus_text import Reading

    reporter: Reporter = ctx.obj
    if check and output is None and corpus and len(corpus) == 1:
        output, corpus = Path(corpus[0]), None
    if output is None:
        raise ConfigError("there is no -o INDEX", fix="name the folder: -o news.idx")
    refuse_stdout(output)
    if input_mode is not None:
        check_column(column, input_mode)
    if check:
        if corpus:
            raise ConfigError("--check looks at one index and reads no text", fix="elmo index --check news.idx")
        check_index(output)
        return
    own = only is not None or min_count > 1 or no_stop_words or no_punct or layers != "top"
    if append and own:
        raise ConfigError(
            "what is added to an index has its layers and filters",
            fix="leave out --layers, --only, --min-count, --no-stop-words and --no-punct",
        )
    bits = choose("--precision", precision, PRECISIONS)
    work = IndexWork(
        model=AskedModel(model, is_named(ctx, "model"), device, threads, reporter, bits),
        corpus=corpus or [],
        mode=input_mode,
        reading=Reading(errors=choose("--encoding-errors", encoding_errors, ENCODING_ERRORS), column=column),
        text_col=text_col,
        lang=lang,
        workers=workers,
        reporter=reporter,
    )
    if corpus:
        chosen = Chosen(layers, only, min_count, stop_words=not no_stop_words, punctuation=not no_punct)
        made = work.append(output) if append else work.create(output, chosen, force=force)
        reporter.note(summary(made))
    elif not approximate:
        raise ConfigError("no text is named", fix="elmo index CORPUS -o news.idx")
    if approximate:
        add_graphs(output, reporter)
