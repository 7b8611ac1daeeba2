"""Folders that are whole or not there, and what a user reads when they cannot be written."""

import os
from pathlib import Path

import pytest

from elmo_cli.errors import OutputError
from elmo_cli.storage.files import whole_folder
from elmo_cli.storage.run_dir import RunDir


def fill(target: Path, *, replace: bool = False) -> None:
    with whole_folder(target, replace=replace) as building:
        (building / "a").write_text("new")


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def make(kind: str, path: Path) -> None:
    if kind == "folder":
        path.mkdir()
    (path / "old" if kind == "folder" else path).write_text("old")


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_is_replaced_is_gone(tmp_path: Path, kind: str) -> None:
    make(kind, tmp_path / "m")
    fill(tmp_path / "m", replace=True)
    assert (names(tmp_path), names(tmp_path / "m")) == (["m"], ["a"])


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_what_cannot_be_replaced_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    make(kind, tmp_path / "m")
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.suffix == ".part":
            raise OSError(28, os.strerror(28), str(path), None, str(target))
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(OutputError, match="No space left on device"):
        fill(tmp_path / "m", replace=True)
    assert names(tmp_path) == ["m"]
    assert (tmp_path / "m" / "old" if kind == "folder" else tmp_path / "m").read_text() == "old"


def test_a_file_of_the_folder_that_cannot_be_written_is_told_with_the_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught, whole_folder(tmp_path / "m", replace=False) as building:
        (building / "no" / "a").write_text("new")
    assert caught.value.message == f"cannot write {tmp_path / 'm'}: No such file or directory"
    assert names(tmp_path) == []


def test_an_error_about_another_file_stays_what_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught, whole_folder(tmp_path / "m", replace=False):
        (tmp_path / "vocab.txt").read_bytes()
    assert caught.value.filename == str(tmp_path / "vocab.txt")
    assert names(tmp_path) == []


def test_a_closed_pipe_stays_a_broken_pipe(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), whole_folder(tmp_path / "m", replace=False):
        raise BrokenPipeError
    assert names(tmp_path) == []


def test_a_folder_that_may_not_be_written_is_told_before_anything_is_done(ordinary_folder: Path) -> None:
    RunDir(ordinary_folder / "models" / "m").refuse_unwritable()
    RunDir(ordinary_folder).refuse_unwritable()
    ordinary_folder.joinpath("closed").mkdir(0o555)
    with pytest.raises(OutputError) as caught:
        RunDir(ordinary_folder / "closed" / "models" / "m").refuse_unwritable()
    assert str(caught.value) == (
        f"cannot write {ordinary_folder / 'closed/models/m'}: Permission denied\n  fix: name a file that you may write"
    )
    assert [path.name for path in ordinary_folder.iterdir()] == ["closed"]
