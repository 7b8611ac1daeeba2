"""`elmo mix learn`: from labelled text to a mix with its scores."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from elmo_cli.errors import DataError, Place
from elmo_cli.mixing.comparison import (
    Comparison,
    LabelledLayers,
    LabelledPart,
    Run,
    score_row,
    ways,
)
from elmo_cli.mixing.encoder import Encoder
from elmo_cli.mixing.label_sets import JSON_LABELS, note_never_learned
from elmo_cli.mixing.labelled import TOKEN, LabelledText
from elmo_cli.mixing.layer_cache import LayerCache
from elmo_cli.mixing.layouts import Layout
from elmo_cli.mixing.learn_settings import LearnSettings
from elmo_cli.mixing.metrics import metric_for
from elmo_cli.reporting import Reporter, counted
from elmo_cli.storage.mix_file import LabelTask, MixFile, MixWeights, ScoreRow

_HELD_OUT: Final = 0.1  # of the sentences, where there is no dev text


@dataclass(frozen=True, slots=True)
class LearnTask:
    """What is to be learned.

    Attributes:
        train: to learn on.
        dev: to stop by and to score on; None to hold out a part of ``train``.
        layout: of the text.
        language: of its tokenizer.
        settings: of the learning.
        seeds: one run each.
        compare: whether to learn with the top layer, each layer and the average, too.
    """

    train: LabelledText
    dev: LabelledText | None
    layout: Layout
    language: str
    settings: LearnSettings
    seeds: Sequence[int]
    compare: bool = True


def learn_mix(task: LearnTask, encoder: Encoder, cache: LayerCache, reporter: Reporter) -> MixFile:
    """Learn the weights of the layers, with all seeds and in all ways, and return the mix of the best seed.

    Raises:
        DataError: there is too little to learn from.
        TrainingDiverged: a loss is no longer finite.
    """
    train, dev = _parts(task, encoder, cache, reporter)
    unit = task.train.unit
    metric = metric_for((label for labels in train.labels for label in labels), of_tokens=unit == TOKEN)
    comparison = Comparison(train, dev, unit=unit, metric=metric, settings=task.settings)
    _check_labels(comparison.names, dev, task.train.name, reporter)
    rows, mixes = _run_all(task, encoder.identity.layer_count, comparison, reporter)
    best = max(range(len(mixes)), key=lambda number: mixes[number].score.value)  # the first of equals
    kept = mixes[best]
    return MixFile(
        weights=MixWeights(kept.s, kept.gamma, task.settings.layer_norm),
        w=kept.w,
        encoder=encoder.identity,
        task=_label_task(task, metric, comparison.names),
        head=kept.head,
        seeds=tuple(task.seeds),
        kept=task.seeds[best],
        scores=tuple(rows),
        settings=asdict(task.settings),
        data=_record(task, len(train.numbers), len(dev.numbers)),
    )


def _record(task: LearnTask, train_size: int, dev_size: int) -> dict[str, Any]:
    dev = {"held_out_of_train": dev_size} if task.dev is None else task.dev.record()
    train = {**task.train.record(), "learned_on": train_size}
    if task.train.has_json_labels:
        train[JSON_LABELS] = True
    return {"train": train, "dev": dev}


def _parts(
    task: LearnTask, encoder: Encoder, cache: LayerCache, reporter: Reporter
) -> tuple[LabelledPart, LabelledPart]:
    """Return what is learned on and what is scored on."""
    train = _labelled_layers(task.train, encoder, cache)
    count = len(task.train.examples)
    if task.dev is not None:
        dev = _labelled_layers(task.dev, encoder, cache)
        return train.part(range(count)), dev.part(range(len(task.dev.examples)))
    if count < 2:
        raise DataError("one sentence is too little to learn from", where=Place(task.train.name), fix="add --dev FILE")
    held_out = max(1, round(_HELD_OUT * count))
    order = np.random.default_rng(task.seeds[0]).permutation(count)
    reporter.note(f"held out {held_out:,} of the {counted(count, 'sentence')} to stop by and to score on (no --dev)")
    return train.part(np.sort(order[held_out:]).tolist()), train.part(np.sort(order[:held_out]).tolist())


def _labelled_layers(text: LabelledText, encoder: Encoder, cache: LayerCache) -> LabelledLayers:
    stored = cache.get(encoder, text.tokens, text.name)
    return LabelledLayers(stored, [example.labels for example in text.examples])


def _check_labels(names: Sequence[str], dev: LabelledPart, name: str, reporter: Reporter) -> None:
    if len(names) < 2:
        fix = "choose another --label-column, or more text"
        raise DataError(f"all labels are {names[0]!r}: there is nothing to learn", where=Place(name), fix=fix)
    note_never_learned(dev.labels, names, reporter, whose="dev")


def _label_task(task: LearnTask, metric: str, names: Sequence[str]) -> LabelTask:
    return LabelTask(
        unit=task.train.unit,
        metric=metric,
        labels=tuple(names),
        input=task.layout.mode,
        column=task.layout.column,
        label_column=task.layout.label_column,
        columns=task.train.examples[0].columns,
        language=task.language,
    )


def _run_all(
    task: LearnTask, layer_count: int, comparison: Comparison, reporter: Reporter
) -> tuple[list[ScoreRow], list[Run]]:
    """Return the scores of all ways, and the runs of the mix itself."""
    rows: list[ScoreRow] = []
    mixes: list[Run] = []
    every = ways(layer_count, compare=task.compare)
    total = len(every) * len(task.seeds)
    with reporter.progress("learning", total, "runs") as progress:
        for number, way in enumerate(every):
            runs: list[Run] = []
            for seed in task.seeds:
                done = number * len(task.seeds) + len(runs)

                def tell(epoch: int, score: float, done: int = done, name: str = f"{way.name}, seed {seed}") -> None:
                    progress.update(done, f"{name}, epoch {epoch}: {100 * score:.2f}")

                runs.append(comparison.run(way, seed, tell))
            mixes = mixes or runs
            rows.append(score_row(way, runs))
            progress.update(done + 1)
    return _with_top(rows, layer_count), mixes


def _with_top(rows: list[ScoreRow], layer_count: int) -> list[ScoreRow]:
    """Say which row is the top layer's."""
    return [
        replace(row, name=f"layer {layer_count - 1} (top)") if row.layers == (layer_count - 1,) else row for row in rows
    ]
