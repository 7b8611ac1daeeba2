"""The text of a run: what of it is trained on and what is held out, and the choices that follow from its size."""

from dataclasses import dataclass

import numpy as np

from elmo_cli.config import TrainingSettings
from elmo_cli.text.corpus import Corpus
from elmo_cli.training.batches import Pieces, cut_pieces, epoch_batches
from elmo_cli.training.heldout import split_heldout
from elmo_cli.training.stream_reader import STREAM_TOKENS, stream_steps

_MIN_COUNT_TOKENS = 10_000  # below this much text every type counts; above it a type seen once trains <UNK>
_TARGET_TOKENS = 20_000_000  # what a run of default length reads in all, if the text is no larger than that
_BATCH_TOKENS = (128, 1024)  # least and most by default: small batches learn more from each token read
_EPOCHS = (2, 10)  # least and most by default ...
_MIN_STEPS = 300  # ... unless a small text would then be seen too few times to be learned


@dataclass(frozen=True, slots=True)
class Choices:
    """What the settings leave to the size of the text, chosen.

    Attributes:
        batch_tokens: tokens of a part of a step, markers included.
        parts: of a step, over all processes.
        min_count: times a word type of the softmax occurs, at least.
        epochs: passes over the text.
        steps_an_epoch: batches of one pass.
        steps: of the whole run, if no limit of time ends it before.
    """

    batch_tokens: int
    parts: int
    min_count: int
    epochs: int
    steps_an_epoch: int
    steps: int

    @property
    def step_tokens(self) -> int:
        """Tokens of a whole step."""
        return self.batch_tokens * self.parts


@dataclass(frozen=True, slots=True)
class RunText:
    """The text of a run, divided, and the choices that follow from its size.

    Attributes:
        corpus: the training text; `pieces` says which of it is trained on.
        heldout_corpus: the text measured on, the same corpus when a part of it was held out.
        heldout_is_training: nothing could be spared, so the training text itself is measured.
        choices: what the settings leave open.
    """

    corpus: Corpus
    pieces: Pieces
    heldout_corpus: Corpus
    heldout_pieces: Pieces
    heldout_is_training: bool
    choices: Choices


def divide_text(corpus: Corpus, heldout: Corpus | None, settings: TrainingSettings) -> RunText:
    """Choose what is held out, if no text is given for that, and make the choices that follow from the text's size."""
    sentences, spared = split_heldout(corpus, settings.seed)
    if heldout is not None:
        sentences = np.sort(np.concatenate((sentences, spared)))
        spared = np.arange(heldout.info.sentences)
    is_training = len(spared) == 0
    measured = sentences if is_training else spared
    pieces = cut_pieces(corpus, sentences, settings.max_sentence_tokens)
    return RunText(
        corpus=corpus,
        pieces=pieces,
        heldout_corpus=heldout or corpus,
        heldout_pieces=cut_pieces(heldout or corpus, measured, settings.max_sentence_tokens),
        heldout_is_training=is_training,
        choices=_decide(settings, pieces),
    )


def _decide(settings: TrainingSettings, pieces: Pieces) -> Choices:
    """Make the choices that the settings leave to the size of the text."""
    tokens = pieces.token_count
    smallest, largest = _BATCH_TOKENS
    batch_tokens = settings.batch_tokens or max(smallest, min(largest, tokens // 100))
    parts = settings.accumulate * settings.processes
    if settings.stream:
        batch_tokens = settings.batch_tokens or STREAM_TOKENS
        steps = stream_steps(pieces, batch_tokens)
    else:
        steps = sum(1 for _ in epoch_batches(pieces.lengths, batch_tokens * parts, seed=settings.seed, epoch=0))
    least, most = _EPOCHS
    max_steps = settings.max_steps
    if settings.epochs is not None:
        epochs = settings.epochs
    elif max_steps is not None:
        epochs = -(-max_steps // steps)
    else:
        epochs = max(least, min(most, round(_TARGET_TOKENS / tokens)), -(-_MIN_STEPS // steps))
    return Choices(
        batch_tokens=batch_tokens,
        parts=parts,
        min_count=settings.min_count or (2 if tokens >= _MIN_COUNT_TOKENS else 1),
        epochs=epochs,
        steps_an_epoch=steps,
        steps=epochs * steps if max_steps is None else min(epochs * steps, max_steps),
    )
