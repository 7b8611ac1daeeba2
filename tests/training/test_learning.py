"""A tiny biLM learns twenty sentences by heart, so that nothing between the text and the gradient is out of step."""

from pathlib import Path

import pytest
import torch

from elmo_cli.config import TrainingSettings
from elmo_cli.reporting import SilentReporter
from elmo_cli.text.reader import TextOptions
from elmo_cli.training.run import TrainingResult, Workplace, start_training
from elmo_cli.training.sources import TextSources

TWENTY = str(Path(__file__).parent.parent / "data" / "twenty.txt")
# Each sentence is one of twenty and is known from then on: ln 20 nats on 165 targets, a perplexity of 1.44 at best.
BY_HEART = 1.5


def learn(folder: Path, settings: TrainingSettings) -> TrainingResult:
    """Train on the twenty sentences and measure on the same ones."""
    sources = TextSources((TWENTY,), (TWENTY,), TextOptions(mode="tokens"))
    place = Workplace(torch.device("cpu"), folder / "cache", 1, SilentReporter())
    return start_training(folder / "model", sources, settings, place)


def settings(*, steps: int, sampled_above: int) -> TrainingSettings:
    return TrainingSettings(
        preset="tiny",
        max_steps=steps,
        batch_tokens=200,
        learning_rate=0.03,
        warmup_steps=5,
        dropout=0.0,
        sampled_above=sampled_above,
        negatives=40,
    )


def test_a_tiny_bilm_learns_twenty_sentences_by_heart(tmp_path: Path) -> None:
    found = learn(tmp_path, settings(steps=120, sampled_above=10_000))
    assert (found.perplexity.targets, found.perplexity.unknown) == (165, 0)
    assert found.perplexity.forward < BY_HEART
    assert found.perplexity.backward < BY_HEART


def test_the_sampled_softmax_learns_them_too(tmp_path: Path) -> None:
    found = learn(tmp_path, settings(steps=80, sampled_above=10))
    # By word frequency alone it is 76; the full softmax, which measures it, was never trained on as a whole.
    assert found.unigram == pytest.approx(76.2, abs=0.1)
    assert found.perplexity.forward < 5
    assert found.perplexity.backward < 5
