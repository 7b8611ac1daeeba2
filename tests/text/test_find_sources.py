"""Arguments to files: folders, patterns, what is missing or may not be read."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from source_files import TEXT, make_files, message

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.text import sources
from elmo_cli.text.sources import find_sources


def test_arguments_keep_their_order(tmp_path: Path) -> None:
    make_files(tmp_path, "b.txt", "a.dat")
    arguments = [str(tmp_path / "b.txt"), "-", str(tmp_path / "a.dat")]
    assert find_sources(arguments, TEXT) == arguments


def test_a_folder_stands_for_the_text_below_it(tmp_path: Path) -> None:
    wanted = ["a.txt", "b/c.text.gz", "b/d.txt.xz", "e.txt.bz2", "f.txt.zst"]
    make_files(tmp_path, *wanted, "b/.hidden.txt", ".git/x.txt", "notes.md", "txt", "a.txt.zip", "g.gz")
    (tmp_path / "folder.txt").mkdir()
    assert find_sources([str(tmp_path)], TEXT) == [str(tmp_path / name) for name in wanted]


def test_a_folder_without_text_is_an_error(tmp_path: Path) -> None:
    make_files(tmp_path, "notes.md")
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}: the folder holds no file whose name ends in .txt or .text\n  fix: name the files themselves"
    )


def test_a_pattern_stands_for_the_files_it_matches(tmp_path: Path) -> None:
    make_files(tmp_path, "b.dat", "a.dat", "c/d.dat", "e.txt")
    (tmp_path / "folder.dat").mkdir()
    assert find_sources([f"{tmp_path}/*.dat"], TEXT) == [f"{tmp_path}/a.dat", f"{tmp_path}/b.dat"]
    assert find_sources([f"{tmp_path}/**/d.*"], TEXT) == [f"{tmp_path}/c/d.dat"]


def test_a_file_may_be_named_like_a_pattern(tmp_path: Path) -> None:
    make_files(tmp_path, "what?.txt", "whatx.txt")
    assert find_sources([f"{tmp_path}/what?.txt"], TEXT) == [f"{tmp_path}/what?.txt"]


def test_a_pattern_without_match_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DataError) as error:
        find_sources([f"{tmp_path}/*.txt"], TEXT)
    assert (
        message(error)
        == f"{tmp_path}/*.txt: no file matches this pattern\n  fix: see what it matches with: ls -d {tmp_path}/*.txt"
    )


def test_a_missing_file_is_an_error_with_the_nearest_name(tmp_path: Path) -> None:
    make_files(tmp_path, "corpus.txt", "other.dat")
    with pytest.raises(DataError) as error:
        find_sources([f"{tmp_path}/corpsu.txt"], TEXT)
    assert message(error) == (
        f"{tmp_path}/corpsu.txt: no such file or folder\n  fix: did you mean {tmp_path}/corpus.txt?"
    )


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("no.txt", None),  # not fine.txt: that both are .txt says nothing
        ("fin.txt", "fine.txt"),
        ("fine", "fine.md"),
        ("fine.tx", "fine.txt"),
        ("fine.md.gz", "fine.md"),
        ("longer-nmae.txt", "longer-name.txt.zst"),
        (".hiden", ".hidden"),
    ],
)
def test_names_are_compared_without_their_suffixes(tmp_path: Path, name: str, near: str | None) -> None:
    make_files(tmp_path, "fine.txt", "fine.md", "longer-name.txt.zst", ".hidden")
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path / name)], TEXT)
    assert error.value.fix == (f"did you mean {tmp_path / near}?" if near else "check the name")


@pytest.mark.parametrize(
    ("name", "fix"),
    [("zzz", "check the name"), ("no/zzz", "check the path: there is no folder no either")],
)
def test_a_missing_file_without_neighbour_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError) as error:
        find_sources([name], TEXT)
    assert message(error) == f"{name}: no such file or folder\n  fix: {fix}"


@pytest.mark.parametrize("argument", ["gone.txt", "*.txt"])
def test_a_link_to_nothing_is_told_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gone.txt").symlink_to("no/where.txt")
    with pytest.raises(DataError) as error:
        find_sources([argument], TEXT)
    assert message(error) == ("gone.txt: is a link to no/where.txt, which is not there\n  fix: mend or remove the link")


def test_a_folder_that_may_not_be_listed_is_not_said_to_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> list[str]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)

    monkeypatch.setattr(sources.os, "listdir", refuse)
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path / "a.txt")], TEXT)
    assert error.value.fix == "check the name"


def test_an_empty_name_is_an_error() -> None:
    with pytest.raises(DataError) as error:
        find_sources([""], TEXT)
    assert message(error) == "a file name is empty\n  fix: check the quotes or the shell variable it comes from"


def test_standard_input_can_be_named_once() -> None:
    with pytest.raises(ConfigError) as error:
        find_sources(["-", "-"], TEXT)
    assert message(error) == "standard input (-) is named twice\n  fix: name - once"


def test_a_pipe_is_taken_as_it_is(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert find_sources([str(tmp_path / "pipe"), "/dev/null"], TEXT) == [str(tmp_path / "pipe"), "/dev/null"]


@pytest.fixture
def denied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that takes a right away, which permissions would not do for root."""

    def refuse(path: str, *_: object, **__: object) -> Iterator[None]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    return lambda name: monkeypatch.setattr(sources.os, name, refuse)


@pytest.mark.parametrize("right", ["stat", "scandir"])
def test_no_permission_to_look_is_an_error(tmp_path: Path, denied: Callable[[str], None], right: str) -> None:
    make_files(tmp_path, "a.txt")
    denied(right)
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}: permission denied\n  fix: check the permissions of the file and of the folders above it"
    )


def test_no_permission_to_read_is_known_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_files(tmp_path, "a.txt", "b.txt")
    monkeypatch.setattr(sources.os, "access", lambda path, _: not path.endswith("b.txt"))
    with pytest.raises(DataError) as error:
        find_sources([str(tmp_path)], TEXT)
    assert message(error) == (
        f"{tmp_path}/b.txt: permission denied\n  fix: check the permissions of the file and of the folders above it"
    )
