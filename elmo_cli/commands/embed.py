"""`elmo embed`: text to vectors."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

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
from elmo_cli.config import DTYPES, DType
from elmo_cli.embedding.selection import check_pool, parse_layers
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli.storage.vectors import VectorSink

FORMATS = {".npy": "npy", ".jsonl": "jsonl", ".hdf5": "hdf5", ".h5": "hdf5"}


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
            "-f", "--format", metavar="FORMAT", help="npy, jsonl or hdf5.  [default: by the name after -o, else npy]"
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
    carry_state: Annotated[
        bool,
        typer.Option("--carry-state", help="Carry LSTM state from batch to batch, only to reproduce older tools."),
    ] = False,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Sentences a batch with --carry-state; nothing else uses it.")
    ] = 64,
) -> None:
    """Turn text into contextual word vectors.

    Writes one row a token, in the order of the text: NumPy (npy), JSON Lines (jsonl, a line a sentence), or HDF5 in the
    layout of AllenNLP (hdf5, a dataset a sentence). A sentence's vectors depend on the sentence alone, whatever stands
    around it.
    """
    from elmo_cli.storage.model_dir import read_config
    from elmo_cli.storage.registry import find_model
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES
    from elmo_cli.text.sources import find_sources

    reporter: Reporter = ctx.obj
    check_pool(pool)
    target = Target(_format(form, output), output, choose("--dtype", dtype, DTYPES), pool != "none")
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    choose("--input", input_mode, INPUT_MODES)
    if tokens_out is not None and tokens_out == (output or Path("-")):
        raise ConfigError(f"vectors and table would both go to {tokens_out}", fix="choose another --tokens-out")
    for path in (output, tokens_out):
        if path is not None:
            refuse_existing(path, force=force)
    # All that can be wrong with the command line is found before torch is loaded.
    folder = find_model(model)
    config = read_config(folder)
    choice = parse_layers(layers, config.bilm.layer_count)
    sources = find_sources(files or ["-"], SUFFIXES[input_mode])
    if "-" in sources and sys.stdin.isatty():
        reporter.note("reading text from the terminal; end it with Ctrl-D")

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.stateful import StatefulEmbedder
    from elmo_cli.embedding.write import WhatToWrite, embed_into
    from elmo_cli.storage.vectors import TokenTableWriter
    from elmo_cli.storage.weights import load_bilm
    from elmo_cli.text.reader import read_sentences
    from elmo_cli.text.tokenizer import SpacyTokenizer

    use_threads(threads)
    bilm, place = load_bilm(folder, config), choose_device(device)
    embedder = StatefulEmbedder(bilm, place, batch_size) if carry_state else Embedder(bilm, place)
    tokenizer = None if input_mode == "tokens" else SpacyTokenizer(lang or config.language)
    sentences = read_sentences(sources, mode=input_mode, tokenizer=tokenizer, errors=errors)
    row_shape = choice.row_shape(config.bilm.vector_dim)
    with ExitStack() as open_files:
        stream = open_files.enter_context(_stream(target.output))
        table = None if tokens_out is None else TokenTableWriter(open_files.enter_context(_stream(tokens_out)))
        sink = open_files.enter_context(target.sink(stream, row_shape))
        embed_into(sink, sentences, embedder, WhatToWrite(choice, pool), table=table, reporter=reporter)
    counts = embedder.counts
    shape = " x ".join(f"{n:,}" for n in (counts.sentences if target.pooled else counts.tokens, *row_shape))
    reporter.note(
        f"{shape} {dtype} from {counts.sentences:,} sentences, {counts.tokens:,} tokens (model {folder.name})"
    )
    if counts.cut_tokens:
        longest = config.bilm.char_cnn.max_characters - 2
        reporter.note(f"{counts.cut_tokens:,} tokens are longer than {longest} bytes; the model read their beginning")


@dataclass(frozen=True, slots=True)
class Target:
    """Where the vectors go, and in which form."""

    form: str
    output: Path | None
    dtype: DType
    pooled: bool

    def sink(self, stream: BinaryIO, row_shape: tuple[int, ...]) -> "VectorSink":
        """Return what writes vectors of the shape into the stream."""
        from elmo_cli.storage.hdf5_vectors import HDF5Writer
        from elmo_cli.storage.vectors import JsonlWriter, NpyWriter

        if self.form == "npy":
            return NpyWriter(stream, row_shape, self.dtype)
        if self.form == "jsonl":
            return JsonlWriter(stream, self.dtype, pooled=self.pooled)
        return HDF5Writer(stream, row_shape, self.dtype, pooled=self.pooled)


def _format(form: str | None, output: Path | None) -> str:
    """Return the output's format: as asked, by the file's name, or npy; never binary on a terminal."""
    known = tuple(dict.fromkeys(FORMATS.values()))
    if form is not None:
        choose("--format", form, known)
    elif output is not None and output.suffix:
        form = FORMATS.get(output.suffix)
        if form is None and not output.is_char_device() and not output.is_fifo():
            raise ConfigError(
                f"the name {output} does not tell the format", fix=f"end it in {' or '.join(FORMATS)}, or add -f"
            )
    form = form or "npy"
    is_stdout = output is None or str(output) in ("-", "/dev/stdout")
    if is_stdout and form != "jsonl" and sys.stdout.isatty():
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
