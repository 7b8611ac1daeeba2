"""Who may read what is written: nobody else while it is under way, and then whom the umask allows."""

import ast
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from elmo_cli.storage.files import whole_file, whole_folder
from elmo_cli.storage.late_header import Spool

PACKAGE = Path(__file__).parents[2] / "elmo_cli"


def permissions(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture(params=[0o000, 0o022, 0o027, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_a_new_file_is_private_until_it_has_its_name(tmp_path: Path, umask: int) -> None:
    with whole_file(tmp_path / "a.npy") as stream:
        stream.write(b"secret")
        stream.flush()
        (temporary,) = tmp_path.iterdir()
        assert permissions(temporary) == 0o600
    assert permissions(tmp_path / "a.npy") == 0o666 & ~umask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o755])
def test_a_replaced_file_is_private_until_it_has_the_old_permissions(tmp_path: Path, umask: int, mode: int) -> None:
    (tmp_path / "a.npy").write_bytes(b"old")
    (tmp_path / "a.npy").chmod(mode)
    with whole_file(tmp_path / "a.npy") as stream:
        stream.write(b"secret")
        (temporary,) = tmp_path.glob(".*.part")
        assert permissions(temporary) & 0o077 == 0
    assert permissions(tmp_path / "a.npy") == mode


def test_a_new_folder_is_private_until_it_has_its_name(tmp_path: Path, umask: int) -> None:
    with whole_folder(tmp_path / "model", replace=False) as building:
        assert permissions(building) == 0o700
    assert permissions(tmp_path / "model") == 0o777 & ~umask


def test_what_waits_in_a_temporary_file_has_no_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, umask: int
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    spool = Spool()
    spool.write(b"secret" * 10_000)
    assert [path for path in tmp_path.iterdir() if permissions(path) & 0o077] == []
    spool.close()


PRIVATE = {"TemporaryFile", "TemporaryDirectory", "mkdtemp", "mkstemp", "NamedTemporaryFile", "SpooledTemporaryFile"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_temporary_files_come_from_functions_that_make_them_private(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    used = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "tempfile"
    }
    assert used <= {*PRIVATE, "gettempdir"}
