"""Files that appear whole or not at all, whatever stops the program on its way."""

import errno
import os
import re
import secrets
import shlex
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import BufferedWriter
from pathlib import Path
from typing import BinaryIO, Final

from elmo_cli.errors import OutputError, TargetExists
from elmo_cli.locks import held, remove_abandoned

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NOT_ALLOWED: Final = (errno.EACCES, errno.EPERM, errno.EROFS)
_OTHERS: Final = 0o077  # permissions of all but the owner
# A file's name may have 255 bytes. A character takes up to 4, and the temporary name adds 23 to these.
_NAME_PART: Final = 50


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open ``path`` for writing; it gets its new content only when the block ends without an exception.

    Until then everything goes into a hidden file beside it, ``.NAME.<random>.part``, which nobody but the user may
    read, and which an exception of any kind removes and only a kill leaves behind, until the same file is written
    again. A link is followed: what it points to is replaced. A file that was there keeps its permissions. What is no
    regular file (a FIFO, ``/dev/null``, ``/dev/stdout``, ``/dev/fd/3``) cannot be replaced and is written directly.

    Raises:
        OutputError: the file cannot be created, written or put in its place. A closed pipe stays a `BrokenPipeError`,
            and an `OSError` of the block about some other file stays what it is.
    """
    descriptor = descriptor_of(path)
    target = Path(os.path.realpath(path))
    temporary = target.parent / f".{target.name[:_NAME_PART]}.{secrets.token_hex(8)}.part"
    with _output_errors(path, path, target, temporary):
        if descriptor is not None:
            with _discarded_on_error(os.fdopen(os.dup(descriptor), "wb")) as stream:
                yield stream
        elif _is_special(path):
            with _discarded_on_error(path.open("wb")) as stream:
                yield stream
        else:
            _remove_abandoned(target)
            with _replacement(target, temporary) as stream:
                yield stream


def write_bytes_whole(path: Path, content: bytes) -> None:
    """Write a file's content, as `whole_file` does."""
    with whole_file(path) as stream:
        stream.write(content)


def write_text_whole(path: Path, text: str) -> None:
    r"""Write a file's text in UTF-8, line ends as they are, as `whole_file` does.

    A lone surrogate, which stands in file names that are not UTF-8, becomes an escape such as ``\udce9``, as in JSON.
    """
    write_bytes_whole(path, text.encode("utf-8", errors="backslashreplace"))


def remove_leftovers(folder: Path, names: Collection[str]) -> None:
    """Remove what kills have left of files that were being written into a folder, which nobody else may be doing now.

    Args:
        folder: where they were to stand.
        names: of the files.
    """
    for path in folder.glob(".*.part"):
        left = re.fullmatch(r"\.(.+)\.[0-9a-f]{16}\.part", path.name)
        if left and left[1] in names:
            with suppress(OSError):
                path.unlink()


def _remove_abandoned(target: Path) -> None:
    """Remove what kills have left of earlier attempts to write a file or folder.

    What was to be replaced is kept if it has lost its name and nothing has got it yet.
    """
    left = re.compile(re.escape(f".{target.name[:_NAME_PART]}.") + r"[0-9a-f]{16}\.(part|old)")
    if target.exists() or not any(name.endswith(".old") and left.fullmatch(name) for name in _hidden(target.parent)):
        remove_abandoned(target.parent / name for name in _hidden(target.parent) if left.fullmatch(name))


@lru_cache
def _hidden(folder: Path) -> list[str]:
    """Return what may be left in a folder, read once: thousands of files may be written there."""
    with suppress(OSError), os.scandir(folder) as entries:
        return [
            entry.name for entry in entries if entry.name.startswith(".") and entry.name.endswith((".part", ".old"))
        ]
    return []


def make_folder(path: Path) -> None:
    """Make a folder and those above it, unless they are there.

    Raises:
        OutputError: it cannot be made.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputError(f"cannot make the folder {path}: there is a file", fix="name another folder") from error
    except OSError as error:
        raise output_error(path, error) from error


def output_error(path: Path, error: OSError) -> OutputError:
    """Return what to tell the user about an operating system's refusal to write ``path``."""
    return OutputError(f"cannot write {path}: {error.strerror or error}", fix=_fix(path, error.errno))


def _fix(path: Path, number: int | None) -> str | None:
    # A link may lead to a folder that is gone; then it is that folder which has to be made.
    folder = Path(os.path.realpath(path)).parent if os.path.islink(path) else path.parent
    if number in _NO_ROOM:
        return "make room on that disk, or name a file on another one"
    if number in _NOT_ALLOWED:
        return "name a file that you may write"
    if number == errno.ENOENT:
        return f"mkdir -p {shlex.quote(str(folder))}"
    if number == errno.EISDIR:
        return f"name a file in it, such as {path / 'FILE'}"
    if number == errno.ENOTDIR:
        return f"{folder} is not a folder: name another one"
    return "choose a shorter name" if number == errno.ENAMETOOLONG else None


@contextmanager
def _output_errors(path: Path, *ours: Path) -> Iterator[None]:
    """Turn an `OSError` about one of ``ours``, or about an open stream (which names no file), into an `OutputError`.

    What is in a folder of ours, and what a folder is in, is ours too.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        if error.filename is not None:
            named = Path(os.fsdecode(error.filename))
            if not any(named.is_relative_to(one) or one.is_relative_to(named) for one in ours):
                raise
        raise output_error(path, error) from error


def descriptor_of(path: Path) -> int | None:
    """Return the open descriptor that a name such as ``/dev/stdout`` or ``/dev/fd/3`` stands for.

    Opening the name instead would follow it to the file of a redirect, empty that and begin at its start.
    """
    if str(path) in ("/dev/stdout", "/dev/stderr"):
        return 1 if path.name == "stdout" else 2
    numbered = re.fullmatch(r"/(?:dev|proc/self)/fd/(\d+)", str(path))
    return int(numbered[1]) if numbered else None


def _is_special(path: Path) -> bool:
    """Tell whether there is something at ``path`` that is no regular file; a folder is an error."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return not stat.S_ISREG(mode)


@contextmanager
def _replacement(target: Path, temporary: Path) -> Iterator[BinaryIO]:
    """Open ``temporary`` and move it to ``target`` at the end, or remove it."""
    permissions = _permissions(target)
    try:
        # Made with all permissions that the umask, or the folder's access list, leaves; then closed to all others.
        with _discarded_on_error(open(temporary, "xb", opener=None if permissions is None else _private)) as stream:
            final = stat.S_IMODE(temporary.stat().st_mode) if permissions is None else permissions
            _allow(temporary, final & ~_OTHERS)
            with held(temporary):
                yield stream
                stream.flush()
                _allow(temporary, final)
                os.fsync(stream.fileno())
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def _allow(path: Path, permissions: int) -> None:
    """Set permissions, where the file system has any."""
    with suppress(OSError):
        path.chmod(permissions)


def _permissions(target: Path) -> int | None:
    """Return the permissions of a file that is about to be replaced, None if there is none yet.

    Opening it for writing, without touching it, refuses a file that its owner has made read-only: a rename would not.
    """
    try:
        with target.open("r+b") as old:
            return stat.S_IMODE(os.fstat(old.fileno()).st_mode) & 0o777
    except FileNotFoundError:
        return None


@contextmanager
def _discarded_on_error(stream: BufferedWriter) -> Iterator[BinaryIO]:
    """Close a stream at the end of the block; after an exception, without a second attempt to write what is left."""
    try:
        yield stream
        stream.close()
    finally:
        stream.raw.close()


@contextmanager
def whole_folder(path: Path, *, replace: bool) -> Iterator[Path]:
    """Give a hidden folder beside ``path`` to fill; it gets its name only when the block ends without an exception.

    Args:
        path: must not exist, unless ``replace`` is true; then the old folder is removed at the end.
        replace: whether to replace what is there.

    Raises:
        TargetExists: the folder exists.
        OutputError: it cannot be made, filled or put in its place. A closed pipe stays a `BrokenPipeError`, and an
            `OSError` of the block about some other file stays what it is.
    """
    if path.exists() and not replace:
        raise TargetExists(f"{path} exists", fix="replace it with --force, or choose another -o")
    target = Path(os.path.realpath(path))
    building = target.parent / f".{target.name[:_NAME_PART]}.{secrets.token_hex(8)}.part"
    try:
        with _output_errors(path, path, target, building):
            target.parent.mkdir(parents=True, exist_ok=True)
            _remove_abandoned(target)
            building.mkdir()
            final = stat.S_IMODE(building.stat().st_mode)
            _allow(building, final & ~_OTHERS)
            with held(building):
                yield building
                _allow(building, final)
                if replace and target.exists():
                    _rename_over(building, target)
                else:
                    _rename_new(building, target, path)
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _rename_over(building: Path, target: Path) -> None:
    """Give a folder the name of what is there, which is removed then, or gets its name back if that fails."""
    old = building.with_suffix(".old")
    target.rename(old)
    try:
        building.rename(target)
    except BaseException:
        with suppress(OSError):
            old.rename(target)
        raise
    if old.is_dir():
        shutil.rmtree(old, ignore_errors=True)
    else:
        old.unlink(missing_ok=True)


def _rename_new(building: Path, target: Path, path: Path) -> None:
    """Give a folder its name; the system refuses one that another process has meanwhile filled."""
    try:
        building.rename(target)
    except OSError as error:
        if not target.exists():
            raise
        raise OutputError(
            f"{path} exists: another process has made it meanwhile", fix="choose another -o, or begin again"
        ) from error
