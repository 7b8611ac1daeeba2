"""`elmo embed`: text to vectors."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_cli.commands.embed_layers import choose_model_and_layers
from elmo_cli.commands.embed_target import Targets, announce_size, choose_format
from elmo_cli.commands.embed_work import EmbedWork
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Column,
    Device,
    EncodingErrorsOption,
    Force,
    Input,
    Model,
    ModelLang,
    PrecisionOption,
    Threads,
    Workers,
    check_column,
    choose,
    complete_from,
    reading_workers,
    use_threads,
)
from elmo_cli.commands.streams import is_stdout, note_form, note_terminal
from elmo_cli.config import DTYPES, PRECISIONS
from elmo_cli.embedding.selection import POOLS, check_pool, pooled_shape
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter, counted
from elmo_cli.settings import DEFAULT_MODEL
from elmo_cli.storage.vector_formats import FORMATS, VectorForm

_CARRIED_SENTENCES = 64  # a batch, as in AllenNLP's command


def embed(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Texts: files, folders, or - for standard input.  [default: -]"),
    ] = None,
    model: Model = DEFAULT_MODEL,
    input_mode: Input = "lines",
    column: Column = 1,
    lang: ModelLang = None,
    layers: Annotated[
        str,
        typer.Option(
            "--layers",
            metavar="LAYERS",
            autocompletion=complete_from("average", "top", "all"),
            help="average, top, all, or numbers such as 0,2 (0: char CNN).",
        ),
    ] = "average",
    mix: Annotated[
        Path | None,
        typer.Option(
            "--mix", metavar="FILE", help="Take the layers' sum that `elmo mix learn` has found, in place of --layers."
        ),
    ] = None,
    pool: Annotated[
        str,
        typer.Option(
            "--pool",
            metavar="HOW",
            autocompletion=complete_from(*POOLS),
            help="One vector a sentence: mean, max, first, last or mean-max; none: a token.",
        ),
    ] = "none",
    skip_punct: Annotated[
        bool,
        typer.Option("--skip-punct", help="Leave out tokens without a letter or digit; the model still reads them."),
    ] = False,
    format_name: Annotated[
        str | None,
        typer.Option(
            "-f",
            "--format",
            metavar="FORMAT",
            autocompletion=complete_from(*FORMATS),
            help="npy, npz, jsonl, safetensors, hdf5, parquet, arrow or word2vec.  [default: by the name after -o, "
            "else npy]",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out-dir", metavar="DIR", help="Write an output for each text, named after it, into a folder."),
    ] = None,
    skip_existing: Annotated[
        bool, typer.Option("--skip-existing", help="Leave out texts whose output is in --out-dir: go on with a run.")
    ] = False,
    tokens_out: Annotated[
        Path | None,
        typer.Option(
            "--tokens-out",
            metavar="FILE",
            help="Also write a table (TSV) that says what each row is; with --out-dir, a folder of tables.",
        ),
    ] = None,
    dtype: Annotated[
        str,
        typer.Option("--dtype", metavar="TYPE", autocompletion=complete_from(*DTYPES), help="float32 or float16."),
    ] = "float32",
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    workers: Workers = None,
    precision: PrecisionOption = "float32",
    force: Force = False,
    carry_state: Annotated[
        bool,
        typer.Option("--carry-state", help="Carry LSTM state from batch to batch, only to reproduce older tools."),
    ] = False,
    batch_size: Annotated[
        int | None,
        typer.Option(
            "--batch-size",
            metavar="N",
            min=1,
            max=1_000_000,  # state is kept for all of them from the start
            help="Sentences a batch with --carry-state; nothing else uses it.  [default: 64]",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Turn text into contextual word vectors.

    Writes one row a token, in the order of the text, or with --pool one row a sentence. A sentence's vectors depend on
    the sentence alone, whatever stands around it.

    npy is one NumPy array. npz and safetensors hold it as vectors, and beside it what each row is: line, sentence,
    token, start and end as in the table of --tokens-out, and the texts in UTF-8, one behind the other, in text_bytes,
    that of row i from text_offsets[i] to text_offsets[i+1]. parquet and arrow are tables with a row a token and a list
    of fixed size in the column vector. jsonl is an object a line and sentence; hdf5 the layout of AllenNLP, a dataset a
    sentence; word2vec a text line a sentence: its text with _ for white space (a repeated one ends in #2, #3 ...), then
    the numbers.

    With --out-dir, corpus/a/b.txt of the folder corpus becomes DIR/a/b.txt.npy. Outputs appear whole or not at all.
    """
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES, TextOptions
    from elmo_cli.text.workers import SentenceReader

    reporter: Reporter = ctx.obj
    check_pool(pool)
    to_stdout = out_dir is None and is_stdout(output)
    format_name = choose_format(format_name, output, to_stdout=to_stdout)
    targets = Targets(format_name, output, out_dir, tokens_out, force, skip_existing)
    targets.check()
    if carry_state and out_dir is not None:
        raise ConfigError("--carry-state makes texts depend on each other", fix="write one output: -o FILE")
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    choose("--input", input_mode, INPUT_MODES)
    bits = choose("--precision", precision, PRECISIONS)
    if carry_state and bits != "float32":
        raise ConfigError("--carry-state reproduces older tools, in float32 only", fix="leave out --precision")
    # All that can be wrong with the command line is found before torch is loaded.
    folder, config, choice = choose_model_and_layers(ctx, model, layers, mix)
    shape = pooled_shape(choice.row_shape(config.bilm.vector_dim), pool)
    form = VectorForm(format_name, choose("--dtype", dtype, DTYPES), shape, pool != "none")
    form.check()
    jobs = targets.jobs(files or ["-"], SUFFIXES[input_mode])
    if not jobs:
        reporter.note(f"all outputs are in {out_dir}: nothing to do")
        return
    sources = [source for job in jobs for source in job.sources]
    if batch_size is not None and not carry_state:
        reporter.note("--batch-size changes nothing without --carry-state: vectors do not depend on batches")
    note_terminal(sources, reporter)
    note_form(sources, input_mode, ctx, reporter)
    announce_size(targets, form, sources, input_mode, reporter)
    options = TextOptions(input_mode, lang or config.language, errors, check_column(column, input_mode))
    # Its processes load spaCy while this one loads torch; Typer ends them with the command.
    reader = ctx.with_resource(SentenceReader(options, reading_workers(workers, options)))

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.stateful import StatefulEmbedder
    from elmo_cli.embedding.write import WhatToWrite
    from elmo_cli.storage.weights import load_bilm

    use_threads(threads)
    bilm, place = load_bilm(folder, config), choose_device(device)
    if carry_state:
        embedder: Embedder | StatefulEmbedder = StatefulEmbedder(bilm, place, batch_size or _CARRIED_SENTENCES)
    else:
        embedder = Embedder(bilm, place, bits, reporter)
    work = EmbedWork(targets, form, WhatToWrite(choice, pool, skip_punct), embedder, reader.read)
    written = work.run(jobs, reporter)
    places = f"{counted(len(jobs), 'file')} in {out_dir}: " if out_dir is not None else ""
    rows = " x ".join(f"{n:,}" for n in (written.rows, *shape))
    reporter.note(
        f"{places}{rows} {dtype} from {counted(written.sentences, 'sentence')}, "
        f"{counted(written.tokens, 'token')} (model {folder.name})"
    )
    if embedder.counts.cut_tokens:
        longest = config.bilm.char_cnn.max_characters - 2
        cut = embedder.counts.cut_tokens
        are, their = ("is", "its") if cut == 1 else ("are", "their")
        reporter.note(f"{counted(cut, 'token')} {are} longer than {longest} bytes; the model read {their} beginning")
