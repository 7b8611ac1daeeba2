"""One tiny untrained model in a folder for all tests of the Python API.

Nothing of `elmo_cli` is imported outside the fixtures, as in the conftest above.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from command_line import DATA, elmo_program, run_process

if TYPE_CHECKING:
    from elmo_cli import Elmo


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of the tiny preset after a few steps: 3 layers of 64 numbers."""
    folder = tmp_path_factory.mktemp("api") / "harbour"
    answer = run_process(
        elmo_program(), "train", DATA / "harbour.txt", "--preset", "tiny", "--max-steps", 5, "-o", folder
    )
    assert answer.code == 0, answer.stderr
    return folder


@pytest.fixture(scope="session")
def elmo(model: Path) -> "Elmo":
    import elmo_cli

    return elmo_cli.load(str(model))
