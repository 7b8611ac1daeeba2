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
from elmo_cli.training.heldout import MAX_TOKENS, Frequencies, count_types, split_heldout, target_frequencies

_MIN_COUNT_TOKENS = 10_000  # below this much text every type counts; above it a type seen once trains <UNK>
_TARGET_TOKENS = 20_000_000  # what a run of default length reads in all, if the text is no larger than that
_EPOCHS = (2, 10)  # least and most by default ...
_MIN_STEPS = 300  # ... unless a small text would then be seen too few times to be learned


@dataclass(frozen=True)
class Session:
    """A run's text and model, ready to train.

    Attributes:
        settings: with every open choice (epochs, min_count) made.
        corpus: the training text; `pieces` says which of it is trained on.
        heldout_corpus: the text measured on, the same corpus when a part of it was held out.
        heldout_is_training: nothing could be spared, so the training text itself is measured.
        vocabulary: of the softmax.
        frequencies: of the training targets.
        heldout_frequencies: of the targets measured on.
        model: with fresh weights.
        steps_an_epoch: batches of one pass over the text.
    """

    settings: TrainingSettings
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
    steps_an_epoch: int

    @property
    def is_sampled(self) -> bool:
        """Whether training uses the sampled softmax."""
        return self.model.softmax.sparse

    def batch_maker(self) -> BatchMaker:
        """Return what turns piece numbers of the training text into batches."""
        return BatchMaker(self.corpus, self.pieces, self.vocabulary, self.config.char_cnn.max_characters)

    def heldout_batches(self, *, whole: bool) -> list[Batch]:
        """Return the batches to measure on: a fixed sample of at most `MAX_TOKENS` tokens, or all of them."""
        pieces = np.arange(len(self.heldout_pieces))
        lengths = self.heldout_pieces.lengths
        if not whole and lengths.sum() > MAX_TOKENS:
            pieces = np.random.default_rng(0).permutation(pieces)
            pieces = pieces[: int(np.searchsorted(lengths[pieces].cumsum(), MAX_TOKENS)) + 1]
        pieces = pieces[np.argsort(lengths[pieces], kind="stable")]
        characters = self.config.char_cnn.max_characters
        maker = BatchMaker(self.heldout_corpus, self.heldout_pieces, self.vocabulary, characters)
        return [maker(part) for part in split_by_budget(pieces, lengths[pieces], self.settings.batch_tokens)]


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
    settings = _decided(settings, pieces)
    vocabulary = _vocabulary(corpus, pieces, settings)
    config = preset(settings.preset)
    frequencies = target_frequencies(corpus, pieces, vocabulary)
    return Session(
        settings=settings,
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
        steps_an_epoch=_steps_an_epoch(pieces, settings),
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


def _vocabulary(corpus: Corpus, pieces: Pieces, settings: TrainingSettings) -> Vocabulary:
    counts = count_types(corpus, pieces)
    min_count = settings.min_count or 1
    vocabulary = build_vocabulary(corpus.all_type_texts, counts, min_count=min_count, max_size=settings.vocab_size)
    if len(vocabulary) == len(SPECIALS):
        raise DataError(
            f"no word occurs {min_count} times in the text",
            where=Place(corpus.info.sources[0].name),
            fix="lower --min-count",
        )
    return vocabulary


def _decided(settings: TrainingSettings, pieces: Pieces) -> TrainingSettings:
    """Make the choices that the settings leave to the size of the text."""
    tokens = pieces.token_count
    min_count = settings.min_count or (2 if tokens >= _MIN_COUNT_TOKENS else 1)
    least, most = _EPOCHS
    epochs = max(least, min(most, round(_TARGET_TOKENS / tokens)), -(-_MIN_STEPS // _steps_an_epoch(pieces, settings)))
    if settings.epochs is not None:
        epochs = settings.epochs
    elif settings.max_steps is not None:
        epochs = -(-settings.max_steps // _steps_an_epoch(pieces, settings))
    return replace(settings, min_count=min_count, epochs=epochs)


def _steps_an_epoch(pieces: Pieces, settings: TrainingSettings) -> int:
    """Count the batches of an epoch; the count is the same in each but for how a buffer's last batch fills up."""
    return sum(1 for _ in epoch_batches(pieces.lengths, settings.batch_tokens, seed=settings.seed, epoch=0))
