"""`elmo embed`: text to vectors."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, cast

import typer

from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Device,
    EncodingErrorsOption,
    Force,
    Input,
    Model,
    Threads,
    choose,
    refuse_existing,
    use_threads,
)
from elmo_cli.config import DTYPES
from elmo_cli.embedding.selection import check_pool, parse_layers
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL

FORMATS = {".npy": "npy", ".jsonl": "jsonl"}


def embed(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Texts: files, folders, or - for standard input.  [default: -]"),
    ] = None,
    model: Model = DEFAULT_MODEL,
    input_mode: Input = "lines",
    lang: Annotated[
        str | None,
        typer.Option("--lang", metavar="CODE", help="Language of the tokenizer.  [default: the model's]"),
    ] = None,
    layers: Annotated[
        str,
        typer.Option("--layers", metavar="LAYERS", help="average, top, all, or numbers such as 0,2 (0: char CNN)."),
    ] = "average",
    pool: Annotated[
        str,
        typer.Option("--pool", metavar="HOW", help="One vector a sentence: mean, max, first or last; none: a token."),
    ] = "none",
    form: Annotated[
        str | None,
        typer.Option(
            "-f", "--format", metavar="FORMAT", help="npy or jsonl.  [default: by the name after -o, else npy]"
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    tokens_out: Annotated[
        Path | None,
        typer.Option("--tokens-out", metavar="FILE", help="Also write a table (TSV) that says what each row is."),
    ] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="TYPE", help="float32 or float16.")] = "float32",
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Turn text into contextual word vectors.

    Writes one row a token, in the order of the text: NumPy (npy) or JSON Lines (jsonl, a line a sentence). A sentence's
    vectors depend on the sentence alone, whatever stands around it.
    """
    reporter: Reporter = ctx.obj
    check_pool(pool)
    stored_as = choose("--dtype", dtype, DTYPES)
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    form = _format(form, output)
    for target in (output, tokens_out):
        if target is not None:
            refuse_existing(target, force=force)

    from elmo_cli.storage.model_dir import load_bilm, read_config
    from elmo_cli.storage.registry import find_model
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES, read_sentences
    from elmo_cli.text.sources import find_sources
    from elmo_cli.text.tokenizer import SpacyTokenizer

    choose("--input", input_mode, INPUT_MODES)
    folder = find_model(model)
    config = read_config(folder)
    choice = parse_layers(layers, config.bilm.layer_count)
    sources = find_sources(files or ["-"], SUFFIXES[input_mode])
    if "-" in sources and sys.stdin.isatty():
        reporter.note("reading text from the terminal; end it with Ctrl-D")

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.write import WhatToWrite, embed_into
    from elmo_cli.storage.vectors import JsonlWriter, NpyWriter, TokenTableWriter, VectorSink

    use_threads(threads)
    embedder = Embedder(load_bilm(folder, config), choose_device(device))
    tokenizer = None if input_mode == "tokens" else SpacyTokenizer(lang or config.language)
    sentences = read_sentences(sources, mode=input_mode, tokenizer=tokenizer, errors=errors)
    what = WhatToWrite(choice, pool)
    row_shape = choice.row_shape(config.bilm.vector_dim)
    with ExitStack() as open_files:
        stream = open_files.enter_context(_stream(output))
        table = None if tokens_out is None else TokenTableWriter(open_files.enter_context(_stream(tokens_out)))
        pooled = pool != "none"
        sink: VectorSink = (
            NpyWriter(stream, row_shape, stored_as) if form == "npy" else JsonlWriter(stream, stored_as, pooled=pooled)
        )
        with sink:
            embed_into(sink, sentences, embedder, what, table=table, reporter=reporter)
    counts = embedder.counts
    rows = counts.sentences if pool != "none" else counts.tokens
    shape = " x ".join(f"{size:,}" for size in (rows, *row_shape))
    reporter.note(
        f"{shape} {dtype} from {counts.sentences:,} sentences, {counts.tokens:,} tokens (model {folder.name})"
    )
    if counts.cut_tokens:
        longest = config.bilm.char_cnn.max_characters - 2
        reporter.note(f"{counts.cut_tokens:,} tokens are longer than {longest} bytes; the model read their beginning")


def _format(form: str | None, output: Path | None) -> str:
    """Return the output's format: as asked, by the file's name, or npy; never binary on a terminal."""
    known = tuple(FORMATS.values())
    if form is not None:
        choose("--format", form, known)
    elif output is not None and output.suffix:
        form = FORMATS.get(output.suffix)
        if form is None and not output.is_char_device() and not output.is_fifo():
            raise ConfigError(
                f"the name {output} does not tell the format", fix=f"end it in {' or '.join(FORMATS)}, or add -f"
            )
    form = form or "npy"
    if output is None and form == "npy" and sys.stdout.isatty():
        raise ConfigError(
            "not writing binary vectors to a terminal", fix="add -o vectors.npy or > vectors.npy, or choose -f jsonl"
        )
    return form


@contextmanager
def _stream(output: Path | None) -> Iterator[BinaryIO]:
    """Open the target: a file that appears whole or not at all, or standard output."""
    from elmo_cli.storage.files import output_error, whole_file

    if output is not None and str(output) != "-":
        with whole_file(output) as file:
            yield file
        return
    try:
        yield cast(BinaryIO, sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise output_error(Path("standard output"), error) from error
