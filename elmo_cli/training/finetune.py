"""`elmo finetune`: a model and the text of a domain to a model of that domain (Peters et al. 2018, section 3.4)."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.config import FinetuneSettings, Limits, TrainingSettings
from elmo_cli.errors import ConfigError, DataError, ModelError, Place
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.storage.model_dir import ModelConfig
from elmo_cli.storage.run_dir import FINETUNE_TABLE, RunDir, refuse_existing_model
from elmo_cli.storage.weights import load_language_model
from elmo_cli.text.corpus import Corpus
from elmo_cli.training.base import Base, load_base
from elmo_cli.training.batches import cut_pieces
from elmo_cli.training.comparison import Comparison
from elmo_cli.training.extend import extended_vocabulary, model_from_base
from elmo_cli.training.freeze import read_frozen
from elmo_cli.training.heldout import target_frequencies
from elmo_cli.training.limits import take_limits
from elmo_cli.training.position import Position
from elmo_cli.training.run import announced, check_place, model_config, train_session, under_way, write_model_text
from elmo_cli.training.run_settings import prepare, prepared_before, settings_tables
from elmo_cli.training.run_text import divide_text
from elmo_cli.training.session import Session, Start, make_session
from elmo_cli.training.softmax_stage import learn_softmax, stage_settings
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace

_TEXTS = ("corpora", "heldout", "general")
_WARMUP_SHARE = 0.1  # of a short run; at most the steps that training takes


@dataclass(frozen=True)
class Task:
    """What is fine-tuned on what, and how.

    Attributes:
        base: as stored.
        heldout: None to hold out a part of the corpus.
        general: other text, measured to see what is forgotten; None for no such text.
        settings: of the training, for all stages together.
        adaptation: what is frozen, added and drawn back.
    """

    base: Base
    corpus: Corpus
    heldout: Corpus | None
    general: Corpus | None
    settings: TrainingSettings
    adaptation: FinetuneSettings


@dataclass(frozen=True, slots=True)
class FinetuneResult:
    """A finished fine-tuning, with the perplexities of the kept model, read back from its file.

    Attributes:
        domain: of the held-out text.
        general: None where no general text was given.
        best_step: at which the kept model stood; 0 where no step was better than the base.
    """

    folder: Path
    domain: Comparison
    general: Comparison | None
    best_step: int


def start_finetuning(
    folder: Path,
    base_folder: Path,
    sources: TextSources,
    settings: TrainingSettings,
    adaptation: FinetuneSettings,
    place: Workplace,
    *,
    overwrite: bool = False,
) -> FinetuneResult | None:
    """Fit a model to a domain, into ``folder``.

    Returns:
        What the first process of a team has measured; None in the others.

    Raises:
        OutputError: there is a model or a run already and ``overwrite`` is false, or the folder cannot be written.
        ConfigError: a setting does not fit the base.
        ModelError: the base cannot be read.
        DataError: a text cannot be used.
        Interrupted: by a signal, after saving.
        TrainingDiverged: the loss is no longer a number.
    """
    if folder.resolve() == base_folder.resolve():
        raise ConfigError("the new model would replace its base", where=Place(str(folder)), fix="choose another -o")
    refuse_existing_model(folder, force=overwrite)
    run = RunDir(folder)
    if place.team.is_writer:
        run.refuse_unwritable()
    base = load_base(base_folder)
    read_frozen(adaptation.freeze, base.config.bilm.lstm.layers)
    if adaptation.extend_vocab and base.softmax is None:
        raise ConfigError(
            "the base has no softmax to extend: its vocabulary will be that of the text",
            where=Place(str(base_folder)),
            fix="leave out --extend-vocab",
        )
    check_place(settings, sources.corpora + sources.heldout + sources.general, place)
    files = (sources.corpora, sources.heldout, sources.general)
    corpora = place.prepared_together(lambda: [prepare(names, sources.options, place) for names in files])
    task = _task(base, corpora, settings, adaptation)
    origin = {"base": str(base_folder.absolute()), "base_sha256": base.sha256, **asdict(adaptation)}
    if place.team.is_writer:
        run.remove()
        run.create({**settings_tables(sources, corpora, task.settings), FINETUNE_TABLE: origin})
    return _finetune(folder, task, run, place, resume=False)


def resume_finetuning(folder: Path, place: Workplace, limits: Limits) -> FinetuneResult | None:
    """Go on with a fine-tuning from its newest checkpoint that can be read, in whichever stage it is.

    Args:
        folder: of the model.
        place: to work in.
        limits: replace the run's own where they are not None, for good.

    Returns:
        What the first process of a team has measured; None in the others.

    Raises:
        ConfigError: the run is no fine-tuning, or new limits leave it nothing to do.
        ModelError: there is no run in this folder, or its base is no longer what it was.
        DataError: the text is no longer what it was.
    """
    run = RunDir(folder)
    tables = run.settings()
    if FINETUNE_TABLE not in tables:
        raise ConfigError("the run is no fine-tuning", where=Place(str(folder)), fix=f"elmo train --resume {folder}")
    try:
        origin = dict(tables[FINETUNE_TABLE])
        base_folder, sha256 = Path(origin.pop("base")), origin.pop("base_sha256")
        adaptation, settings = FinetuneSettings(**origin), TrainingSettings(**tables["training"])
        corpora = place.prepared_together(lambda: prepared_before(tables["text"], _TEXTS, place))
    except (KeyError, TypeError, ValueError) as error:
        raise ModelError(f"the run's settings are damaged: {error}", where=Place(str(run.path))) from error
    check_place(settings, (), place)
    base = load_base(base_folder, expected_sha256=sha256)
    settings = limits.applied_to(settings)
    task = _task(base, corpora, settings, adaptation)
    if limits != Limits():
        last = settings if base.softmax is not None else stage_settings(settings, last=True)
        choices = divide_text(task.corpus, task.heldout, last).choices
        take_limits(run, settings, choices, last.max_time_s, place)
    return _finetune(folder, task, run, place, resume=True)


def _task(
    base: Base, corpora: Sequence[Corpus | None], settings: TrainingSettings, adaptation: FinetuneSettings
) -> Task:
    """Make the choices that hold for the whole run."""
    corpus, heldout, general = corpora
    if corpus is None:
        raise DataError("there is no text to fine-tune on")
    choices = divide_text(corpus, heldout, settings).choices
    decided = replace(settings, batch_tokens=choices.batch_tokens, min_count=choices.min_count)
    return Task(base, corpus, heldout, general, decided, adaptation)


def _finetune(folder: Path, task: Task, run: RunDir, place: Workplace, *, resume: bool) -> FinetuneResult | None:
    go_on = f"elmo finetune --resume {folder}"
    with under_way(run, place):
        base, settings = task.base, task.settings
        if base.softmax is None:
            place.reporter.note(f"stage 1 of 2: {base.name} has no softmax; a new one learns, all else is frozen")
            base = learn_softmax(base, run, task.corpus, task.heldout, settings, task.adaptation, place, go_on)
            settings = stage_settings(settings, last=True)
            frozen = task.adaptation.freeze
            place.reporter.note(f"stage 2 of 2: all weights learn{'' if frozen == 'none' else f', frozen: {frozen}'}")
        session = announced(_session(task, base, settings), place.reporter)
        session.model.to(place.device)
        before = _measure_before(task, session, place) if place.team.is_writer else {}
        for comparison, name in zip(before.values(), ("held-out", "general"), strict=False):
            place.reporter.note(comparison.line(name))

        def config_of(perplexity: Perplexity | None, position: Position) -> ModelConfig:
            return _config(task, session, before, perplexity, position)

        result = train_session(folder, session, run, place, config_of, resume=resume, go_on=go_on)
        if result is None:
            return None
        best = load_language_model(folder, result.config).to(place.device)
        after = {"domain": replace(before["domain"], after=result.perplexity)}
        if "general" in before:
            found = measure_perplexity(best, _general_batches(task, session), place.device)
            after["general"] = replace(before["general"], after=found)
        write_model_text(folder, _config(task, session, after, result.perplexity, result.position))
    return FinetuneResult(folder, after["domain"], after.get("general"), result.position.best_step)


def _session(task: Task, base: Base, settings: TrainingSettings) -> Session:
    """Return the session of the stage that trains what is not frozen."""
    text = divide_text(task.corpus, task.heldout, settings)
    if base.vocabulary is None or base.softmax is None:
        raise ValueError("a base without softmax has to learn one first")
    vocabulary = base.vocabulary
    if task.adaptation.extend_vocab:
        vocabulary = extended_vocabulary(vocabulary, text, task.adaptation.extend_vocab)
    frequencies = target_frequencies(task.corpus, text.pieces, vocabulary)
    model = model_from_base(base.bilm, base.softmax, vocabulary, frequencies, settings)
    read_frozen(task.adaptation.freeze, base.config.bilm.lstm.layers).apply(model)
    kept = len(base.vocabulary) if task.base.softmax is not None else 0
    start = Start(base.name, kept, len(vocabulary) - len(base.vocabulary), task.adaptation.l2sp)
    # A hundred steps may be all there are; a resumed run with other limits keeps neither its steps nor their rates.
    warmup = max(1, min(settings.warmup_steps, int(_WARMUP_SHARE * text.choices.steps)))
    return make_session(text, replace(settings, warmup_steps=warmup), vocabulary, frequencies, model, start)


def _measure_before(task: Task, session: Session, place: Workplace) -> dict[str, Comparison]:
    """Measure the base, and where it predicts other words than the model to be trained, that one as well."""
    start = _measured(session.model, task, session, place)
    base, vocabulary = task.base, task.base.vocabulary
    if base.softmax is None or vocabulary is None:
        return {name: Comparison(None, found) for name, found in start.items()}
    if len(vocabulary) == len(session.vocabulary):
        return {name: Comparison(found, None) for name, found in start.items()}
    model = model_from_base(base.bilm, base.softmax, vocabulary, session.frequencies, session.settings)
    before = _measured(model.to(place.device), task, replace(session, vocabulary=vocabulary), place)
    return {name: Comparison(before[name], start[name]) for name in start}


def _measured(model: LanguageModel, task: Task, session: Session, place: Workplace) -> dict[str, Perplexity]:
    """Measure a model on the held-out and the general text, with the session's vocabulary."""
    batches = {"domain": session.heldout_batches()}
    if task.general is not None:
        batches["general"] = _general_batches(task, session)
    return {name: measure_perplexity(model, part, place.device) for name, part in batches.items()}


def _general_batches(task: Task, session: Session) -> Iterator[Batch]:
    """Yield the general text, cut as the others are; nothing where there is none."""
    if task.general is None:
        return iter(())
    every = np.arange(task.general.info.sentences)
    return session.measuring_batches(task.general, cut_pieces(task.general, every, task.settings.max_sentence_tokens))


def _config(
    task: Task,
    session: Session,
    comparisons: dict[str, Comparison],
    perplexity: Perplexity | None,
    position: Position,
) -> ModelConfig:
    """Return the new model's config: as of a training, and with its parent and the perplexities before and after."""
    made = model_config(session, perplexity, position)
    settings = {name: value for name, value in made.provenance["settings"].items() if name != "preset"}
    provenance: dict[str, Any] = {
        **made.provenance,
        "settings": settings,
        "parent": {"name": task.base.name, "sha256": task.base.sha256},
        "finetuning": {
            **asdict(task.adaptation),
            "words_added": 0 if session.start is None else session.start.added_types,
            "best_step": position.best_step,
            "perplexity": {name: comparison.to_json() for name, comparison in comparisons.items()},
        },
    }
    if task.general is not None:
        provenance["general"] = [{**asdict(f), "name": Path(f.name).name} for f in task.general.info.sources]
    # Text that came tokenized says nothing of a tokenizer; then plain text goes on to be read as for the base.
    tokenizer = made.tokenizer if made.tokenizer.get("name") != "none" else task.base.config.tokenizer
    return replace(made, tokenizer=dict(tokenizer), provenance=provenance)
