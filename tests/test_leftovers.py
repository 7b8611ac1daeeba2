"""What a kill leaves behind, and who removes it: the next one that writes the same, if nobody holds it."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_cli.locks import held, remove_abandoned
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.files import _hidden, whole_folder, write_bytes_whole
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions

KILLED = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)"
FILE = "import sys\nfrom pathlib import Path\nfrom elmo_cli.storage.files import whole_file\n"
FILE += "with whole_file(Path(sys.argv[1])) as stream:\n    stream.write(b'half')\n    stream.flush()\n    "
FOLDER = "import sys\nfrom pathlib import Path\nfrom elmo_cli.storage.files import whole_folder\n"
FOLDER += "with whole_folder(Path(sys.argv[1]), replace=False) as new:\n    (new / 'part').write_text('half')\n    "
LONG_AGO = time.time() - 1000


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make_old(*paths: Path) -> None:
    for path in paths:
        for part in (*path.rglob("*"), path):
            os.utime(part, (LONG_AGO, LONG_AGO))


def write_folder(path: Path) -> None:
    with whole_folder(path, replace=False) as building:
        (building / "part").write_text("whole")


@pytest.mark.parametrize(
    ("script", "write"),
    [(FILE, lambda path: write_bytes_whole(path, b"whole")), (FOLDER, write_folder)],
    ids=["file", "folder"],
)
def test_the_next_one_that_writes_the_same_removes_what_a_kill_has_left(
    tmp_path: Path, script: str, write: Callable[[Path], None]
) -> None:
    target = tmp_path / "a[1].npy"
    run = subprocess.run([sys.executable, "-c", script + KILLED.replace("\n", "\n    "), target])
    assert run.returncode == -signal.SIGKILL
    [left] = tmp_path.iterdir()
    for other in (".b.npy.0123456789abcdef.part", ".a1.npy.0123456789abcdef.part", ".a[1].npy.part"):
        (tmp_path / other).touch()
        make_old(tmp_path / other)
    _hidden.cache_clear()
    write(tmp_path / "other")
    assert left.name in names(tmp_path)  # of another target
    make_old(left)
    write(target)
    assert left.name not in names(tmp_path)
    assert len(names(tmp_path)) == 5


def test_what_is_being_written_stays_however_long_that_takes(tmp_path: Path) -> None:
    target = tmp_path / "a.npy"
    waiting = FILE + "print('ready', flush=True)\n    sys.stdin.read()\n"
    with subprocess.Popen(
        [sys.executable, "-c", waiting, target], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        make_old(*tmp_path.iterdir())
        _hidden.cache_clear()
        write_bytes_whole(target, b"whole")
        assert len(names(tmp_path)) == 2
        other.communicate()
    assert names(tmp_path) == ["a.npy"]
    assert target.read_bytes() == b"half"


def test_what_nobody_holds_stays_for_a_while(tmp_path: Path) -> None:
    (tmp_path / "new").touch()
    remove_abandoned([tmp_path / "new", tmp_path / "nothing"])
    make_old(tmp_path / "new")
    with held(tmp_path / "new"):
        remove_abandoned([tmp_path / "new"])
    assert names(tmp_path) == ["new"]
    remove_abandoned([tmp_path / "new"])
    assert names(tmp_path) == []


def test_a_link_is_no_leftover(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    make_old(tmp_path / "folder")
    os.utime(tmp_path / "link", (LONG_AGO, LONG_AGO), follow_symlinks=False)
    remove_abandoned([tmp_path / "link"])
    assert names(tmp_path) == ["folder", "link"]


def test_a_folder_that_has_lost_its_name_to_nobody_is_kept(tmp_path: Path) -> None:
    old, new = (tmp_path / f".model.0123456789abcdef.{ending}" for ending in ("old", "part"))
    for path in (old, new):
        path.mkdir()
        make_old(path)
    _hidden.cache_clear()
    write_folder(tmp_path / "model")
    assert names(tmp_path) == [old.name, new.name, "model"]
    write_bytes_whole(tmp_path / "model" / "x", b"")
    with whole_folder(tmp_path / "model", replace=True):
        pass
    assert names(tmp_path) == ["model"]


def test_a_corpus_that_was_never_finished_goes_with_the_next_one(tmp_path: Path) -> None:
    cache = tmp_path / "corpora"
    for name in (".building-abandoned", ".building-new"):
        (cache / name).mkdir(parents=True)
        (cache / name / "tokens.raw").touch()
    make_old(cache / ".building-abandoned")
    (tmp_path / "text").write_text("a text\n")
    options = TextOptions(mode="tokens")
    prepare_corpus([str(tmp_path / "text")], options, cache=cache, workers=0, reporter=SilentReporter())
    assert len(names(cache)) == 2
    assert names(cache)[0] == ".building-new"
