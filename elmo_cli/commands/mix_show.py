"""`elmo mix show`: what mixes have learned, as tables and as a figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands.mix_options import Json, check_output
from elmo_cli.commands.mix_tables import print_mixes
from elmo_cli.commands.options import Force
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from elmo_cli.storage.mix_file import MixFile

PLOTS = (".svg", ".png")


def show(
    ctx: typer.Context,
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE", help="Mixes, as `elmo mix learn` writes them.", show_default=False)
    ],
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="FILE", help="Draw the weights of all mixes side by side: .svg or .png."),
    ] = None,
    as_json: Json = False,
    force: Force = False,
) -> None:
    """Show weights and scores of mixes.

    The figure is in the manner of Figure 2 of Peters et al. (2018): a column a mix, a row a layer; weights below an
    equal share are hatched, those above two equal shares speckled.
    """
    from elmo_cli.storage.mix_file import read_mix

    reporter: Reporter = ctx.obj
    if plot is not None:
        check_plot(plot, force=force)
    mixes = [(path.name, read_mix(path)) for path in files]
    print_mixes(mixes, as_json=as_json)
    if plot is not None:
        write_plot(plot, mixes)
        reporter.note(f"{plot}: the weights of {len(mixes)} {'mix' if len(mixes) == 1 else 'mixes'}")


def check_plot(plot: Path, *, force: bool) -> None:
    """Refuse a figure that cannot be drawn, before any work is done.

    Raises:
        ConfigError: the file exists, its ending tells no format, or matplotlib is missing.
    """
    from elmo_cli.storage.extras import pyplot_figure

    if plot.suffix not in PLOTS:
        raise ConfigError(f"the name {plot} does not tell the format", fix=f"end it in {' or '.join(PLOTS)}")
    check_output(plot, force=force, option="--plot")
    if plot.suffix == ".png":
        pyplot_figure()


def write_plot(plot: Path, mixes: "Sequence[tuple[str, MixFile]]") -> None:
    """Write the figure in the format of the file's ending."""
    from elmo_cli.mixing.figure import figure_png, figure_svg
    from elmo_cli.storage.files import write_bytes_whole

    columns = [(_title(name), mix.weights.s) for name, mix in mixes]
    write_bytes_whole(plot, figure_png(columns) if plot.suffix == ".png" else figure_svg(columns).encode())


def _title(name: str) -> str:
    return name.removesuffix(".json").removesuffix(".mix")
