"""`elmo train` from sources to a model's folder: prepare, plan, train, keep the best, measure, write the card."""

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from torch import OutOfMemoryError

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import ConfigError, DataError, ModelError, Place, TrainingDiverged
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.reporting import Reporter
from elmo_cli.storage.files import remove_leftovers, write_text_whole
from elmo_cli.storage.model_card import model_card
from elmo_cli.storage.model_dir import (
    CARD_FILE,
    MODEL_FILES,
    ModelConfig,
    write_config,
    write_vocabulary,
)
from elmo_cli.storage.run_dir import FINETUNE_TABLE, METRICS_FILE, SETTINGS_FILE, RunDir, refuse_existing_model
from elmo_cli.storage.weights import load_language_model, write_weights
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.sources import STDIN
from elmo_cli.training.limits import take_limits
from elmo_cli.training.loop import Trainer
from elmo_cli.training.plan import Plan, make_plan
from elmo_cli.training.position import Position
from elmo_cli.training.precision import check_training_precision
from elmo_cli.training.run_settings import prepare, prepared_before, settings_tables
from elmo_cli.training.session import Session, open_session
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A finished run: the kept model's perplexity on the whole held-out text, read back from its file."""

    folder: Path
    perplexity: Perplexity
    unigram: float
    position: Position
    config: ModelConfig


@runtime_checkable  # the types of arguments are checked in tests
class ConfigMaker(Protocol):
    """Says what the config of a run's model records."""

    def __call__(self, perplexity: Perplexity | None, position: Position) -> ModelConfig:
        """Return the config; without a perplexity where it is not measured yet."""


def start_training(
    folder: Path, sources: TextSources, settings: TrainingSettings, place: Workplace, *, overwrite: bool = False
) -> TrainingResult | None:
    """Train a new model into ``folder``.

    Returns:
        What the first process of a team has measured; None in the others.

    Raises:
        OutputError: there is a model or a run already and ``overwrite`` is false, or the folder cannot be written.
        DataError: a text cannot be used.
        Interrupted: by a signal, after saving.
        TrainingDiverged: the loss is no longer a number.
    """
    refuse_existing_model(folder, force=overwrite)
    run = RunDir(folder)
    if place.team.is_writer:
        run.refuse_unwritable()
    check_place(settings, sources.corpora + sources.heldout, place)
    files = (sources.corpora, sources.heldout)
    corpora = place.prepared_together(lambda: [prepare(names, sources.options, place) for names in files])
    session = announced(_open(corpora, settings), place.reporter)
    if place.team.is_writer:
        run.remove()
        run.create(settings_tables(sources, corpora, session.decided_settings))
    return _train(folder, session, run, place, resume=False)


def resume_training(folder: Path, place: Workplace, limits: Limits) -> TrainingResult | None:
    """Go on with a run from its newest checkpoint that can be read.

    Args:
        folder: of the model.
        place: to work in.
        limits: replace the run's own where they are not None, for good.

    Returns:
        What the first process of a team has measured; None in the others.

    Raises:
        ConfigError: the run is a fine-tuning, or new limits leave it nothing to do.
        ModelError: there is no run in this folder.
        DataError: the text is no longer what it was.
    """
    run = RunDir(folder)
    tables = run.settings()
    if FINETUNE_TABLE in tables:
        raise ConfigError("the run is a fine-tuning", where=Place(str(folder)), fix=f"elmo finetune --resume {folder}")
    try:
        settings = TrainingSettings(**tables["training"])
        corpora = place.prepared_together(lambda: prepared_before(tables["text"], ("corpora", "heldout"), place))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the run's settings are damaged: {error}", where=Place(str(run.path))) from error
    check_place(settings, (), place)
    settings = limits.applied_to(settings)
    session = _open(corpora, settings)
    if limits != Limits():
        take_limits(run, settings, session.choices, settings.max_time_s, place)
    return _train(folder, announced(session, place.reporter), run, place, resume=True)


def check_place(settings: TrainingSettings, files: Sequence[str], place: Workplace) -> None:
    """Refuse what cannot be done with these processes or on this device.

    Raises:
        ConfigError: with what to do instead.
    """
    check_training_precision(settings.precision, place.device)
    if place.team.size > 1 and settings.stream:
        raise ConfigError("streams are read by one process", fix="run it without torchrun")
    if place.team.size > 1 and STDIN in files:
        raise ConfigError("several processes cannot read one standard input", fix="name files")


def _train(folder: Path, session: Session, run: RunDir, place: Workplace, *, resume: bool) -> TrainingResult | None:
    def config_of(perplexity: Perplexity | None, position: Position) -> ModelConfig:
        return model_config(session, perplexity, position)

    with under_way(run, place):
        return train_session(folder, session, run, place, config_of, resume=resume)


def under_way(run: RunDir, place: Workplace) -> AbstractContextManager[None]:
    """Mark the run as under way while the block runs; in a team the first process does it."""
    return run.under_way() if place.team.is_writer else nullcontext()


def train_session(
    folder: Path,
    session: Session,
    run: RunDir,
    place: Workplace,
    config_of: ConfigMaker,
    *,
    resume: bool,
    go_on: str | None = None,
) -> TrainingResult | None:
    """Train to the end of the plan and keep the best model with its config and card.

    Args:
        folder: of the model.
        session: text and model.
        run: marked as under way.
        place: to work in.
        config_of: says what the model's config records.
        resume: whether to go on from the run's newest checkpoint.
        go_on: the command that does so, once the run is stopped; None for that of `elmo train`.

    Returns:
        What the first process of a team has measured; None in the others, which neither write nor measure.
    """
    writes = place.team.is_writer
    if writes:
        remove_leftovers(folder, MODEL_FILES)
        remove_leftovers(run.path, (SETTINGS_FILE, METRICS_FILE))
    # Drawn or computed by each process, with roundings that differ from one kind of processor to another.
    place.team.share_weights(session.model)
    trainer = _trainer(folder, session, run, place, config_of, go_on)
    if resume:
        _load_newest(run, trainer, place)
    if writes and (place.tensorboard or run.has_events):
        run.write_events(trainer.position.step)
    position = trainer.train()
    if not writes:
        return None
    if not math.isfinite(position.best):
        raise TrainingDiverged(
            "the held-out perplexity was never finite; no model is kept",
            fix="train again with a lower --learning-rate",
        )
    # Measured once more as stored (perhaps in float16) and on all of the held-out text, so that the card is true.
    best = load_language_model(folder, config_of(None, position)).to(place.device)
    perplexity = measure_perplexity(best, session.heldout_batches(), place.device)
    config = config_of(perplexity, position)
    write_model_text(folder, config)
    return TrainingResult(folder, perplexity, unigram_perplexity(session), position, config)


def _trainer(
    folder: Path, session: Session, run: RunDir, place: Workplace, config_of: ConfigMaker, go_on: str | None
) -> Trainer:
    has_vocabulary = False

    def keep_best(model: LanguageModel, perplexity: Perplexity, position: Position) -> None:
        nonlocal has_vocabulary
        # The config last, and the weights, which take longest, first: a kill leaves files that do not fit together only
        # in the moment between two renames, and then the config, which knows the others' sums, says so.
        write_weights(folder, model, session.settings.weights_dtype)
        if not has_vocabulary:
            write_vocabulary(folder, session.vocabulary)
            has_vocabulary = True
        write_config(folder, config_of(perplexity, position))

    return Trainer(
        session, run, place.device, keep_best=keep_best, reporter=place.reporter, go_on=go_on, team=place.team
    )


def write_model_text(folder: Path, config: ModelConfig) -> None:
    """Write a model's config and its card."""
    write_config(folder, config)
    write_text_whole(folder / CARD_FILE, model_card(folder.resolve().name, config))


def unigram_perplexity(session: Session) -> float:
    """Return the held-out text's perplexity by word frequency alone."""
    return session.frequencies.perplexity_of(session.heldout_frequencies)


def _load_newest(run: RunDir, trainer: Trainer, place: Workplace) -> None:
    """Let a trainer go on from the newest checkpoint, which the first process of a team reads for all."""
    team, reporter = place.team, place.reporter
    found = run.load_newest() if team.is_writer else None
    checkpoint = team.share(None if found is None else found[0])
    if checkpoint is None:
        if team.is_writer:
            run.keep_metrics(-1)
        reporter.note("the run has no checkpoint yet: it starts from the beginning")
        return
    for name in [] if found is None else found[1]:
        reporter.warn(f"{name} is damaged; going on from the checkpoint before it")
    try:
        good = None
        if (good_step := int(checkpoint.values["health"]["good_step"])) != checkpoint.step:
            good = team.share(run.load(good_step) if team.is_writer else None)
        trainer.resume(checkpoint, good)
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError, RuntimeError) as error:
        if isinstance(error, OutOfMemoryError):
            raise
        problem = f"the checkpoint of step {checkpoint.step:,} is not of this run: {error!s:.200}"
        raise ModelError(problem, where=Place(str(run.path)), fix="start over with --force") from error
    if team.is_writer:
        run.go_back(trainer.position.step)
    reporter.note(f"going on from step {trainer.position.step:,}")


def _open(corpora: Sequence[Corpus | None], settings: TrainingSettings) -> Session:
    corpus, heldout = corpora
    if corpus is None:
        raise DataError("there is no text to train on")
    return open_session(corpus, heldout, settings)


def announced(session: Session, reporter: Reporter) -> Session:
    """Tell the plan of a session and return it."""
    plan: Plan = make_plan(session)
    for line in plan.lines():
        reporter.note(line)
    return session


def model_config(session: Session, perplexity: Perplexity | None, position: Position) -> ModelConfig:
    """Return the model's config with its provenance; corpora stand there by file name, never by path."""
    corpora = [{**asdict(file), "name": Path(file.name).name} for file in session.corpus.info.sources]
    provenance: dict[str, Any] = {
        "tool": f"elmo {version('elmo-cli')}",
        "created": date.today().isoformat(),
        "corpora": corpora,
        "settings": asdict(session.decided_settings),
        "training": {
            "text_tokens": session.pieces.token_count,
            "tokens_read": position.tokens,
            "steps": position.step,
            "seconds": round(position.seconds, 1),
        },
        "parent": None,
    }
    if perplexity is not None:
        unigram, is_training = unigram_perplexity(session), session.heldout_is_training
        provenance["heldout"] = {**perplexity.to_json(), "unigram": unigram, "is_training_text": is_training}
    return ModelConfig(
        bilm=session.config,
        tokenizer=dict(session.corpus.info.tokenizer),
        vocabulary_size=len(session.vocabulary),
        provenance=provenance,
    )
