"""A disk that is full while a run saves: what was saved before is kept, and with room again the run goes on."""

import errno
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from lives import SETTINGS, place_of, start
from outcomes import result_of

from elmo_cli.config import Limits
from elmo_cli.errors import OutputError
from elmo_cli.reporting import SilentReporter
from elmo_cli.training.run import resume_training


def checkpoints_in(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "run").iterdir() if "checkpoint" in path.name)


def go_on(folder: Path) -> None:
    resume_training(folder, place_of(folder, SilentReporter()), Limits())


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("untouched") / "model"
    start(folder, SETTINGS, SilentReporter())
    return result_of(folder)


@pytest.mark.parametrize("fraction", [1, 2, 3, 4], ids=["tensors", "values", "sums", "names"])
def test_a_full_disk_keeps_the_checkpoint_before(
    fraction: int, untouched: dict[str, object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    sync, in_checkpoint = os.fsync, 0

    def refuse_later(descriptor: int) -> None:
        nonlocal in_checkpoint
        name = os.readlink(f"/proc/self/fd/{descriptor}")
        in_checkpoint = in_checkpoint + 1 if "checkpoint-000000005.part" in name else 0
        if in_checkpoint == fraction:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse_later)
        with pytest.raises(OutputError) as caught:
            start(folder, SETTINGS, SilentReporter())
    assert str(caught.value) == (
        f"cannot write {folder / 'run' / 'checkpoint-000000005'}: No space left on device; "
        "checkpoint-000000004 is kept\n"
        f"  fix: make room on that disk, then go on with: elmo train --resume {folder}"
    )
    assert caught.value.exit_code == 1
    assert checkpoints_in(folder) == ["checkpoint-000000000", "checkpoint-000000003", "checkpoint-000000004"]
    go_on(folder)
    assert result_of(folder) == untouched


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk with room for two checkpoints of about a megabyte and the model."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True)
    if mounted.returncode:
        pytest.skip("no disk can be mounted here")
    yield disk
    subprocess.run(["umount", "--lazy", str(disk)], check=True)


def test_a_disk_that_is_really_full_does_so_too(small_disk: Path, untouched: dict[str, object]) -> None:
    folder = small_disk / "model"
    with pytest.raises(OutputError) as caught:
        start(folder, SETTINGS, SilentReporter())
    assert "No space left on device; checkpoint-00000000" in caught.value.message
    subprocess.run(["mount", "-o", "remount,size=30m", str(small_disk)], check=True)
    go_on(folder)
    assert result_of(folder) == untouched
