"""What is measured is neither the process that measures nor the query itself."""

import sys
from pathlib import Path

import numpy as np
import pytest
from homograph_neighbors import shares
from neighbors_speed import random_index
from processes import run


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell it")
def test_the_peak_is_that_of_the_command_and_not_of_the_process_that_runs_it(tmp_path: Path) -> None:
    large = np.ones(25_000_000)  # 200 MB
    took = run([sys.executable, "-c", "import time; time.sleep(0.2)"], log=tmp_path / "log")
    assert 0 < took.peak_mb < large.nbytes / 2e6


def test_an_occurrence_is_not_among_its_own_neighbours(tmp_path: Path) -> None:
    index = random_index(tmp_path / "index", 2)
    assert shares(index, np.array([0, 1]), ["river", "money"], 2) == 0.0
