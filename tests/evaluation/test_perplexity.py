"""Perplexity: exp of the mean negative log-likelihood in nats, over tokens and the marks at a sentence's end."""

import math

import pytest
import torch
from sentence_batches import make_batch

from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.config import BiLMConfig
from elmo_cli.evaluation.perplexity import Perplexity, measure_perplexity
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary

VOCABULARY = Vocabulary((*SPECIALS, "a", "b"))
SHARES = {"<S>": 0.1, "</S>": 0.2, "<UNK>": 0.15, "a": 0.3, "b": 0.25}
SENTENCES = [["a", "b", "a"], ["c"], [], ["b", "d"]]
CPU = torch.device("cpu")


@pytest.fixture
def model(tiny_config: BiLMConfig) -> LanguageModel:
    """A model that predicts each word by its share alone, whatever it has read."""
    model = LanguageModel(tiny_config, len(VOCABULARY), dropout=0.5)
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.tensor([SHARES[text] for text in VOCABULARY.types]).log())
    torch.nn.init.zeros_(model.softmax.weight)
    return model


def batch_of(*sentences: list[str]) -> Batch:
    return make_batch(sentences, VOCABULARY, 50)


def nats(*words: str) -> float:
    return -sum(math.log(SHARES[word]) for word in words) / len(words)


def test_the_targets_are_the_tokens_and_the_mark_at_the_end_that_is_read_last(model: LanguageModel) -> None:
    found = measure_perplexity(model, [batch_of(*SENTENCES)], CPU)
    words = ("a", "b", "a", "<UNK>", "b", "<UNK>")
    assert found.forward == pytest.approx(math.exp(nats(*words, *["</S>"] * 4)), rel=1e-6)
    assert found.backward == pytest.approx(math.exp(nats(*words, *["<S>"] * 4)), rel=1e-6)
    assert (found.targets, found.tokens, found.unknown) == (10, 6, 2)


def test_both_directions_together_are_the_geometric_mean() -> None:
    found = Perplexity(forward_nats=math.log(50), backward_nats=math.log(32), targets=3, tokens=2, unknown=1)
    assert found.both == pytest.approx(40)
    assert found.oov_rate == 0.5
    assert found.to_json() == {
        "forward": pytest.approx(50),
        "backward": pytest.approx(32),
        "both": pytest.approx(40),
        "targets": 3,
        "tokens": 2,
        "oov_rate": 0.5,
    }


def test_batches_do_not_change_the_figure(model: LanguageModel) -> None:
    torch.nn.init.normal_(model.softmax.weight, generator=torch.Generator().manual_seed(2))
    together = measure_perplexity(model, [batch_of(*SENTENCES)], CPU)
    apart = measure_perplexity(model, [batch_of(sentence) for sentence in SENTENCES], CPU)
    assert apart.both == pytest.approx(together.both, rel=1e-5)
    assert (apart.targets, apart.tokens, apart.unknown) == (together.targets, together.tokens, together.unknown)


@pytest.mark.parametrize("training", [True, False])
def test_measuring_is_without_dropout_and_leaves_the_mode_of_the_model(model: LanguageModel, training: bool) -> None:
    torch.nn.init.normal_(model.softmax.weight, generator=torch.Generator().manual_seed(2))
    expected = measure_perplexity(model.eval(), [batch_of(*SENTENCES)], CPU)
    model.train(training)
    assert measure_perplexity(model, [batch_of(*SENTENCES)], CPU) == expected
    assert model.training is training


def test_nothing_has_a_perplexity_of_one_and_no_unknown_words(model: LanguageModel) -> None:
    found = measure_perplexity(model, [], CPU)
    assert (found.forward, found.backward, found.both, found.oov_rate) == (1, 1, 1, 0)


@pytest.mark.parametrize("loss", [1000.0, math.inf, math.nan])
def test_what_does_not_fit_a_number_is_infinite(loss: float) -> None:
    assert Perplexity(loss, loss, 1, 1, 0).both == math.inf
