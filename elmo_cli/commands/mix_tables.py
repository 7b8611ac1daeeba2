"""How mixes and scores are shown: tables and bars on stdout."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from elmo_cli.commands import console
from elmo_cli.errors import harmless

if TYPE_CHECKING:
    from elmo_cli.mixing.metrics import Score
    from elmo_cli.storage.mix_file import MixFile, ScoreRow

_NAMES: Final = {"span_f1": "span F1", "macro_f1": "macro F1"}
_BAR: Final = 20  # columns of a weight of 1
_PARTS: Final = " ▏▎▍▌▋▊▉█"


def print_mixes(mixes: "Sequence[tuple[str, MixFile]]", *, as_json: bool) -> None:
    """Print mixes, each with its name, its scores and its weights."""
    for number, (name, mix) in enumerate(mixes):
        if as_json:
            console.answer_json({"file": name, **mix.to_json()})
            continue
        if number:
            console.answer("")
        _print_mix(name, mix)


def _print_mix(name: str, mix: "MixFile") -> None:
    seeds = f"{len(mix.seeds)} seeds" if len(mix.seeds) > 1 else f"seed {mix.seeds[0]}"
    norm = ", layer norm" if mix.weights.layer_norm else ""
    console.answer(f"{harmless(name)}  {mix.encoder.name}, {mix.head.kind} head, {seeds}{norm}")
    if mix.scores:
        console.answer("")
        console.answer_table(_score_rows(mix.scores, mix.task.metric))
    console.answer("")
    learned = mix.scores[0] if mix.scores else None
    rows = [["", "kept", "all seeds", ""]] if learned is not None and len(mix.seeds) > 1 else []
    for layer, s in enumerate(mix.weights.s):
        spread = "" if learned is None else _spread([run[layer] for run in learned.s])
        rows.append([f"layer {layer}", f"{s:.3f}", spread, _bar(s)])
    rows.append(["gamma", f"{mix.weights.gamma:.3f}", "" if learned is None else _spread(learned.gamma), ""])
    console.answer_table(rows, left=(0, 3))


def _score_rows(scores: "Sequence[ScoreRow]", metric: str) -> list[list[str]]:
    others = [name for name in scores[0].others if name in ("accuracy", "macro_f1")]
    header = ["dev, %", *(_name(name) for name in (metric, *others))]
    rows = [
        [row.name, *(_mean_text(values) for values in (row.values, *(row.others[name] for name in others)))]
        for row in scores
    ]
    return [header, *rows]


def _name(metric: str) -> str:
    return _NAMES.get(metric, metric)


def _mean_text(values: Sequence[float]) -> str:
    """Return the mean in percent, with the standard deviation where there are several values."""
    from elmo_cli.storage.mix_file import deviation

    mean = 100 * sum(values) / len(values)
    sd = deviation(tuple(values))
    return f"{mean:.2f}" if sd is None else f"{mean:.2f} {_give_or_take()} {100 * sd:.2f}"


def _spread(values: Sequence[float]) -> str:
    """Return mean and deviation over the seeds; nothing for a single one."""
    from elmo_cli.storage.mix_file import deviation

    sd = deviation(tuple(values))
    return "" if sd is None else f"{sum(values) / len(values):.3f} {_give_or_take()} {sd:.3f}"


def _give_or_take() -> str:
    return "±" if console.can_show("±") else "+-"


def _bar(share: float) -> str:
    if not console.can_show("█" + _PARTS):
        return "#" * round(share * _BAR)
    eighths = round(share * _BAR * 8)
    full, part = divmod(eighths, 8)
    return "█" * full + (_PARTS[part] if part else "")


def print_score(score: "Score", *, as_json: bool) -> None:
    """Print the scores of a text, and those of each label or type of span."""
    if as_json:
        console.answer_json(score.to_json())
        return
    console.answer_table(
        [[_name(name), f"{100 * value:.2f}"] for name, value in score.values.items()]
        + [["labelled", f"{score.units:,}"]]
    )
    console.answer("")
    rows = [["%", "precision", "recall", "F1", "gold"]]
    for name, part in score.parts.items():
        rows.append(
            [name, *(f"{100 * value:.2f}" for value in (part.precision, part.recall, part.f1)), f"{part.gold:,}"]
        )
    console.answer_table(rows)
