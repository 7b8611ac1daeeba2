"""A vocabulary extended by the words of a domain, and the softmax's rows that go with it."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.softmax import Softmax
from elmo_cli.config import TrainingSettings
from elmo_cli.text.characters import character_ids
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary
from elmo_cli.training.extend import extended_vocabulary, model_from_base
from elmo_cli.training.heldout import Frequencies
from elmo_cli.training.run_text import divide_text

WORDS = [f"{first}{second}{third}" for first in "bdgkmp" for second in "aeiou" for third in "nrst"]
KNOWN, NEW = (*SPECIALS, *WORDS[:100]), tuple(WORDS[100:])
SETTINGS = TrainingSettings(min_count=2)


def base_of(bilm: BiLM) -> tuple[Softmax, torch.Tensor, torch.Tensor]:
    """Return a softmax whose rows are a linear map of how the words are spelled, and all words' rows by that map."""
    generator = torch.Generator().manual_seed(3)
    vectors = bilm.token_encoder(torch.from_numpy(character_ids([*KNOWN, *NEW], bilm.config.char_cnn.max_characters)))
    slope = torch.randn(vectors.shape[1], vectors.shape[1], generator=generator)
    rows = (vectors @ slope + 0.7).detach()
    softmax = Softmax(len(KNOWN), vectors.shape[1])
    with torch.no_grad():
        softmax.weight.copy_(rows[: len(KNOWN)])
        softmax.bias.copy_(torch.randn(len(KNOWN), generator=generator))
    return softmax, rows[len(KNOWN) :], vectors


@pytest.fixture(scope="module")
def frequencies() -> Frequencies:
    return Frequencies(np.arange(len(KNOWN) + len(NEW), 0, -1))


def test_the_most_frequent_new_words_follow_the_words_of_the_base(corpus_of: Callable[..., Corpus]) -> None:
    corpus = corpus_of(*["b a x x x", "y y y y", "z a once", "z a"])
    text = divide_text(corpus, None, SETTINGS)
    base = Vocabulary((*SPECIALS, "a", "never"))
    assert extended_vocabulary(base, text, 2).types == (*SPECIALS, "a", "never", "y", "x")
    assert extended_vocabulary(base, text, 9).types == (*SPECIALS, "a", "never", "y", "x", "z")  # b and once come once


def test_rows_of_known_words_are_copied(tiny_bilm: BiLM, frequencies: Frequencies) -> None:
    softmax, _, _ = base_of(tiny_bilm)
    model = model_from_base(tiny_bilm, softmax, Vocabulary((*KNOWN, *NEW)), frequencies, SETTINGS)
    assert torch.equal(model.softmax.weight[: len(KNOWN)], softmax.weight)
    assert torch.equal(model.softmax.bias[: len(KNOWN)], softmax.bias)
    for name, weight in tiny_bilm.state_dict().items():
        assert torch.equal(model.bilm.state_dict()[name], weight)


def test_rows_of_new_words_follow_from_their_characters(tiny_bilm: BiLM, frequencies: Frequencies) -> None:
    softmax, expected, _ = base_of(tiny_bilm)
    model = model_from_base(tiny_bilm, softmax, Vocabulary((*KNOWN, *NEW)), frequencies, SETTINGS)
    mean = softmax.weight[len(SPECIALS) :].mean(dim=0)
    found = model.softmax.weight[len(KNOWN) :]
    # The ridge keeps the map from being exact; the mean row, which knows nothing of the characters, is far off.
    assert (found - expected).norm() < 0.2 * (mean - expected).norm()


def test_biases_of_new_words_are_their_log_frequencies_shifted_as_those_of_known_words(tiny_bilm: BiLM) -> None:
    softmax, _, _ = base_of(tiny_bilm)
    counts = np.zeros(len(KNOWN) + len(NEW), dtype=np.int64)
    counts[[5, 6, 7]] = 9, 19, 39
    counts[len(KNOWN) :] = 4
    with torch.no_grad():
        softmax.bias[[5, 6, 7]] = torch.log(torch.tensor([10.0, 20.0, 40.0])) + 2.5
    model = model_from_base(tiny_bilm, softmax, Vocabulary((*KNOWN, *NEW)), Frequencies(counts), SETTINGS)
    # ln((4 + 1) / sum) + (2.5 + ln(sum)): the sum of the smoothed counts cancels.
    expected = torch.full((len(NEW),), float(np.log(5.0) + 2.5))
    torch.testing.assert_close(model.softmax.bias[len(KNOWN) :].detach(), expected, atol=1e-5, rtol=0)


def test_without_new_words_the_model_is_the_base(tiny_bilm: BiLM) -> None:
    softmax, _, _ = base_of(tiny_bilm)
    frequencies = Frequencies(np.ones(len(KNOWN), dtype=np.int64))
    model = model_from_base(tiny_bilm, softmax, Vocabulary(KNOWN), frequencies, SETTINGS)
    assert model.softmax.weight.shape == softmax.weight.shape
    assert torch.equal(model.softmax.weight, softmax.weight)
