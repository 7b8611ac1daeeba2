"""`elmo finetune`: a model and the text of a domain to a model of that domain."""

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
    Model,
    ModelLang,
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
    NegativesOption,
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
from elmo_cli.config import DTYPES, FINETUNING_RATE, TRAINING_PRECISIONS, FinetuneSettings, Limits, TrainingSettings
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL
from elmo_cli.storage.registry import find_model, new_model_folder
from elmo_cli.storage.run_dir import find_run, refuse_existing_model

if TYPE_CHECKING:
    from elmo_cli.training.finetune import FinetuneResult

_DEFAULTS = TrainingSettings()


def finetune(
    ctx: typer.Context,
    corpora: Corpora = None,
    model: Model = DEFAULT_MODEL,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="NAME|DIR", help="The new model.  [default: models/, named MODEL-CORPUS]"
        ),
    ] = None,
    input_mode: Input = "lines",
    column: Column = 1,
    lang: ModelLang = None,
    heldout: Heldout = None,
    general: Annotated[
        list[str] | None,
        typer.Option(
            "--general", metavar="FILE", help="Other text, measured before and after to see what is forgotten."
        ),
    ] = None,
    encoding_errors: EncodingErrorsOption = "strict",
    freeze: Annotated[
        str,
        typer.Option(
            "--freeze",
            metavar="PARTS",
            autocompletion=complete_from("none", "encoder", "lstm", "softmax", "all-but-softmax"),
            help="What does not learn: none, encoder (the char CNN), lstm, softmax, all-but-softmax, or layers from 0, "
            "the char CNN, such as 0,1.",
        ),
    ] = "none",
    l2sp: Annotated[
        float,
        typer.Option(
            "--l2sp", metavar="STRENGTH", help="Draw the weights back to the base's, to forget less; 0 for no."
        ),
    ] = 0.0,
    extend_vocab: Annotated[
        int,
        typer.Option("--extend-vocab", metavar="N", min=0, help="Add the text's N most frequent new words, at most."),
    ] = 0,
    vocab_size: Annotated[
        int, typer.Option("--vocab-size", min=1, help="Word types of a new softmax, at most.")
    ] = _DEFAULTS.vocab_size,
    min_count: Annotated[
        int | None,
        typer.Option("--min-count", min=1, help="Times a new word occurs, at least.  [default: 2; small texts 1]"),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option("--epochs", min=1, help="Passes over the text.  [default: 1]", show_default=False)
    ] = None,
    softmax_epochs: Annotated[
        int | None,
        typer.Option("--softmax-epochs", min=1, help="Of a new softmax, before that.  [default: by the text's size]"),
    ] = None,
    max_steps: MaxSteps = None,
    max_time: MaxTime = None,
    batch_tokens: StepTokens = None,
    accumulate: Accumulate = 1,
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of Adam, at its highest.")] = FINETUNING_RATE,
    dropout: Dropout = _DEFAULTS.dropout,
    negatives: NegativesOption = _DEFAULTS.negatives,
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
    """Fit a model to a domain: one epoch on its text.

    Prints the path of the new model, and on stderr the perplexity of held-out text before and after, with the share of
    words outside the vocabulary. Tokenizer, language and vocabulary are those of the base. The model that predicts the
    held-out text best is kept; if no step is better than the base, that is the base itself, and a warning says so.

    A base without softmax, as published weights are, first learns one over the text's words with all else frozen,
    then everything. The two stages share --max-steps and --max-time half and half.
    """
    reporter: Reporter = ctx.obj
    limits = Limits(epochs, max_steps, None if max_time is None else read_duration(max_time))
    if resume is not None:
        refuse_beside_resume(ctx)
        folder = find_run(resume)
        from elmo_cli.training.finetune import resume_finetuning

        with together(workplace(device, threads, workers, reporter, tensorboard)) as place:
            _tell(resume_finetuning(folder, place, limits), reporter)
        return
    if epochs is None and max_steps is None:
        limits = Limits(1, None, limits.max_time_s)
    training = TrainingSettings(
        vocab_size=vocab_size,
        min_count=min_count,
        batch_tokens=batch_tokens,
        accumulate=accumulate,
        processes=process_count(),
        learning_rate=learning_rate,
        dropout=dropout,
        negatives=negatives,
        precision=choose("--precision", precision, TRAINING_PRECISIONS),
        weights_dtype=choose("--dtype", dtype, DTYPES),
        seed=seed,
    )
    adaptation = FinetuneSettings(freeze, l2sp, extend_vocab, softmax_epochs)
    base = find_model(model)
    language = lang or _language_of(base)
    sources = sources_of(
        corpora or [], heldout or [], input_mode, column, language, encoding_errors, general=general or []
    )
    named = Path("models") / f"{base.resolve().name}-{name_of(corpora or [])}" if output is None else None
    folder = in_utf8(named or new_model_folder(output or ""))
    refuse_existing_model(folder, force=force)
    from elmo_cli.training.finetune import start_finetuning

    applied = limits.applied_to(training)
    with together(workplace(device, threads, workers, reporter, tensorboard)) as place:
        note_texts(sources, ctx, place.reporter)
        _tell(start_finetuning(folder, base, sources, applied, adaptation, place, overwrite=force), reporter)


def _language_of(base: Path) -> str:
    from elmo_cli.storage.model_dir import read_config

    return read_config(base).language


def _tell(result: "FinetuneResult | None", reporter: Reporter) -> None:
    """Say how the perplexities changed, and print the model's path."""
    if result is None:  # of a process that is not the first of its team
        return
    reporter.note(result.domain.line("held-out"))
    if result.general is not None:
        reporter.note(result.general.line("general"))
    after = result.domain.after
    if result.best_step == 0:
        reporter.warn("no step predicted the held-out text better than the base: the model holds the base's weights")
    elif after is not None and after.both > result.domain.before.both:
        reporter.warn("on the whole of the held-out text the model is worse than its base")
    console.answer(str(result.folder))
