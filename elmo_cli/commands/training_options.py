"""Options that training and fine-tuning share, and what both do before anything slow is loaded."""

import glob
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli import settings
from elmo_cli.commands.file_settings import origin_of
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    LARGEST_SEED,
    MOST_PROCESSORS,
    check_column,
    choose,
    complete_from,
    complete_model,
    default_workers,
    use_threads,
)
from elmo_cli.commands.streams import note_form, note_terminal
from elmo_cli.config import DTYPES, TRAINING_PRECISIONS
from elmo_cli.errors import ConfigError, ElmoError, Place
from elmo_cli.reporting import Reporter, SilentReporter

if TYPE_CHECKING:
    from elmo_cli.training.sources import TextSources
    from elmo_cli.training.workplace import Workplace

Corpora = Annotated[
    list[str] | None,
    typer.Argument(metavar="CORPUS", help="Texts: files, folders, or - for standard input.", show_default=False),
]
Heldout = Annotated[
    list[str] | None,
    typer.Option("--heldout", metavar="FILE", help="Text to measure on.  [default: a part of the corpus]"),
]
MaxSteps = Annotated[int | None, typer.Option("--max-steps", min=1, help="Stop after so many steps.")]
MaxTime = Annotated[
    str | None, typer.Option("--max-time", metavar="TIME", help="Stop after a time such as 90m, 2h or 1h30m.")
]
StepTokens = Annotated[
    int | None,
    typer.Option("--batch-tokens", min=8, help="Tokens a step, in each process.  [default: by the text's size]"),
]
Accumulate = Annotated[
    int,
    typer.Option("--accumulate", metavar="N", min=1, help="Make steps N times as large, in no more memory."),
]
Dropout = Annotated[float, typer.Option("--dropout", help="Share of values zeroed.")]
NegativesOption = Annotated[int, typer.Option("--negatives", min=1, help="Negatives of the sampled softmax.")]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="TYPE",
        autocompletion=complete_from(*TRAINING_PRECISIONS),
        help="Of char CNN and LSTMs: float32, bfloat16, or on a GPU float16.",
    ),
]
WeightsDtype = Annotated[
    str,
    typer.Option(
        "--dtype",
        metavar="TYPE",
        autocompletion=complete_from(*DTYPES),
        help="Of the stored weights: float32 or float16.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Start of all random numbers.")]
_BESIDE_RESUME = ("resume", "epochs", "max_steps", "max_time", "device", "threads", "workers", "tensorboard")
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume", metavar="NAME|DIR", autocompletion=complete_model, help="Go on with the run of this model."
    ),
]
Tensorboard = Annotated[
    bool, typer.Option("--tensorboard", help="Also write events for TensorBoard, into the model's run/.")
]
TokenizingProcesses = Annotated[
    int | None,
    typer.Option("--workers", min=1, max=MOST_PROCESSORS, help="Processes that tokenize.  [default: one a processor]"),
]


def sources_of(
    corpora: list[str],
    heldout: list[str],
    mode: str,
    column: int,
    lang: str,
    errors: str,
    general: Sequence[str] = (),
) -> "TextSources":
    """Find the files, before anything slow is loaded."""
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES, TextOptions
    from elmo_cli.text.sources import find_sources
    from elmo_cli.training.sources import TextSources

    if not corpora:
        raise ConfigError("there is no text to train on", fix="name files or folders, or - for standard input")
    choose("--input", mode, INPUT_MODES)
    return TextSources(
        corpora=tuple(find_sources(corpora, SUFFIXES[mode])),
        heldout=tuple(find_sources(heldout, SUFFIXES[mode])),
        options=TextOptions(
            mode, lang, choose("--encoding-errors", errors, ENCODING_ERRORS), check_column(column, mode)
        ),
        general=tuple(find_sources(general, SUFFIXES[mode])),
    )


def note_texts(sources: "TextSources", ctx: typer.Context, reporter: Reporter) -> None:
    """Say what is odd about the texts: that one is typed, or that its name tells of another form."""
    read = [*sources.corpora, *sources.heldout, *sources.general]
    note_terminal(read, reporter)
    note_form(read, sources.options.mode, ctx, reporter)


def name_of(corpora: list[str]) -> str:
    """Return the name of a model after its first text: ``news.txt.xz`` makes ``news``."""
    name = Path(corpora[0]).resolve().name if corpora and corpora[0] != "-" else ""
    name = re.sub(r"(\.(txt|text|tok|jsonl|ndjson|conllu?|iob2?|bio))?(\.(gz|xz|bz2|zst))?$", "", name)
    if not name or glob.has_magic(name):
        raise ConfigError("the text does not tell a name for the model", fix="give one with -o NAME")
    return name


def in_utf8(folder: Path) -> Path:
    """Refuse a name that safetensors could not open in the end."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the model's name is not UTF-8", where=Place(str(folder)), fix="choose another -o") from error
    return folder


def workplace(
    device: str, threads: int | None, workers: int | None, reporter: Reporter, tensorboard: bool
) -> "Workplace":
    """Return what a run works with; this loads torch."""
    from elmo_cli.bilm.device import choose_device
    from elmo_cli.training.workplace import Workplace

    use_threads(threads)
    cache = settings.cache_folder() / "corpora"
    return Workplace(choose_device(device), cache, workers or default_workers(), reporter, tensorboard)


def refuse_beside_resume(ctx: typer.Context) -> None:
    """Refuse what stands on the command line beside ``--resume`` and is settled by the run.

    Raises:
        ConfigError: with the names to leave out.
    """
    settled = [
        max(parameter.opts, key=len) if parameter.param_type_name == "option" else str(parameter.metavar)
        for parameter in ctx.command.params
        if parameter.name not in _BESIDE_RESUME and origin_of(ctx, str(parameter.name)) == "COMMANDLINE"
    ]
    if settled:
        fix = f"leave out {', '.join(settled)}; limits may change: --epochs, --max-steps, --max-time"
        raise ConfigError("--resume takes texts, settings and place from the run", fix=fix)


def process_count() -> int:
    """Return how many processes `torchrun` has launched to share the training; 1 without it."""
    launched = settings.launched()
    return 1 if launched is None else launched[1]


@contextmanager
def together(place: "Workplace") -> Iterator["Workplace"]:
    """Meet the other processes of the run, if there are any; the first of a machine tells its errors, no other."""
    from elmo_cli.training.distributed import end_member, join_team, leave_team

    team, device = join_team(settings.launched(), place.device)
    reporter = place.reporter if team.is_writer else SilentReporter()
    try:
        yield replace(place, team=team, device=device, reporter=reporter)
        team.wait()
    except ElmoError as problem:
        if team.local_rank:
            raise typer.Exit(problem.exit_code) from problem
        raise
    finally:
        leave_team(team)
    if not team.is_writer:  # which has an answer to hand on yet, and then ends as all commands do
        end_member(team)
