"""`elmo train` from sources to a model's folder: prepare, plan, train, keep the best, measure, write the card."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import DataError, ModelError, Place
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.reporting import Reporter
from elmo_cli.storage.files import write_text_whole
from elmo_cli.storage.model_card import model_card
from elmo_cli.storage.model_dir import (
    CARD_FILE,
    ModelConfig,
    write_config,
    write_vocabulary,
)
from elmo_cli.storage.run_dir import RunDir, refuse_existing_model
from elmo_cli.storage.weights import load_language_model, write_weights
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.prepare import TextOptions, display_name, prepare_corpus
from elmo_cli.text.sources import STDIN
from elmo_cli.training.loop import Position, Trainer
from elmo_cli.training.plan import Plan, make_plan
from elmo_cli.training.session import Session, open_session
from elmo_cli.training.sources import TextSources


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a run works with that does not change its result, but for rounding.

    Attributes:
        device: to train on.
        cache: folder of prepared corpora.
        workers: processes that tokenize.
        reporter: told about progress.
    """

    device: torch.device
    cache: Path
    workers: int
    reporter: Reporter


@dataclass(frozen=True, slots=True)
class TrainingResult:
    """A finished run: the kept model's perplexity on the whole held-out text, read back from its file."""

    folder: Path
    perplexity: Perplexity
    unigram: float
    position: Position


def start_training(
    folder: Path, sources: TextSources, settings: TrainingSettings, place: Workplace, *, overwrite: bool = False
) -> TrainingResult:
    """Train a new model into ``folder``.

    Raises:
        OutputError: there is a model or a run already and ``overwrite`` is false, or the folder cannot be written.
        DataError: a text cannot be used.
        Interrupted: by a signal, after saving.
        TrainingDiverged: the loss is no longer a number.
    """
    refuse_existing_model(folder, force=overwrite)
    corpora = [_prepare(sources.corpora, sources.options, place), _prepare(sources.heldout, sources.options, place)]
    session = _announced(_open(corpora, settings), place.reporter)
    run = RunDir(folder)
    run.remove()
    run.create(_settings_tables(sources, corpora, session.decided_settings))
    return _train(folder, session, run, place, resume=False)


def resume_training(folder: Path, place: Workplace, limits: Limits) -> TrainingResult:
    """Go on with a run from its newest checkpoint that can be read.

    Args:
        folder: of the model.
        place: to work in.
        limits: replace the run's own where they are not None.

    Raises:
        ModelError: there is no run in this folder.
        DataError: the text is no longer what it was.
    """
    run = RunDir(folder)
    tables = run.settings()
    try:
        settings = TrainingSettings(**tables["training"])
        text = tables["text"]
        options = TextOptions(text["mode"], text["language"], text["errors"])
        corpora = [_prepared_before(text, name, options, place) for name in ("corpora", "heldout")]
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the run's settings are damaged: {error}", where=Place(str(run.path))) from error
    settings = limits.applied_to(settings)
    session = _announced(_open(corpora, settings), place.reporter)
    return _train(folder, session, run, place, resume=True)


def _train(folder: Path, session: Session, run: RunDir, place: Workplace, *, resume: bool) -> TrainingResult:
    unigram = session.frequencies.perplexity_of(session.heldout_frequencies)

    def keep_best(model: LanguageModel, perplexity: Perplexity, position: Position) -> None:
        write_vocabulary(folder, session.vocabulary)
        write_weights(folder, model, session.settings.weights_dtype)
        write_config(folder, _model_config(session, perplexity, unigram, position))

    trainer = Trainer(session, run, place.device, keep_best=keep_best, reporter=place.reporter)
    if resume:
        _load_newest(run, trainer, place.reporter)
    position = trainer.train()
    # Measured once more as stored (perhaps in float16) and on all of the held-out text, so that the card is true.
    best = load_language_model(folder, _model_config(session, None, unigram, position)).to(place.device)
    perplexity = measure_perplexity(best, session.heldout_batches(whole=True), place.device)
    config = _model_config(session, perplexity, unigram, position)
    write_config(folder, config)
    write_text_whole(folder / CARD_FILE, model_card(folder.resolve().name, config))
    return TrainingResult(folder, perplexity, unigram, position)


def _load_newest(run: RunDir, trainer: Trainer, reporter: Reporter) -> None:
    found = run.load_newest()
    if found is None:
        run.keep_metrics(-1)
        reporter.note("the run has no checkpoint yet: it starts from the beginning")
        return
    checkpoint, damaged = found
    for name in damaged:
        reporter.warn(f"{name} is damaged; going on from the checkpoint before it")
    trainer.resume(checkpoint)
    run.keep_metrics(trainer.position.step)
    reporter.note(f"going on from step {trainer.position.step:,}")


def _open(corpora: Sequence[Corpus | None], settings: TrainingSettings) -> Session:
    corpus, heldout = corpora
    if corpus is None:
        raise DataError("there is no text to train on")
    return open_session(corpus, heldout, settings)


def _announced(session: Session, reporter: Reporter) -> Session:
    plan: Plan = make_plan(session)
    for line in plan.lines():
        reporter.note(line)
    return session


def _prepare(files: Sequence[str], options: TextOptions, place: Workplace) -> Corpus | None:
    if not files:
        return None
    return prepare_corpus(files, options, cache=place.cache, workers=place.workers, reporter=place.reporter)


def _prepared_before(text: dict[str, Any], name: str, options: TextOptions, place: Workplace) -> Corpus | None:
    """Return the corpus a run began with: as prepared then, or prepared again from the same files."""
    files = text[name]
    if not files:
        return None
    folder = Path(text[f"prepared_{name}"])
    if (folder / "corpus.json").is_file():
        return Corpus(folder).named([display_name(file) for file in files])
    corpus = _prepare(files, options, place)
    if corpus is None or corpus.folder.name != folder.name:
        raise DataError("the text has changed since the run began", where=Place(", ".join(files)))
    return corpus


def _settings_tables(
    sources: TextSources, corpora: Sequence[Corpus | None], settings: TrainingSettings
) -> dict[str, dict[str, Any]]:
    prepared = [str(corpus.folder.absolute()) if corpus else None for corpus in corpora]
    text = {
        "corpora": _absolute(sources.corpora),
        "heldout": _absolute(sources.heldout),
        "prepared_corpora": prepared[0],
        "prepared_heldout": prepared[1],
        **asdict(sources.options),
    }
    return {"training": asdict(settings), "text": text, "made_by": {"tool": f"elmo {version('elmo-cli')}"}}


def _absolute(names: Sequence[str]) -> list[str]:
    """Return file names that hold from any working folder; standard input stays what it is."""
    return [name if name == STDIN else str(Path(name).absolute()) for name in names]


def _model_config(session: Session, perplexity: Perplexity | None, unigram: float, position: Position) -> ModelConfig:
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
        heldout = {**perplexity.to_json(), "unigram": unigram, "is_training_text": session.heldout_is_training}
        provenance["heldout"] = heldout
    return ModelConfig(
        bilm=session.config,
        tokenizer=dict(session.corpus.info.tokenizer),
        vocabulary_size=len(session.vocabulary),
        provenance=provenance,
    )
