"""How well labels were predicted: accuracy, F1 of spans, and macro F1, each as a fraction."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from elmo_cli.mixing.spans import are_span_tags, spans_of

ACCURACY = "accuracy"
SPAN_F1 = "span_f1"


@dataclass(frozen=True, slots=True)
class Counts:
    """What was right for one label or type of span.

    Attributes:
        right: predicted where they are.
        predicted: in all.
        gold: that there are.
    """

    right: int
    predicted: int
    gold: int

    @property
    def precision(self) -> float:
        """Share of the predicted that are right; 0 where nothing was predicted."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """Share of the gold that was found; 0 where there is none."""
        return self.right / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """Harmonic mean of precision and recall, from the counts."""
        return 2 * self.right / (self.predicted + self.gold) if self.predicted + self.gold else 0.0


@dataclass(frozen=True, slots=True)
class Score:
    """Scores of a text.

    Attributes:
        metric: the one that counts, a key of ``values``.
        values: of all metrics by name.
        units: labelled tokens or sentences.
        parts: counts by label or type of span.
    """

    metric: str
    values: Mapping[str, float]
    units: int
    parts: Mapping[str, Counts] = field(default_factory=dict)

    @property
    def value(self) -> float:
        """The score that counts."""
        return self.values[self.metric]

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        parts = {
            name: {"precision": part.precision, "recall": part.recall, "f1": part.f1, "gold": part.gold}
            for name, part in self.parts.items()
        }
        return {"metric": self.metric, **self.values, "labelled": self.units, "by_label": parts}


def metric_for(labels: Iterable[str], *, of_tokens: bool) -> str:
    """Return the metric that counts for some labels."""
    return SPAN_F1 if of_tokens and are_span_tags(labels) else ACCURACY


def score_labels(
    metric: str, gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]], *, of_tokens: bool
) -> Score:
    """Score predictions.

    Args:
        metric: ``accuracy`` or ``span_f1``.
        gold: labels of each sentence: one a token, or a single one.
        predicted: as many.
        of_tokens: whether tokens have labels; macro F1 is told where sentences have them.
    """
    pairs = [pair for row in zip(gold, predicted, strict=True) for pair in zip(*row, strict=True)]
    right = sum(one == other for one, other in pairs)
    accuracy = right / len(pairs) if pairs else 0.0
    if metric == SPAN_F1:
        parts = count_spans(gold, predicted)
        total = Counts(*(sum(count[at] for count in map(_triple, parts.values())) for at in range(3)))
        values = {SPAN_F1: total.f1, "precision": total.precision, "recall": total.recall, ACCURACY: accuracy}
        return Score(metric, values, len(pairs), parts)
    parts = count_labels(pairs)
    values = {ACCURACY: accuracy}
    if not of_tokens:
        values["macro_f1"] = sum(part.f1 for part in parts.values()) / len(parts) if parts else 0.0
    return Score(metric, values, len(pairs), parts)


def _triple(counts: Counts) -> tuple[int, int, int]:
    return counts.right, counts.predicted, counts.gold


def count_labels(pairs: Sequence[tuple[str, str]]) -> dict[str, Counts]:
    """Return the counts of each label that is in gold or predicted, by name."""
    gold = Counter(one for one, _ in pairs)
    predicted = Counter(other for _, other in pairs)
    right = Counter(one for one, other in pairs if one == other)
    return {label: Counts(right[label], predicted[label], gold[label]) for label in sorted(gold | predicted)}


def count_spans(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> dict[str, Counts]:
    """Return the counts of each type of span, by name: right are those with the same tokens and the same type."""
    right: Counter[str] = Counter()
    counts: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for row in zip(gold, predicted, strict=True):
        spans = [set(spans_of(tags)) for tags in row]
        right.update(kind for _, _, kind in spans[0] & spans[1])
        for counter, found in zip(counts, spans, strict=True):
            counter.update(kind for _, _, kind in found)
    names = sorted(counts[0] | counts[1])
    return {name: Counts(right[name], counts[1][name], counts[0][name]) for name in names}
