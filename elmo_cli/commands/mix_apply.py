"""`elmo mix apply`: stored layers to one vector a token."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, cast

import typer

from elmo_cli.commands.embed_target import choose_format
from elmo_cli.commands.mix_options import check_output
from elmo_cli.commands.options import Force, Threads, choose, complete_from, refuse_own_input, use_threads
from elmo_cli.commands.streams import is_stdout, output_stream
from elmo_cli.config import DTYPES
from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.text.sources import STDIN

if TYPE_CHECKING:
    from elmo_cli.mixing.apply import LayerRows
    from elmo_cli.storage.mix_file import MixWeights


def apply(
    ctx: typer.Context,
    layers: Annotated[
        str,
        typer.Argument(
            metavar="LAYERS", help="An npy array [tokens, layers, dim], or - for standard input.", show_default=False
        ),
    ],
    mix: Annotated[
        Path | None, typer.Option("--mix", metavar="FILE", help="A mix, as `elmo mix learn` writes it.")
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            "--weights",
            metavar="S0,S1,...",
            help="Weights of the layers in place of a mix, taken as they are: 0.2,0.5,0.3",
        ),
    ] = None,
    gamma: Annotated[
        float | None, typer.Option("--gamma", help="What the sum is multiplied with, with --weights.  [default: 1]")
    ] = None,
    layer_norm: Annotated[
        bool,
        typer.Option("--layer-norm", help="Bring each layer's vectors to mean 0 and variance 1 first, with --weights."),
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Where to.  [default: standard output]")
    ] = None,
    dtype: Annotated[
        str,
        typer.Option("--dtype", metavar="TYPE", autocompletion=complete_from(*DTYPES), help="float32 or float16."),
    ] = "float32",
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Sum stored layers, weighted by a mix.

    Reads what `elmo embed --layers all` has written and writes one vector a row, [tokens, dim], in memory that does not
    grow with the array. A mix is refused for an array of other layers than those of its model.
    """
    reporter: Reporter = ctx.obj
    found, dim, whose = _weights(mix, weights, gamma, layer_norm=layer_norm)
    kind = choose("--dtype", dtype, DTYPES)
    to_stdout = is_stdout(output)
    if choose_format(None, output, to_stdout=to_stdout) != "npy":
        raise ConfigError(f"-o {output}: only npy is written", fix="end the name in .npy")
    if output is not None and not to_stdout:
        check_output(output, force=force)
    refuse_own_input([output], [layers, *([] if mix is None else [str(mix)])])

    from elmo_cli.mixing.apply import check_shape, mixed_pieces
    from elmo_cli.storage.npy_vectors import NpyWriter

    rows = _open(layers)
    check_shape(rows, len(found.s), dim, whose)
    use_threads(threads)
    with (
        output_stream(output) as stream,
        NpyWriter(stream, (rows.shape[2],), kind) as writer,
        reporter.progress("mixing", rows.shape[0], "rows") as progress,
    ):
        for piece in mixed_pieces(rows, found):
            writer.add(piece)
            progress.update(writer.rows)
    reporter.note(f"{rows.shape[0]:,} x {rows.shape[2]:,} {kind} of {rows.shape[1]} layers")


def _weights(
    mix: Path | None, weights: str | None, gamma: float | None, *, layer_norm: bool
) -> "tuple[MixWeights, int | None, str]":
    """Return the weights, the width that they are for if it is known, and whose they are."""
    from elmo_cli.storage.mix_file import MixWeights, read_mix

    if (mix is None) == (weights is None):
        raise ConfigError("name the weights once", fix="give --mix FILE or --weights 0.2,0.5,0.3")
    if mix is not None:
        if gamma is not None or layer_norm:
            raise ConfigError("a mix has its own gamma and layer norm", fix="give --weights in place of --mix")
        learned = read_mix(mix)
        return learned.weights, learned.encoder.dim, f"the mix {mix.name} of {learned.encoder.name}"
    return MixWeights(_numbers(weights or ""), 1.0 if gamma is None else _finite(gamma), layer_norm), None, "--weights"


def _numbers(text: str) -> tuple[float, ...]:
    try:
        return tuple(_finite(float(part)) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--weights {text!r} are no numbers", fix="write them like 0.2,0.5,0.3") from error


def _finite(number: float) -> float:
    if number - number != 0:
        raise ConfigError(f"{number} is no finite number", fix="give weights and gamma as plain numbers")
    return number


def _open(layers: str) -> "LayerRows":
    from elmo_cli.mixing.apply import file_rows, stream_rows

    if layers != STDIN:
        return file_rows(layers)
    if sys.stdin.isatty():
        raise DataError("an array is not typed", where=Place("<stdin>"), fix="pipe it in, or name a file")
    return stream_rows(cast(BinaryIO, sys.stdin.buffer), "<stdin>")
