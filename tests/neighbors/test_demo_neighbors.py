"""The bundled model finds sentences of the same sense in the demonstration corpus, far more often than by chance."""

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from elmo_cli.neighbors.cached import demo_corpus

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "homograph_neighbors.py"
WORDS = 14
# Measured with the first small-en over all 57 words: chance 0.398, layer 0 0.382, layer 1 0.618, layer 2 0.612.
FLOOR = 0.55
OVER_CHANCE = 0.15


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("homograph_neighbors", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_nearest_have_the_sense_of_the_query(script: ModuleType, tmp_path: Path) -> None:
    with demo_corpus() as path:
        header, *rows = path.read_text(encoding="utf-8").splitlines()
        words = sorted({row.split("\t")[0] for row in rows})[:: max(1, 57 // WORDS)]
        some = tmp_path / "some.tsv"
        some.write_text("\n".join([header, *(row for row in rows if row.split("\t")[0] in words)]) + "\n")
    index, found = script.index_of(str(some), "small-en", tmp_path / "index")
    assert found == words
    figures = [shares for _, _, shares in script.measured(index, found, 5)]
    chance, spelling, first, top = np.mean(figures, axis=0)[:4]
    assert abs(spelling - chance) < 0.1  # layer 0 knows no context
    assert min(first, top) > max(FLOOR, chance + OVER_CHANCE, spelling + OVER_CHANCE)
