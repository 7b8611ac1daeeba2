"""Places to write to."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

NOBODY = 65534


@pytest.fixture
def ordinary_folder() -> Iterator[Path]:
    """A folder used without the rights of the superuser, who may write everywhere."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        user = os.geteuid()
        if user == 0:
            os.seteuid(NOBODY)
        yield Path(folder)
        os.seteuid(user)
