"""What the scripts about the bundled model share: a model's vocabulary, prepared texts, and texts as its word ids."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from elmo_cli import settings as environment
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.model_dir import ModelConfig, read_config, read_vocabulary
from elmo_cli.storage.registry import find_model
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import SUFFIXES, TextOptions
from elmo_cli.text.sources import find_sources
from elmo_cli.text.vocabulary import END_ID, START_ID, Vocabulary


@dataclass(frozen=True)
class Marked:
    """A text as ids of a vocabulary, each sentence between its marks; sentences of no tokens are left out.

    Attributes:
        ids: uint32 [tokens and marks], sentences end to end.
        sentences: int64 [sentences left in], the number of each in its text.
    """

    ids: NDArray[np.uint32]
    sentences: NDArray[np.int64]


def open_model(name: str) -> tuple[Path, ModelConfig, Vocabulary]:
    """Return a model's folder, config and vocabulary, by its name or folder."""
    folder = find_model(name)
    config = read_config(folder)
    return folder, config, read_vocabulary(folder, config)


def prepared(names: Sequence[str], language: str, mode: str = "lines") -> Corpus:
    """Return texts tokenized as `elmo train` does, from its cache where it has them."""
    return prepare_corpus(
        find_sources(names, SUFFIXES[mode]),
        TextOptions(mode, language, "strict"),
        cache=environment.cache_folder() / "corpora",  # as `commands.training_options` says
        workers=environment.available_cpus(),
        reporter=SilentReporter(),
    )


def sentences_of(corpus: Corpus) -> Iterator[list[str]]:
    """Yield the tokens of each sentence."""
    texts, start = corpus.all_type_texts, 0
    for end in corpus.sentence_ends.tolist():
        yield [texts[number] for number in corpus.tokens[start:end].tolist()]
        start = end


def marked_ids(corpus: Corpus, vocabulary: Vocabulary) -> Marked:
    """Return a text as the biLM predicts it: ids of the vocabulary, other words as ``<UNK>``, and sentence marks."""
    lengths = np.diff(corpus.sentence_ends, prepend=0)
    numbers = np.flatnonzero(lengths)
    lengths = lengths[numbers]
    ends = (lengths + 2).cumsum()
    ids = np.empty(int(ends[-1]), dtype=np.uint32)
    is_word = np.ones(len(ids), dtype=bool)
    is_word[ends - 1] = is_word[ends - lengths - 2] = False
    ids[ends - lengths - 2], ids[ends - 1] = START_ID, END_ID
    ids[is_word] = vocabulary.ids(corpus.all_type_texts).astype(np.uint32)[corpus.tokens]
    return Marked(ids, numbers)
