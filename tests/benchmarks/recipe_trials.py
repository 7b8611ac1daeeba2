"""Held-out perplexity after equal CPU time, for one recipe after another.

    python tests/benchmarks/recipe_trials.py CORPUS --heldout FILE --seconds 200 \
        base dropout=0 negatives=4096 learning_rate=0.002,batch_tokens=512

Each trial is ``base`` or the settings of `TrainingSettings` that differ from it, and runs in one thread; its clock is
the CPU time of the process, so that other work on the machine does not count against it. ``cells`` and ``projection``
give the preset another shape, and ``filters`` is what the numbers of its filters are multiplied with. ``way=plain``
computes the losses as `plain_training` does, on sentences padded in the order of the text; with
``sampled_above=1000000`` under the full softmax. It knows no dropout: compare it with ``dropout=0``.
"""

import argparse
import contextlib
import dataclasses
import tempfile
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from plain_training import plain_losses
from prepared_texts import prepared

from elmo_cli.bilm.batching import split_by_budget
from elmo_cli.config import PRESETS, TrainingSettings
from elmo_cli.evaluation.perplexity import measure_perplexity
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.training import loop, sentences
from elmo_cli.training.batches import epoch_batches
from elmo_cli.training.session import open_session


def main() -> None:
    """Run the trials and print a row for each as it ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("trials", nargs="+")
    parser.add_argument("--heldout", required=True)
    parser.add_argument("--heldout-tokens", type=int, default=40_000, help="measured at the end")
    parser.add_argument("--seconds", type=float, default=200.0)
    parser.add_argument("--preset", default="small")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    loop.time = SimpleNamespace(monotonic=time.process_time)  # type: ignore[assignment, attr-defined]
    corpus, heldout = (prepared([name], "en") for name in (arguments.corpus, arguments.heldout))
    print("| recipe | steps | tokens read | forward | backward | both |\n|---|---|---|---|---|---|", flush=True)
    for trial in arguments.trials:
        chosen = TrainingSettings(preset=arguments.preset, max_time_s=arguments.seconds, checkpoint_s=1e9)
        values = _shaped(_read(trial), arguments.preset)
        is_plain = values.pop("way", None) == "plain"
        session = open_session(corpus, heldout, dataclasses.replace(chosen, **values))
        sentences.epoch_batches = _in_order if is_plain else epoch_batches  # type: ignore[attr-defined]
        if is_plain:
            session.model.losses = partial(plain_losses, session.model)  # type: ignore[method-assign]
        with tempfile.TemporaryDirectory() as scratch:
            run = RunDir(Path(scratch) / "model")
            run.create({"training": dataclasses.asdict(chosen)})
            trainer = loop.Trainer(
                session, run, torch.device("cpu"), keep_best=lambda *_: None, reporter=SilentReporter()
            )
            trainer._measure = lambda: None  # type: ignore[method-assign]
            position = trainer.train()
        trainer.model.eval()
        vars(trainer.model).pop("losses", None)
        batches, tokens = [], 0
        for batch in session.heldout_batches():
            batches.append(batch)
            tokens += len(batch.tokens)
            if tokens >= arguments.heldout_tokens:
                break
        found = measure_perplexity(trainer.model, batches, torch.device("cpu"))
        print(
            f"| {trial} | {position.step} | {position.tokens} | {found.forward:.1f} | {found.backward:.1f} "
            f"| {found.both:.1f} |",
            flush=True,
        )


def _read(trial: str) -> dict[str, Any]:
    if trial == "base":
        return {}
    pairs = dict(part.split("=", 1) for part in trial.split(","))
    return {name: _value(text) for name, text in pairs.items()}


def _in_order(lengths: NDArray[np.int64], batch_tokens: int, *, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """Return the batches of an epoch in the order of the text, whatever the lengths of its sentences."""
    return list(split_by_budget(np.arange(len(lengths)), lengths, batch_tokens))


def _shaped(values: dict[str, Any], base: str) -> dict[str, Any]:
    """Make a preset of the trial's shape, if it has one of its own, and return the trial's other settings."""
    names = {"cells": "cell_dim", "projection": "projection_dim"}
    shape = {names[name]: value for name, value in values.items() if name in names}
    if not shape and "filters" not in values:
        return values
    factor = values.get("filters", 1)
    cnn, lstm = PRESETS[base].char_cnn, PRESETS[base].lstm
    filters = tuple((width, round(count * factor)) for width, count in cnn.filters)
    PRESETS["trial"] = dataclasses.replace(
        PRESETS[base],
        char_cnn=dataclasses.replace(cnn, filters=filters),
        lstm=dataclasses.replace(lstm, **shape),
    )
    return {name: value for name, value in values.items() if name not in {*names, "filters"}} | {"preset": "trial"}


def _value(text: str) -> int | float | str:
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


if __name__ == "__main__":
    main()
