"""`elmo senses`: the occurrences of a word in groups, each with its typical lines."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_cli.commands.asked_model import AskedModel
from elmo_cli.commands.neighbors_answer import choose_form
from elmo_cli.commands.occurrence_options import (
    AnswerFormat,
    AnswerWidth,
    CorpusOption,
    IgnoreCase,
    IndexOption,
    InputGuessed,
    LayerOption,
    Source,
    TextCol,
    refuse_empty,
)
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    LARGEST_SEED,
    Column,
    Device,
    EncodingErrorsOption,
    Force,
    Model,
    ModelLang,
    Threads,
    Workers,
    choose,
    complete_from,
    is_named,
    refuse_existing,
    refuse_stdout,
)
from elmo_cli.commands.senses_answer import write_senses
from elmo_cli.commands.senses_work import Grouping, draw, group
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter, counted
from elmo_cli.settings import DEFAULT_MODEL

MAPS = ("pca", "umap")


def senses(
    ctx: typer.Context,
    word: Annotated[str, typer.Argument(metavar="WORD", help="The word whose occurrences are grouped.")],
    corpus: CorpusOption = None,
    index: IndexOption = None,
    model: Model = DEFAULT_MODEL,
    groups: Annotated[
        int | None, typer.Option("--groups", metavar="N", min=1, help="How many groups.  [default: found, up to 8]")
    ] = None,
    least: Annotated[
        float,
        typer.Option("--least", metavar="S", min=-1, max=1, help="Silhouette below which a word is one group."),
    ] = 0.05,
    lines: Annotated[
        int, typer.Option("-k", "--lines", metavar="N", min=1, help="Typical lines of each group to show.")
    ] = 5,
    layer: LayerOption = None,
    ignore_case: IgnoreCase = False,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot", metavar="FILE", help="Draw the occurrences: FILE.svg, .html (lines to point at) or .png."
        ),
    ] = None,
    map_name: Annotated[
        str,
        typer.Option(
            "--map",
            metavar="HOW",
            autocompletion=complete_from(*MAPS),
            help="From vectors to the plane: pca or, if it is installed, umap.",
        ),
    ] = "pca",
    color_by: Annotated[
        str | None,
        typer.Option("--color-by", metavar="NAME", help="Colour by a column or key of the corpus, not by group."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Of the grouping.")] = 1,
    format_name: AnswerFormat = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    columns: AnswerWidth = None,
    force: Force = False,
    input_mode: InputGuessed = None,
    text_col: TextCol = None,
    column: Column = 1,
    lang: ModelLang = None,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    workers: Workers = None,
) -> None:
    """Group the occurrences of a word by sense.

    Shows the size of each group and its most typical lines: those nearest to the group's mean. Groups are those of
    k-means (scikit-learn) over the occurrences' vectors, centred and of length 1. Without --groups, the number from 2
    to 8 with the largest mean silhouette is taken, or one group where that is below --least. The same --seed gives the
    same groups. Of more than 2,000 occurrences, the groups are found with 2,000, and the others join the nearest.

    Where stdout is no terminal, writes a table (TSV) of all occurrences: group, typicality (cosine with the group's
    mean), word, file, line, token, text. -f jsonl writes an object an occurrence, with what else the corpus says in
    fields; --json one object: word, model, layer, silhouette, and groups with size and lines.

    --plot draws a point an occurrence, by its group or by --color-by: a column of a table or a key of JSON lines, such
    as year, whose numbers become a scale. The HTML needs no network.
    """
    from elmo_cli.neighbors.corpus_text import Reading

    reporter: Reporter = ctx.obj
    refuse_empty(word)
    form = choose_form(format_name, as_json=as_json, columns=columns)
    choose("--map", map_name, MAPS)
    if plot is not None:
        refuse_stdout(plot, option="--plot")
        refuse_existing(plot, force=force, option="--plot")
    elif color_by is not None:
        raise ConfigError("--color-by colours a drawing, and none is asked for", fix="add --plot FILE.svg")
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    source = Source(
        model=AskedModel(model, is_named(ctx, "model"), device, threads, reporter),
        corpus=corpus or [],
        index_folder=index,
        reading=Reading(errors=errors, column=column, text_col=text_col),
        mode=input_mode,
        lang=lang,
        layer=layer,
        workers=workers,
        reporter=reporter,
    )
    how = Grouping(groups, least, seed, ignore_case=ignore_case)
    with source:
        found = group(source, word, how, plot)
        if plot is not None:
            draw(found, plot, map_name, color_by, seed)
            reporter.note(f"{plot}: {counted(len(found.hits), 'occurrence')}")
        write_senses(found, form, lines)
