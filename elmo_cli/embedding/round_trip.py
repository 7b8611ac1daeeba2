"""Whether a model survives the way to AllenNLP's format and back: by its vectors, on sentences chosen to be hard."""

import tempfile
from pathlib import Path

import torch

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import parse_layers
from elmo_cli.storage.convert import export_model, import_model
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.weights import load_bilm

HARD_SENTENCES: list[list[str]] = [
    ["The", "ferry", "left", "at", "7:45", "a.m.", "."],
    ["x" * 60, "a" * 47 + "\u00e9", "", "<S>", "</S>", "<UNK>"],  # too long; cut inside a character; empty; marks
    [
        "\U0001f469\u200d\U0001f469\u200d\U0001f467",
        "\u0645\u0631\u062d\u0628\u0627",
        "\u4f60\u597d",
        "e\u0301",
        "\u00a0",
    ],
    ["one"],
    ["word", "after", "word"] * 100,
]


def largest_difference(folder: Path) -> float:
    """Export a model, import it again, embed `HARD_SENTENCES` with both and return the largest absolute difference."""
    with tempfile.TemporaryDirectory(prefix="elmo-") as scratch:
        there, back = Path(scratch) / "there", Path(scratch) / "back"
        export_model(folder, there, replace=False)
        import_model([there], back, language="en", replace=False)
        differences = [
            float((ours - again).abs().max()) for ours, again in zip(_layers(folder), _layers(back), strict=True)
        ]
    return max(differences)


def _layers(folder: Path) -> list[torch.Tensor]:
    config = read_config(folder)
    embedder = Embedder(load_bilm(folder, config), torch.device("cpu"))
    return list(embedder.embed(HARD_SENTENCES, parse_layers("all", config.bilm.layer_count)))
