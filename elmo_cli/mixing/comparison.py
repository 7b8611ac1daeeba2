"""The mix beside the top layer, each layer and the average: the paper's Table 2 on one's own labels, seed by seed."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from elmo_cli.bilm.batching import split_by_budget
from elmo_cli.bilm.scalar_mix import ScalarMix
from elmo_cli.mixing.heads import HIDDEN_DIM, build_head, initialise, store_head
from elmo_cli.mixing.labelled import TOKEN
from elmo_cli.mixing.layer_cache import StoredLayers
from elmo_cli.mixing.learn_settings import LearnSettings
from elmo_cli.mixing.metrics import Score, score_labels
from elmo_cli.mixing.mixed import LabelledBatch, MixedModel, summed_loss
from elmo_cli.mixing.trainer import DevResult, fit
from elmo_cli.storage.mix_file import ScoreRow, StoredHead

MIX = "mix"
_NEVER_LEARNED = -1  # in place of a label's number
_DEV_TOKENS = 16_384  # scored at once


@dataclass(frozen=True, slots=True)
class Way:
    """A way to use the layers.

    Attributes:
        name: as scores are told by.
        layers: that are read.
        is_learned: whether their weights are; else they are equal.
    """

    name: str
    layers: tuple[int, ...]
    is_learned: bool


def ways(layer_count: int, *, compare: bool) -> list[Way]:
    """Return the mix and, to compare it with, the top layer, the average and each layer; the top is the last of these.

    Of one layer there is nothing to compare.
    """
    every = tuple(range(layer_count))
    found = [Way(MIX, every, is_learned=True)]
    if compare and layer_count > 1:
        found += [Way("average", every, is_learned=False)]
        found += [Way(f"layer {layer}", (layer,), is_learned=False) for layer in reversed(every)]
    return found


@dataclass(frozen=True, slots=True)
class LabelledLayers:
    """Layers of a text and its labels.

    Attributes:
        stored: the layers.
        labels: of each sentence: one a token, or a single one.
    """

    stored: StoredLayers
    labels: Sequence[Sequence[str]]

    def part(self, numbers: Sequence[int]) -> "LabelledPart":
        """Return some of the sentences."""
        return LabelledPart(self, np.asarray(numbers, dtype=np.int64))


@dataclass(frozen=True, slots=True)
class LabelledPart:
    """Some sentences of a text.

    Attributes:
        whole: the text.
        numbers: of the sentences.
    """

    whole: LabelledLayers
    numbers: NDArray[np.int64]

    @property
    def labels(self) -> list[Sequence[str]]:
        """Labels of each sentence."""
        return [self.whole.labels[number] for number in self.numbers]

    def batches(self, order: NDArray[np.int64], tokens: int) -> Iterator[list[int]]:
        """Yield the numbers of the sentences in batches, in this order of the part."""
        numbers = self.numbers[order]
        for batch in split_by_budget(numbers, self.whole.stored.lengths[numbers], tokens):
            yield batch.tolist()


@dataclass(frozen=True, slots=True)
class Run:
    """What one seed learned in one way.

    Attributes:
        score: on the dev text.
        w: before the softmax.
        s: after it.
        gamma: the scale.
        head: learned with them.
    """

    score: Score
    w: tuple[float, ...]
    s: tuple[float, ...]
    gamma: float
    head: StoredHead


class Comparison:
    """Learns in different ways on the same text.

    Args:
        train: to learn on.
        dev: to stop by and to score on.
        unit: what has a label.
        metric: that counts.
        settings: of the learning.
    """

    def __init__(
        self, train: LabelledPart, dev: LabelledPart, *, unit: str, metric: str, settings: LearnSettings
    ) -> None:
        self.names = sorted({label for labels in train.labels for label in labels})
        self._train, self._dev = train, dev
        self._unit, self._metric, self._settings = unit, metric, settings
        tokens = int(train.whole.stored.lengths[train.numbers].sum())
        self._batch_tokens = settings.batch_tokens or min(max(tokens // 100, 128), 1024)
        self._numbers = {name: number for number, name in enumerate(self.names)}

    def run(self, way: Way, seed: int, on_epoch: Callable[[int, float], None]) -> Run:
        """Learn with one seed.

        Raises:
            TrainingDiverged: the loss is no longer finite.
        """
        settings = self._settings
        generator = torch.Generator().manual_seed(seed)
        norm: Literal["token", "none"] = "token" if settings.layer_norm else "none"
        mix = ScalarMix(len(way.layers), layer_norm=norm)
        mix.w.requires_grad_(way.is_learned)
        dim = self._train.whole.stored.rows.shape[-1]
        head = build_head(settings.head, dim, len(self.names), hidden_dim=HIDDEN_DIM, dropout=settings.dropout)
        initialise(head, generator)
        model = MixedModel(mix, head, dropout=settings.dropout, strength=settings.strength)
        model.seed_dropout(seed)

        def epoch() -> Iterator[LabelledBatch]:
            order = torch.randperm(len(self._train.numbers), generator=generator).numpy()
            return (self._batch(numbers, way) for numbers in self._train.batches(order, self._batch_tokens))

        def evaluate() -> DevResult:
            score, loss = self.score(model, way)
            return DevResult(score.value, loss)

        fit(model, model.loss, epoch, evaluate, settings.fit, on_epoch=on_epoch)
        with torch.inference_mode():
            score, _ = self.score(model, way)
        s = tuple(mix.s.tolist())
        return Run(score, tuple(mix.w.tolist()), s, mix.gamma.item(), store_head(settings.head, HIDDEN_DIM, head))

    def _batch(self, numbers: list[int], way: Way) -> LabelledBatch:
        whole = self._train.whole
        labels = [self._numbers[label] for number in numbers for label in whole.labels[number]]
        return LabelledBatch(
            layers=whole.stored.take(numbers, way.layers),
            lengths=whole.stored.lengths[numbers].tolist(),
            labels=torch.tensor(labels, dtype=torch.int64),
        )

    def score(self, model: MixedModel, way: Way) -> tuple[Score, float]:
        """Return a model's score on the dev text, and its mean loss there, that of labels never learned left out."""
        stored, labels = self._dev.whole.stored, self._dev.whole.labels
        predicted: list[Sequence[str]] = []
        loss = 0.0
        for numbers in self._dev.batches(np.arange(len(self._dev.numbers)), _DEV_TOKENS):
            lengths = stored.lengths[numbers].tolist()
            logits = model(stored.take(numbers, way.layers), lengths)
            gold = [self._numbers.get(label, _NEVER_LEARNED) for number in numbers for label in labels[number]]
            loss += summed_loss(logits, gold, _NEVER_LEARNED)
            best = logits.argmax(dim=1).tolist()
            predicted += group_labels([self.names[number] for number in best], lengths, self._unit)
        score = score_labels(self._metric, self._dev.labels, predicted, of_tokens=self._unit == TOKEN)
        return score, loss / max(score.units, 1)


def group_labels(labels: Sequence[str], lengths: Sequence[int], unit: str) -> list[Sequence[str]]:
    """Return the labels of each sentence, from those of all tokens or of all sentences."""
    if unit != TOKEN:
        return [[label] for label in labels]
    ends = np.cumsum(lengths).tolist()
    return [labels[end - length : end] for end, length in zip(ends, lengths, strict=True)]


def score_row(way: Way, runs: Sequence[Run]) -> ScoreRow:
    """Return the scores of all seeds of one way."""
    metric = runs[0].score.metric
    others = [name for name in runs[0].score.values if name != metric]
    return ScoreRow(
        name=way.name,
        layers=way.layers,
        values=tuple(run.score.value for run in runs),
        others={name: tuple(run.score.values[name] for run in runs) for name in others},
        s=tuple(run.s for run in runs),
        gamma=tuple(run.gamma for run in runs),
    )
