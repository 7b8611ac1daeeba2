"""What two runs that are the same leave behind alike."""

import json
from pathlib import Path


def result_of(folder: Path) -> dict[str, object]:
    """Return all of a finished run that may not depend on time: weights, optimizer, vocabulary, perplexities."""
    config = json.loads((folder / "config.json").read_text())
    (checkpoint,) = sorted((folder / "run").glob("checkpoint-*"))[-1:]
    metrics = [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    return {
        "weights": (folder / "model.safetensors").read_bytes(),
        "checkpoint": (checkpoint / "tensors.safetensors").read_bytes(),
        "vocabulary": (folder / "vocab.txt").read_bytes(),
        "perplexity": config["provenance"]["heldout"],
        "metrics": [{key: value for key, value in line.items() if key != "seconds"} for line in metrics],
    }
