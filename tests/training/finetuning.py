"""What the tests of fine-tuning share: a tiny base with and without softmax, and runs from it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file

from elmo_cli.config import FinetuneSettings, Limits, TrainingSettings
from elmo_cli.reporting import SilentReporter
from elmo_cli.text.reader import TextOptions
from elmo_cli.training.distributed import ALONE, Team
from elmo_cli.training.finetune import FinetuneResult, resume_finetuning, start_finetuning
from elmo_cli.training.run import start_training
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace

DATA = Path(__file__).parent.parent / "data"
DOMAIN = DATA / "letters.txt"
STEPS = 6
SETTINGS = TrainingSettings(max_steps=STEPS, batch_tokens=60, learning_rate=0.002)


def place_of(folder: Path, reporter: SilentReporter | None = None) -> Workplace:
    return Workplace(torch.device("cpu"), folder.parent / "cache", 1, reporter or SilentReporter())


def make_base(folder: Path) -> Path:
    """Train the tiny model for a few steps on twenty sentences."""
    sources = TextSources((str(DATA / "twenty.txt"),), (), TextOptions(mode="tokens"))
    settings = TrainingSettings(preset="tiny", max_steps=8, batch_tokens=60)
    return start_training(folder, sources, settings, place_of(folder)).folder


def without_softmax(base: Path, folder: Path) -> Path:
    """Copy a model as one converted from weights made for embedding alone."""
    folder.mkdir()
    config = json.loads((base / "config.json").read_text())
    config.pop("sums", None)
    (folder / "config.json").write_text(json.dumps({**config, "vocabulary_size": None}))
    save_file({k: t for k, t in weights_of(base).items() if not k.startswith("softmax.")}, folder / "model.safetensors")
    return folder


def weights_of(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def finetune(
    folder: Path,
    base: Path,
    settings: TrainingSettings = SETTINGS,
    adaptation: FinetuneSettings | None = None,
    *,
    reporter: SilentReporter | None = None,
    team: Team = ALONE,
    **files: tuple[str, ...],
) -> FinetuneResult | None:
    texts: Mapping[str, Any] = {"corpora": (str(DOMAIN),), "heldout": (), "general": (), **files}
    sources = TextSources(options=TextOptions(mode="tokens"), **texts)
    place = replace(place_of(folder, reporter), team=team)
    return start_finetuning(folder, base, sources, settings, adaptation or FinetuneSettings(), place)


def resume(folder: Path, reporter: SilentReporter | None = None) -> FinetuneResult | None:
    return resume_finetuning(folder, place_of(folder, reporter), Limits())


def provenance_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "config.json").read_text())["provenance"]


def result_of(folder: Path) -> dict[str, object]:
    """Return all of a finished run that may not depend on time: weights, optimizer, vocabulary, perplexities."""
    checkpoint = max((folder / "run").glob("checkpoint-*"))
    metrics = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    provenance = provenance_of(folder)
    return {
        "weights": (folder / "model.safetensors").read_bytes(),
        "checkpoint": (checkpoint / "tensors.safetensors").read_bytes(),
        "vocabulary": (folder / "vocab.txt").read_bytes(),
        "perplexity": provenance["finetuning"],
        "metrics": [{key: value for key, value in line.items() if key != "seconds"} for line in metrics],
    }
