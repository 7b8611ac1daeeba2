"""`elmo train`: text to a model."""

import glob
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli import settings
from elmo_cli.commands import console
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Device,
    EncodingErrorsOption,
    Force,
    Input,
    Threads,
    choose,
    default_workers,
    read_duration,
    use_threads,
)
from elmo_cli.config import DEFAULT_PRESET, PRESETS, Limits, TrainingSettings
from elmo_cli.errors import ConfigError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.storage.registry import new_model_folder
from elmo_cli.storage.run_dir import find_run, refuse_existing_model

if TYPE_CHECKING:
    from elmo_cli.training.run import TrainingResult, Workplace
    from elmo_cli.training.sources import TextSources

_DEFAULTS = TrainingSettings()


def train(
    ctx: typer.Context,
    corpora: Annotated[
        list[str] | None,
        typer.Argument(metavar="CORPUS", help="Texts: files, folders, or - for standard input.", show_default=False),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="NAME|DIR", help="The new model.  [default: models/, named as the text]"
        ),
    ] = None,
    input_mode: Input = "lines",
    lang: Annotated[str, typer.Option("--lang", metavar="CODE", help="Language of the tokenizer.")] = "en",
    heldout: Annotated[
        list[str] | None,
        typer.Option("--heldout", metavar="FILE", help="Text to measure on.  [default: a part of the corpus]"),
    ] = None,
    encoding_errors: EncodingErrorsOption = "strict",
    preset: Annotated[
        str, typer.Option("--preset", metavar="NAME", help=f"Shape of the model: {', '.join(PRESETS)}.")
    ] = DEFAULT_PRESET,
    vocab_size: Annotated[
        int, typer.Option("--vocab-size", min=1, help="Word types of the softmax, at most.")
    ] = _DEFAULTS.vocab_size,
    min_count: Annotated[
        int | None,
        typer.Option(
            "--min-count", min=1, help="Times a type of the softmax occurs, at least.  [default: 2; small texts 1]"
        ),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Passes over the text.  [default: by its size]")
    ] = None,
    max_steps: Annotated[int | None, typer.Option("--max-steps", min=1, help="Stop after so many steps.")] = None,
    max_time: Annotated[
        str | None, typer.Option("--max-time", metavar="TIME", help="Stop after a time such as 90m, 2h or 1h30m.")
    ] = None,
    batch_tokens: Annotated[
        int | None, typer.Option("--batch-tokens", min=8, help="Tokens a step.  [default: by the size of the text]")
    ] = None,
    learning_rate: Annotated[
        float, typer.Option("--learning-rate", help="Of Adam, at its highest.")
    ] = _DEFAULTS.learning_rate,
    dropout: Annotated[float, typer.Option("--dropout", help="Share of values zeroed.")] = _DEFAULTS.dropout,
    negatives: Annotated[
        int, typer.Option("--negatives", min=1, help="Negatives of the sampled softmax.")
    ] = _DEFAULTS.negatives,
    dtype: Annotated[
        str, typer.Option("--dtype", metavar="TYPE", help="Of the stored weights: float32 or float16.")
    ] = _DEFAULTS.weights_dtype,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Start of all random numbers.")] = _DEFAULTS.seed,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="NAME|DIR", help="Go on with the run of this model.")
    ] = None,
    force: Force = False,
    device: Device = "auto",
    threads: Threads = None,
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, help="Processes that tokenize.  [default: one a processor]")
    ] = None,
) -> None:
    """Train a biLM on your own text.

    Prints the path of the new model. Without any option it fits itself to the text: how long to train, which words the
    softmax knows, what is held out to measure on. Ctrl-C saves and stops; --resume goes on.
    """
    reporter: Reporter = ctx.obj
    limits = Limits(epochs, max_steps, None if max_time is None else read_duration(max_time))
    if resume is not None:
        if corpora or heldout or output or force:
            raise ConfigError(
                "--resume takes texts, settings and place from the run", fix="leave out all but the limits"
            )
        result = _resume(find_run(resume), _workplace(device, threads, workers, reporter), limits)
    else:
        unlimited = TrainingSettings(
            preset=preset,
            vocab_size=vocab_size,
            min_count=min_count,
            batch_tokens=batch_tokens,
            learning_rate=learning_rate,
            dropout=dropout,
            negatives=negatives,
            weights_dtype=dtype,
            seed=seed,
        )
        sources = _sources(corpora or [], heldout or [], input_mode, lang, encoding_errors)
        folder = _in_utf8(new_model_folder(output) if output else Path("models") / _name_of(corpora or []))
        refuse_existing_model(folder, force=force)
        result = _start(
            folder, sources, limits.applied_to(unlimited), _workplace(device, threads, workers, reporter), force
        )
    found = result.perplexity
    reporter.note(
        f"held-out perplexity {found.both:,.2f} (forward {found.forward:,.2f}, backward {found.backward:,.2f}) "
        f"on {found.tokens:,} tokens; the unigram model has {result.unigram:,.2f}"
    )
    console.answer(str(result.folder))


def _sources(corpora: list[str], heldout: list[str], mode: str, lang: str, errors: str) -> "TextSources":
    """Find the files, before anything slow is loaded."""
    from elmo_cli.text.prepare import TextOptions
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES
    from elmo_cli.text.sources import find_sources
    from elmo_cli.training.sources import TextSources

    if not corpora:
        raise ConfigError("there is no text to train on", fix="name files or folders, or - for standard input")
    choose("--input", mode, INPUT_MODES)
    return TextSources(
        corpora=tuple(find_sources(corpora, SUFFIXES[mode])),
        heldout=tuple(find_sources(heldout, SUFFIXES[mode])),
        options=TextOptions(mode, lang, choose("--encoding-errors", errors, ENCODING_ERRORS)),
    )


def _name_of(corpora: list[str]) -> str:
    """Return the name of a model after its first text: ``news.txt.xz`` makes ``news``."""
    name = Path(corpora[0]).resolve().name if corpora and corpora[0] != "-" else ""
    name = re.sub(r"(\.(txt|text|tok))?(\.(gz|xz|bz2|zst))?$", "", name)
    if not name or glob.has_magic(name):
        raise ConfigError("the text does not tell a name for the model", fix="give one with -o NAME")
    return name


def _in_utf8(folder: Path) -> Path:
    """Refuse a name that safetensors could not open in the end."""
    try:
        str(folder).encode()
    except UnicodeEncodeError as error:
        raise ConfigError("the model's name is not UTF-8", where=Place(str(folder)), fix="choose another -o") from error
    return folder


def _workplace(device: str, threads: int | None, workers: int | None, reporter: Reporter) -> "Workplace":
    from elmo_cli.bilm.device import choose_device
    from elmo_cli.training.run import Workplace

    use_threads(threads)
    return Workplace(choose_device(device), settings.cache_folder() / "corpora", workers or default_workers(), reporter)


def _start(
    folder: Path, sources: "TextSources", wanted: TrainingSettings, place: "Workplace", force: bool
) -> "TrainingResult":
    from elmo_cli.training.run import start_training

    return start_training(folder, sources, wanted, place, overwrite=force)


def _resume(folder: Path, place: "Workplace", limits: Limits) -> "TrainingResult":
    from elmo_cli.training.run import resume_training

    return resume_training(folder, place, limits)
