"""Models with random weights and text of random words, so that a benchmark needs nothing but this checkout."""

import itertools
import random
from pathlib import Path

import torch

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import BiLMConfig
from elmo_cli.storage.model_dir import ModelConfig, write_config, write_vocabulary
from elmo_cli.storage.weights import write_weights
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary

_LETTERS = "etaoinshrdlu"
_TYPES = 30_000


def make_model(folder: Path, config: BiLMConfig, seed: int = 1) -> Path:
    """Write a model of this shape, its weights drawn as before training; speed does not depend on their values."""
    vocabulary = Vocabulary((*SPECIALS, "the"))
    model = LanguageModel(config, len(vocabulary))
    generator = torch.Generator().manual_seed(seed)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.zeros(len(vocabulary)))
    folder.mkdir(parents=True, exist_ok=True)
    write_vocabulary(folder, vocabulary)
    write_weights(folder, model, "float32")
    write_config(folder, ModelConfig(config, {"name": "none", "language": "en"}, len(vocabulary)))
    return folder


def make_words() -> list[str]:
    """Return distinct made-up words, short ones first."""
    words = map("".join, itertools.chain.from_iterable(itertools.product(_LETTERS, repeat=n) for n in range(2, 6)))
    return list(itertools.islice(words, _TYPES))


def make_text(path: Path, tokens: int, sentence_tokens: int | None = 20, seed: int = 1) -> Path:
    """Write random words, the n-th most frequent 1/n as often as the first, as words of a language are.

    Args:
        path: of the file.
        tokens: in all.
        sentence_tokens: tokens a line; None for one line of all.
        seed: of the draws.
    """
    draw = random.Random(seed)
    words = make_words()
    weights = list(itertools.accumulate(1 / n for n in range(1, len(words) + 1)))
    each = 10_000 if sentence_tokens is None else sentence_tokens
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, tokens, each):
            line = " ".join(draw.choices(words, cum_weights=weights, k=min(each, tokens - start)))
            file.write(line + (" " if sentence_tokens is None else "\n"))
        if sentence_tokens is None:
            file.write("\n")
    return path
