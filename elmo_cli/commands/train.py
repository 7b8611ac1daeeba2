"""`elmo train`: text to a model."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import (
    Column,
    Device,
    EncodingErrorsOption,
    Force,
    Input,
    Threads,
    choose,
    complete_from,
    read_duration,
)
from elmo_cli.commands.training_options import (
    Accumulate,
    Corpora,
    Dropout,
    Heldout,
    MaxSteps,
    MaxTime,
    PrecisionOption,
    Resume,
    Seed,
    StepTokens,
    Tensorboard,
    TokenizingProcesses,
    WeightsDtype,
    in_utf8,
    name_of,
    note_texts,
    process_count,
    refuse_beside_resume,
    sources_of,
    together,
    workplace,
)
from elmo_cli.config import DEFAULT_PRESET, DTYPES, PRESETS, RECIPES, TRAINING_PRECISIONS, Limits, TrainingSettings
from elmo_cli.reporting import Reporter, counted, figure
from elmo_cli.storage.registry import new_model_folder
from elmo_cli.storage.run_dir import find_run, refuse_existing_model

if TYPE_CHECKING:
    from elmo_cli.training.run import TrainingResult
    from elmo_cli.training.sources import TextSources
    from elmo_cli.training.workplace import Workplace

_DEFAULTS = TrainingSettings()
_FAR_WORSE = 1.5  # times the perplexity of word frequency alone; fresh weights are near that


def train(
    ctx: typer.Context,
    corpora: Corpora = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="NAME|DIR", help="The new model.  [default: models/, named as the text]"
        ),
    ] = None,
    input_mode: Input = "lines",
    column: Column = 1,
    lang: Annotated[
        str, typer.Option("--lang", metavar="CODE", help="Language of the tokenizer, such as en, zh or zh-jieba.")
    ] = "en",
    heldout: Heldout = None,
    encoding_errors: EncodingErrorsOption = "strict",
    preset: Annotated[
        str,
        typer.Option(
            "--preset",
            metavar="NAME",
            autocompletion=complete_from(*PRESETS),
            help=f"Shape of the model: {', '.join(PRESETS)}.",
        ),
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
    max_steps: MaxSteps = None,
    max_time: MaxTime = None,
    batch_tokens: StepTokens = None,
    accumulate: Accumulate = 1,
    recipe: Annotated[
        str,
        typer.Option(
            "--recipe",
            metavar="NAME",
            autocompletion=complete_from(*RECIPES),
            help="Optimizer and its defaults: 'adam', or 'bilm-tf' (Adagrad, 8,192 negatives) as ELMo was trained.",
        ),
    ] = "adam",
    stream: Annotated[
        bool,
        typer.Option(
            "--stream",
            help="Read the text as endless streams, 20 tokens of each a step, with state carried on, as bilm-tf.",
        ),
    ] = False,
    learning_rate: Annotated[
        float | None, typer.Option("--learning-rate", help="At its highest.  [default: 0.004; bilm-tf 0.2]")
    ] = None,
    dropout: Dropout = _DEFAULTS.dropout,
    negatives: Annotated[
        int | None,
        typer.Option("--negatives", min=1, help="Of the sampled softmax.  [default: 1,024; bilm-tf 8,192]"),
    ] = None,
    precision: PrecisionOption = _DEFAULTS.precision,
    dtype: WeightsDtype = _DEFAULTS.weights_dtype,
    seed: Seed = _DEFAULTS.seed,
    resume: Resume = None,
    force: Force = False,
    tensorboard: Tensorboard = False,
    device: Device = "auto",
    threads: Threads = None,
    workers: TokenizingProcesses = None,
) -> None:
    """Train a biLM on your own text.

    Prints the path of the new model. Without any option it fits itself to the text: how long to train, which words the
    softmax knows, what is held out to measure on. Ctrl-C saves and stops; --resume goes on.
    """
    reporter: Reporter = ctx.obj
    limits = Limits(epochs, max_steps, None if max_time is None else read_duration(max_time))
    if resume is not None:
        refuse_beside_resume(ctx)
        folder = find_run(resume)
        with together(workplace(device, threads, workers, reporter, tensorboard)) as place:
            _tell(_resume(folder, place, limits), reporter)
        return
    base = RECIPES[choose("--recipe", recipe, tuple(RECIPES))]
    unlimited = replace(
        base,
        preset=preset,
        vocab_size=vocab_size,
        min_count=min_count,
        batch_tokens=batch_tokens,
        accumulate=accumulate,
        processes=process_count(),
        stream=stream,
        precision=choose("--precision", precision, TRAINING_PRECISIONS),
        learning_rate=base.learning_rate if learning_rate is None else learning_rate,
        dropout=dropout,
        negatives=negatives or base.negatives,
        weights_dtype=choose("--dtype", dtype, DTYPES),
        seed=seed,
    )
    sources = sources_of(corpora or [], heldout or [], input_mode, column, lang, encoding_errors)
    folder = in_utf8(new_model_folder(output) if output is not None else Path("models") / name_of(corpora or []))
    refuse_existing_model(folder, force=force)  # by all processes, before the first of them writes anything
    with together(workplace(device, threads, workers, reporter, tensorboard)) as place:
        note_texts(sources, ctx, place.reporter)
        _tell(_start(folder, sources, limits.applied_to(unlimited), place, force), reporter)


def _tell(result: "TrainingResult | None", reporter: Reporter) -> None:
    """Say how good the new model is, and print its path."""
    if result is None:  # of a process that is not the first of its team
        return
    found = result.perplexity
    reporter.note(
        f"held-out perplexity {figure(found.both, 2)} (forward {figure(found.forward, 2)}, "
        f"backward {figure(found.backward, 2)}) on {counted(found.tokens, 'token')}; "
        f"the unigram model has {figure(result.unigram, 2)}"
    )
    if found.both > _FAR_WORSE * result.unigram:
        reporter.warn("the model predicts far worse than word frequency alone: train again at a lower --learning-rate")
    console.answer(str(result.folder))


def _start(
    folder: Path, sources: "TextSources", wanted: TrainingSettings, place: "Workplace", force: bool
) -> "TrainingResult | None":
    from elmo_cli.training.run import start_training

    return start_training(folder, sources, wanted, place, overwrite=force)


def _resume(folder: Path, place: "Workplace", limits: Limits) -> "TrainingResult | None":
    from elmo_cli.training.run import resume_training

    return resume_training(folder, place, limits)
