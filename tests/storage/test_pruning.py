"""Cache folders stay below a size, and what is in use stays."""

import os
import time
from pathlib import Path

import pytest

from elmo_cli.storage import pruning
from elmo_cli.storage.pruning import mark_used, prune

DAY_S = 24 * 60 * 60


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "LARGEST_BYTES", 1000)


def key(letter: str) -> str:
    return letter * 32


def kept(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "lock")


def write(path: Path, size: int, age_s: float = 0.0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return age(path, age_s)


def age(path: Path, age_s: float) -> Path:
    then = time.time() - age_s
    os.utime(path, (then, then))
    return path


def test_what_was_used_longest_ago_goes_until_the_rest_is_small_enough(tmp_path: Path) -> None:
    for letter, days in (("a", 3), ("b", 5), ("c", 2)):
        write(tmp_path / f"{key(letter)}.npy", 400, days * DAY_S)
    prune(tmp_path, ".npy")
    assert kept(tmp_path) == [f"{key('a')}.npy", f"{key('c')}.npy"]
    prune(tmp_path, ".npy")
    assert len(kept(tmp_path)) == 2


def test_what_was_used_within_a_day_stays_however_large(tmp_path: Path) -> None:
    old = write(tmp_path / f"{key('a')}.npy", 5000, 2 * DAY_S)
    write(tmp_path / f"{key('b')}.npy", 5000, DAY_S - 60)
    assert mark_used(old)
    prune(tmp_path, ".npy")
    assert len(kept(tmp_path)) == 2


def test_a_folder_is_as_old_as_the_newest_of_its_files(tmp_path: Path) -> None:
    for letter, hours in (("a", 30), ("b", 2)):
        write(tmp_path / key(letter) / "part-1" / "rows.bin", 800, hours * 3600)
        age(tmp_path / key(letter) / "part-1", 2 * DAY_S)
        age(tmp_path / key(letter), 2 * DAY_S)
    prune(tmp_path)
    assert kept(tmp_path) == [key("b")]


def test_what_a_kill_has_left_goes_when_nobody_can_be_writing_it(tmp_path: Path) -> None:
    write(tmp_path / f".{key('a')}.npy.0123456789abcdef.part", 1, 2 * DAY_S)
    write(tmp_path / f".{key('b')}.npy.0123456789abcdef.part", 1, 60)
    prune(tmp_path, ".npy")
    assert kept(tmp_path) == [f".{key('b')}.npy.0123456789abcdef.part"]
    write(tmp_path / f".{key('c')}.0123456789abcdef.old" / "types.json", 1, 2 * DAY_S)
    age(tmp_path / f".{key('c')}.0123456789abcdef.old", 2 * DAY_S)
    prune(tmp_path)
    assert kept(tmp_path) == [f".{key('b')}.npy.0123456789abcdef.part"]


def test_nothing_of_another_name_is_touched(tmp_path: Path) -> None:
    names = ["thesis.npy", f"{key('a')}.txt", key("g"), f"{key('a')}.npy.bak", ".notes.part"]
    for name in names:
        write(tmp_path / name, 5000, 9 * DAY_S)
    prune(tmp_path, ".npy")
    assert kept(tmp_path) == sorted(names)


def test_a_link_stays(tmp_path: Path) -> None:
    target = write(tmp_path / "elsewhere" / "rows.bin", 5000, 2 * DAY_S)
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / key("a")).symlink_to(target.parent)
    os.utime(tmp_path / "cache" / key("a"), (0, 0), follow_symlinks=False)
    write(tmp_path / "cache" / key("b"), 5000, DAY_S + 60)
    prune(tmp_path / "cache")
    assert kept(tmp_path / "cache") == [key("a")]
    assert target.stat().st_size == 5000


@pytest.mark.parametrize("alone", [False, True])
def test_nothing_goes_while_another_process_takes_something_or_removes_itself(tmp_path: Path, alone: bool) -> None:
    entry = write(tmp_path / key("a"), 5000, 2 * DAY_S)
    with pruning._locked(tmp_path, alone=alone) as is_ours:
        assert is_ours
        prune(tmp_path)
        assert kept(tmp_path) == [key("a")]
        assert mark_used(entry) is not alone  # as good as gone, while it may be removed


def test_an_entry_that_is_not_there_cannot_be_used(tmp_path: Path) -> None:
    assert not mark_used(tmp_path / key("a"))
    assert not mark_used(tmp_path / "gone" / key("a"))
    (tmp_path / "file").touch()
    assert not mark_used(tmp_path / "file" / key("a"))
    prune(tmp_path / "gone")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_is_used_and_left_as_it_is(tmp_path: Path) -> None:
    entry = write(tmp_path / "cache" / key("a"), 5000, 2 * DAY_S)
    (tmp_path / "cache").chmod(0o500)
    try:
        assert mark_used(entry)
        age(entry, 2 * DAY_S)
        prune(tmp_path / "cache")
        assert entry.exists()
    finally:
        (tmp_path / "cache").chmod(0o700)
