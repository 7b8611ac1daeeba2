"""Everything a training run works with, made from a corpus and settings: text, held-out text, vocabulary, model."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_cli.bilm.batching import split_by_budget
from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.config import BiLMConfig, TrainingSettings, preset
from elmo_cli.errors import DataError, Place
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary, build_vocabulary
from elmo_cli.training.batches import BatchMaker, Pieces
from elmo_cli.training.heldout import Frequencies, count_types, target_frequencies
from elmo_cli.training.l2sp import Anchor
from elmo_cli.training.run_text import Choices, RunText, divide_text

_MEASURED_TOKENS = 4096  # a batch, when measuring perplexity
_SAMPLE_TOKENS = 20_000  # measured during a run: a steady figure within a percent, in seconds


@dataclass(frozen=True, slots=True)
class Start:
    """What a model was before this run, if its weights are not fresh.

    Attributes:
        base: name of the model they come from.
        kept_types: first rows of the softmax that are the base's; 0 for a fresh softmax.
        added_types: rows added to them.
        l2sp: strength of the pull back to these weights.
    """

    base: str
    kept_types: int = 0
    added_types: int = 0
    l2sp: float = 0.0


@dataclass(frozen=True)
class Session:
    """A run's text and model, ready to train.

    Attributes:
        settings: as asked for.
        text: to train and to measure on.
        vocabulary: of the softmax.
        frequencies: of the training targets.
        heldout_frequencies: of the targets measured on.
        model: as the run begins.
        start: where its weights come from; None for fresh ones.
    """

    settings: TrainingSettings
    text: RunText
    vocabulary: Vocabulary
    frequencies: Frequencies
    heldout_frequencies: Frequencies
    model: LanguageModel
    start: Start | None = None

    @property
    def config(self) -> BiLMConfig:
        """Shape of the model."""
        return self.model.bilm.config

    @property
    def choices(self) -> Choices:
        """What the settings leave open, chosen."""
        return self.text.choices

    @property
    def corpus(self) -> Corpus:
        """The training text."""
        return self.text.corpus

    @property
    def pieces(self) -> Pieces:
        """What of the training text is trained on."""
        return self.text.pieces

    @property
    def heldout_pieces(self) -> Pieces:
        """What is measured on."""
        return self.text.heldout_pieces

    @property
    def heldout_is_training(self) -> bool:
        """Whether nothing could be spared, so that the training text itself is measured."""
        return self.text.heldout_is_training

    def anchor(self) -> Anchor | None:
        """Return what draws the weights back to what they are now; None where nothing does."""
        if self.start is None or not self.start.l2sp:
            return None
        return Anchor(self.model, self.start.l2sp, self.start.kept_types)

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

    def heldout_sample(self) -> list[Batch]:
        """Return what is measured on again and again: a fixed sample of about 20,000 tokens."""
        lengths = self.heldout_pieces.lengths
        numbers = np.arange(len(lengths))
        if lengths.sum() > _SAMPLE_TOKENS:
            numbers = np.random.default_rng(0).permutation(numbers)
            numbers = numbers[: int(np.searchsorted(lengths[numbers].cumsum(), _SAMPLE_TOKENS)) + 1]
        return list(self.measuring_batches(self.text.heldout_corpus, self.heldout_pieces, numbers))

    def heldout_batches(self) -> Iterator[Batch]:
        """Yield all that is held out, made as it is read: a text that was given for it may be of any size."""
        return self.measuring_batches(self.text.heldout_corpus, self.heldout_pieces)

    def measuring_batches(
        self, corpus: Corpus, pieces: Pieces, numbers: NDArray[np.int64] | None = None
    ) -> Iterator[Batch]:
        """Yield batches of pieces of a text, of like length, to measure on; of all of them if none are named."""
        numbers = np.arange(len(pieces)) if numbers is None else numbers
        lengths = pieces.lengths
        numbers = numbers[np.argsort(lengths[numbers], kind="stable")]
        maker = BatchMaker(corpus, pieces, self.vocabulary, self.config.char_cnn.max_characters)
        return (maker(part) for part in split_by_budget(numbers, lengths[numbers], _MEASURED_TOKENS))


def open_session(corpus: Corpus, heldout: Corpus | None, settings: TrainingSettings) -> Session:
    """Choose what is held out, build the vocabulary and draw fresh weights.

    Args:
        corpus: the text to train on.
        heldout: the text to measure on; None to hold out a part of the corpus.
        settings: of the run.

    Raises:
        DataError: no word is frequent enough for the vocabulary.
    """
    text = divide_text(corpus, heldout, settings)
    vocabulary = counted_vocabulary(text, settings)
    frequencies = target_frequencies(corpus, text.pieces, vocabulary)
    model = _fresh_model(preset(settings.preset), vocabulary, frequencies, settings)
    return make_session(text, settings, vocabulary, frequencies, model)


def make_session(
    text: RunText,
    settings: TrainingSettings,
    vocabulary: Vocabulary,
    frequencies: Frequencies,
    model: LanguageModel,
    start: Start | None = None,
) -> Session:
    """Put a session together; the frequencies are those of the training text."""
    return Session(
        settings=settings,
        text=text,
        vocabulary=vocabulary,
        frequencies=frequencies,
        heldout_frequencies=target_frequencies(text.heldout_corpus, text.heldout_pieces, vocabulary),
        model=model,
        start=start,
    )


def new_model(config: BiLMConfig, vocabulary_size: int, settings: TrainingSettings) -> LanguageModel:
    """Return a model without values yet, whose softmax is sampled or not, as the settings say."""
    sampled = vocabulary_size > settings.sampled_above and settings.negatives < vocabulary_size
    return LanguageModel(config, vocabulary_size, dropout=settings.dropout, sparse=sampled)


def _fresh_model(
    config: BiLMConfig, vocabulary: Vocabulary, frequencies: Frequencies, settings: TrainingSettings
) -> LanguageModel:
    model = new_model(config, len(vocabulary), settings)
    generator = torch.Generator().manual_seed(settings.seed)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.from_numpy(frequencies.log_relative()).float())
    return model


def counted_vocabulary(text: RunText, settings: TrainingSettings) -> Vocabulary:
    """Return the word types of the training text that are frequent enough.

    Raises:
        DataError: there is none.
    """
    corpus, min_count = text.corpus, text.choices.min_count
    counts = count_types(corpus, text.pieces)
    vocabulary = build_vocabulary(corpus.all_type_texts, counts, min_count=min_count, max_size=settings.vocab_size)
    if len(vocabulary) == len(SPECIALS):
        raise DataError(
            f"no word occurs {min_count} times in the text",
            where=Place(corpus.info.sources[0].name),
            fix="lower --min-count",
        )
    return vocabulary
