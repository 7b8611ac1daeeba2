"""A tiny language model with the twin's weights, and sentences that are hard for a careless batch.

Nothing of `elmo_cli` is imported outside the fixtures, as in the conftest above.
"""

from typing import TYPE_CHECKING

import pytest
from tiny_options import TINY_OPTIONS
from twin import Twin, Weights, random_weights

if TYPE_CHECKING:
    from elmo_cli.evaluation.losses import Predictor

TYPES = ["<S>", "</S>", "<UNK>", "the", "ferry", "left", "a", ".", "née"]


@pytest.fixture(scope="session")
def twin_weights() -> Weights:
    return random_weights(TINY_OPTIONS, seed=7, scale=2.0, vocabulary_size=len(TYPES))


@pytest.fixture(scope="session")
def twin(twin_weights: Weights) -> Twin:
    return Twin(TINY_OPTIONS, twin_weights)


@pytest.fixture(scope="session")
def predictor(twin_weights: Weights) -> "Predictor":
    """What predicts with the twin's weights, in small batches."""
    import torch
    from weights import build_language_model

    from elmo_cli.evaluation.losses import Predictor
    from elmo_cli.text.vocabulary import Vocabulary

    model = build_language_model(TINY_OPTIONS, twin_weights)
    return Predictor(model, Vocabulary(tuple(TYPES)), torch.device("cpu"), batch_tokens=16)
