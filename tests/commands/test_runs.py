"""`elmo runs`: a table of trainings, and how their held-out perplexity fell."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer

from elmo_cli.commands.runs import sparkline

Elmo = Callable[..., Answer]


def test_a_finished_training_is_listed_with_its_curve(elmo: Elmo, model: Path) -> None:
    header, row = elmo("runs", model).text.splitlines()
    assert header.split() == ["name", "steps", "tokens", "held-out", "state", "changed", "curve"]
    name, steps, tokens, best, state, *_, curve = row.split()
    (found,) = map(json.loads, elmo("runs", model.parent, "--json").text.splitlines())
    metrics = [json.loads(line) for line in (model / "run" / "metrics.jsonl").read_text().splitlines()]
    lowest = min(line["heldout"]["both"] for line in metrics if "heldout" in line and line["step"])
    assert (name, steps, state) == ("harbour", "30", "finished")
    assert (tokens, best) == (f"{metrics[-1]['tokens']:,}", f"{lowest:,.2f}")
    assert found["best_heldout_perplexity"] == lowest
    assert found["state"] == "finished"
    assert (curve[0], curve[-1]) == ("█", "▁")


def test_tensorboard_events_lie_beside_the_metrics(elmo: Elmo, here: Path) -> None:
    quick = ("--preset", "tiny", "--max-steps", 2, "-o", "m")
    assert elmo("train", DATA / "twenty.txt", *quick, "--tensorboard").code == 0
    assert len(list((here / "models/m/run").glob("events.out.tfevents.*"))) == 1
    assert elmo("train", DATA / "twenty.txt", *quick, "--force").code == 0
    assert list((here / "models/m/run").glob("events.out.tfevents.*")) == []


def test_the_best_of_a_fine_tuning_may_be_its_base(elmo: Elmo, here: Path, model: Path) -> None:
    options = ("-m", model, "--input", "tokens", "--max-steps", 3, "--learning-rate", 1000, "-o", "m")
    answer = elmo("finetune", DATA / "letters.txt", *options)
    assert answer.code == 0
    assert "no step predicted the held-out text better than the base" in answer.stderr
    assert re.search(r"step 3: held-out perplexity (inf|\d\.\de\+\d+) ", answer.stderr)
    (found,) = map(json.loads, elmo("runs", "models/m", "--json").text.splitlines())
    assert found["best_heldout_perplexity"] == found["heldout"][0]["both"]


def test_without_a_run_nothing_is_listed(elmo: Elmo, here: Path) -> None:
    answer = elmo("runs")
    assert (answer.code, answer.stdout) == (0, b"")
    assert answer.stderr == "no run in models; start one with `elmo train`\n"
    assert elmo("runs", "--json").stdout == b""


@pytest.mark.parametrize(
    ("values", "width", "bars"),
    [
        ([], 5, ""),
        ([7.0], 5, "▁"),
        ([128, 64, 32, 16, 8, 4, 2, 1], 8, "█▇▆▅▄▃▂▁"),
        ([3.0, 3.0, 3.0], 5, "▁▁▁"),
        ([128.0, *[1.0] * 97, 64.0, 1.0], 3, "█▁▁"),
    ],
)
def test_bars_stand_for_logarithms(values: list[float], width: int, bars: str) -> None:
    assert sparkline(values, width) == bars
