"""The first stage of fine-tuning a model without softmax: one is learned over the text's words, all else is frozen."""

from dataclasses import replace
from pathlib import Path

from elmo_cli.bilm.softmax import Softmax
from elmo_cli.config import FinetuneSettings, TrainingSettings
from elmo_cli.evaluation.perplexity import Perplexity
from elmo_cli.storage.model_dir import ModelConfig, read_config, read_vocabulary
from elmo_cli.storage.run_dir import SETTINGS_FILE, RunDir
from elmo_cli.storage.weights import load_language_model
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import Vocabulary
from elmo_cli.training.base import Base
from elmo_cli.training.distributed import Team
from elmo_cli.training.extend import model_with_fresh_softmax
from elmo_cli.training.heldout import target_frequencies
from elmo_cli.training.position import Position
from elmo_cli.training.run import announced, model_config, train_session, under_way
from elmo_cli.training.run_text import divide_text
from elmo_cli.training.session import Start, counted_vocabulary, make_session
from elmo_cli.training.workplace import Workplace

STAGE_FOLDER = "softmax"  # in the run's folder: the base with its new softmax, a model of its own


def stage_settings(settings: TrainingSettings, *, last: bool) -> TrainingSettings:
    """Return the settings of one of two stages, which share a limit of steps or of time half and half."""
    steps, time_s = settings.max_steps, settings.max_time_s
    first = None if steps is None else max(1, steps // 2)
    own = first if steps is None or first is None or not last else max(1, steps - first)
    return replace(settings, max_steps=own, max_time_s=None if time_s is None else time_s / 2)


def learn_softmax(
    base: Base,
    run: RunDir,
    corpus: Corpus,
    heldout: Corpus | None,
    settings: TrainingSettings,
    adaptation: FinetuneSettings,
    place: Workplace,
    go_on: str,
) -> Base:
    """Return the base with a softmax learned over the corpus's words, now or in an earlier part of the run.

    The rate is that of training, as nothing has been learned yet; the char CNN and the LSTMs run without gradient.

    Args:
        base: without a softmax.
        run: of the whole fine-tuning; the stage has a folder of its own in it.
        corpus: to learn from.
        heldout: to measure on; None to hold out a part of the corpus.
        settings: of the whole fine-tuning.
        adaptation: says for how many epochs.
        place: to work in.
        go_on: the command that goes on with the fine-tuning, once it is stopped.
    """
    folder = run.path / STAGE_FOLDER
    stage = RunDir(folder)
    finished, begun = place.team.tell([stage.state == "finished", (stage.path / SETTINGS_FILE).exists()])
    if finished:
        return _with_learned(base, folder, place.team)
    fresh = TrainingSettings()
    own = replace(
        stage_settings(settings, last=False),
        epochs=adaptation.softmax_epochs,
        learning_rate=fresh.learning_rate,
        warmup_steps=fresh.warmup_steps,
        weights_dtype="float32",
    )
    text = divide_text(corpus, heldout, own)
    vocabulary = counted_vocabulary(text, own)
    frequencies = target_frequencies(corpus, text.pieces, vocabulary)
    model = model_with_fresh_softmax(base.bilm, vocabulary, frequencies, own)
    session = announced(make_session(text, own, vocabulary, frequencies, model, Start(base.name)), place.reporter)

    def config_of(perplexity: Perplexity | None, position: Position) -> ModelConfig:
        return model_config(session, perplexity, position)

    if place.team.is_writer and not begun:
        stage.create(run.settings())
    with under_way(stage, place):
        train_session(folder, session, stage, place, config_of, resume=begun, go_on=go_on)
    return _with_learned(base, folder, place.team)


def _with_learned(base: Base, folder: Path, team: Team) -> Base:
    """Return the base with the softmax of a finished stage, which the first process of a team reads for all."""
    config = read_config(folder) if team.is_writer else None
    types = team.tell(None if config is None else read_vocabulary(folder, config).types)
    vocabulary = Vocabulary(tuple(types))
    if config is None:
        softmax = Softmax(len(vocabulary), base.config.bilm.lstm.projection_dim)
    else:
        softmax = load_language_model(folder, config).softmax
    team.share_weights(softmax)
    return replace(base, softmax=softmax, vocabulary=vocabulary)
