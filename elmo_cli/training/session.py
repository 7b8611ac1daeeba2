"""Everything a training run works with, made from a corpus and settings: text, held-out text, vocabulary, model."""

from dataclasses import dataclass, replace

import numpy as np
import torch

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.config import BiLMConfig, TrainingSettings, preset
from elmo_cli.errors import DataError, Place
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary, build_vocabulary
from elmo_cli.training.batches import BatchMaker, Pieces, cut_pieces, epoch_batches, split_by_budget
from elmo_cli.training.heldout import Frequencies, count_types, split_heldout, target_frequencies

_MIN_COUNT_TOKENS = 10_000  # below this much text every type counts; above it a type seen once trains <UNK>
_TARGET_TOKENS = 20_000_000  # what a run of default length reads in all, if the text is no larger than that
_BATCH_TOKENS = (128, 1024)  # least and most by default: small batches learn more from each token read
_MEASURED_TOKENS = 4096  # a batch, when measuring perplexity
_SAMPLE_TOKENS = 20_000  # measured during a run: a steady figure within a percent, in seconds
_EPOCHS = (2, 10)  # least and most by default ...
_MIN_STEPS = 300  # ... unless a small text would then be seen too few times to be learned


@dataclass(frozen=True, slots=True)
class Choices:
    """What the settings leave to the size of the text, chosen.

    Attributes:
        batch_tokens: tokens a step, markers included.
        min_count: times a word type of the softmax occurs, at least.
        epochs: passes over the text.
        steps_an_epoch: batches of one pass.
    """

    batch_tokens: int
    min_count: int
    epochs: int
    steps_an_epoch: int


@dataclass(frozen=True)
class Session:
    """A run's text and model, ready to train.

    Attributes:
        settings: as asked for.
        choices: what they leave open.
        corpus: the training text; `pieces` says which of it is trained on.
        heldout_corpus: the text measured on, the same corpus when a part of it was held out.
        heldout_is_training: nothing could be spared, so the training text itself is measured.
        vocabulary: of the softmax.
        frequencies: of the training targets.
        heldout_frequencies: of the targets measured on.
        model: with fresh weights.
    """

    settings: TrainingSettings
    choices: Choices
    config: BiLMConfig
    corpus: Corpus
    pieces: Pieces
    heldout_corpus: Corpus
    heldout_pieces: Pieces
    heldout_is_training: bool
    vocabulary: Vocabulary
    frequencies: Frequencies
    heldout_frequencies: Frequencies
    model: LanguageModel

    @property
    def decided_settings(self) -> TrainingSettings:
        """The settings with every choice made, so that they make the same run again."""
        chosen = self.choices
        # Epochs that follow from a number of steps are left to follow from it, also when a resumed run gets a new one.
        epochs = chosen.epochs if self.settings.max_steps is None else self.settings.epochs
        return replace(self.settings, batch_tokens=chosen.batch_tokens, min_count=chosen.min_count, epochs=epochs)

    @property
    def is_sampled(self) -> bool:
        """Whether training uses the sampled softmax."""
        return self.model.softmax.sparse

    def batch_maker(self) -> BatchMaker:
        """Return what turns piece numbers of the training text into batches."""
        return BatchMaker(self.corpus, self.pieces, self.vocabulary, self.config.char_cnn.max_characters)

    def heldout_batches(self, *, whole: bool) -> list[Batch]:
        """Return the batches to measure on: a fixed sample of about 20,000 tokens, or all of them."""
        pieces = np.arange(len(self.heldout_pieces))
        lengths = self.heldout_pieces.lengths
        if not whole and lengths.sum() > _SAMPLE_TOKENS:
            pieces = np.random.default_rng(0).permutation(pieces)
            pieces = pieces[: int(np.searchsorted(lengths[pieces].cumsum(), _SAMPLE_TOKENS)) + 1]
        pieces = pieces[np.argsort(lengths[pieces], kind="stable")]
        characters = self.config.char_cnn.max_characters
        maker = BatchMaker(self.heldout_corpus, self.heldout_pieces, self.vocabulary, characters)
        return [maker(part) for part in split_by_budget(pieces, lengths[pieces], _MEASURED_TOKENS)]


def open_session(corpus: Corpus, heldout: Corpus | None, settings: TrainingSettings) -> Session:
    """Choose what is held out, build the vocabulary and draw fresh weights.

    Args:
        corpus: the text to train on.
        heldout: the text to measure on; None to hold out a part of the corpus.
        settings: of the run.

    Raises:
        DataError: no word is frequent enough for the vocabulary.
    """
    sentences, spared = split_heldout(corpus, settings.seed)
    if heldout is not None:
        sentences = np.sort(np.concatenate((sentences, spared)))
        spared = np.arange(heldout.info.sentences)
    else:
        heldout = corpus
    is_training = len(spared) == 0
    pieces = cut_pieces(corpus, sentences, settings.max_sentence_tokens)
    heldout_pieces = cut_pieces(heldout, sentences if is_training else spared, settings.max_sentence_tokens)
    choices = _decide(settings, pieces)
    vocabulary = _vocabulary(corpus, pieces, choices.min_count, settings.vocab_size)
    config = preset(settings.preset)
    frequencies = target_frequencies(corpus, pieces, vocabulary)
    return Session(
        settings=settings,
        choices=choices,
        config=config,
        corpus=corpus,
        pieces=pieces,
        heldout_corpus=heldout,
        heldout_pieces=heldout_pieces,
        heldout_is_training=is_training,
        vocabulary=vocabulary,
        frequencies=frequencies,
        heldout_frequencies=target_frequencies(heldout, heldout_pieces, vocabulary),
        model=_fresh_model(config, vocabulary, frequencies, settings),
    )


def _fresh_model(
    config: BiLMConfig, vocabulary: Vocabulary, frequencies: Frequencies, settings: TrainingSettings
) -> LanguageModel:
    size = len(vocabulary)
    sampled = size > settings.sampled_above and settings.negatives < size
    model = LanguageModel(config, size, dropout=settings.dropout, sparse=sampled)
    generator = torch.Generator().manual_seed(settings.seed)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.from_numpy(frequencies.log_relative()).float())
    return model


def _vocabulary(corpus: Corpus, pieces: Pieces, min_count: int, size: int) -> Vocabulary:
    counts = count_types(corpus, pieces)
    vocabulary = build_vocabulary(corpus.all_type_texts, counts, min_count=min_count, max_size=size)
    if len(vocabulary) == len(SPECIALS):
        raise DataError(
            f"no word occurs {min_count} times in the text",
            where=Place(corpus.info.sources[0].name),
            fix="lower --min-count",
        )
    return vocabulary


def _decide(settings: TrainingSettings, pieces: Pieces) -> Choices:
    """Make the choices that the settings leave to the size of the text."""
    tokens = pieces.token_count
    smallest, largest = _BATCH_TOKENS
    batch_tokens = settings.batch_tokens or max(smallest, min(largest, tokens // 100))
    steps = sum(1 for _ in epoch_batches(pieces.lengths, batch_tokens, seed=settings.seed, epoch=0))
    least, most = _EPOCHS
    epochs = max(least, min(most, round(_TARGET_TOKENS / tokens)), -(-_MIN_STEPS // steps))
    if settings.max_steps is not None:
        epochs = -(-settings.max_steps // steps)
    return Choices(
        batch_tokens=batch_tokens,
        min_count=settings.min_count or (2 if tokens >= _MIN_COUNT_TOKENS else 1),
        epochs=settings.epochs or epochs,
        steps_an_epoch=steps,
    )
