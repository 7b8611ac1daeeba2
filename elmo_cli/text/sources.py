"""Bytes to lines: files, folders and standard input, compressed or not, each line with its place."""

import codecs
import difflib
import errno
import glob
import os
import select
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from io import BufferedIOBase, RawIOBase, UnsupportedOperation
from itertools import chain
from typing import Any, Final, Literal, NoReturn, cast

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.text.compression import PACKED_SUFFIXES, gather, unpacked
from elmo_cli.text.other_forms import bad_byte, refuse_other_forms

STDIN: Final = "-"
EncodingErrors = Literal["strict", "replace"]

_READ_SIZE: Final = 1 << 16
_LONGEST_LINE: Final = 1 << 27  # bytes; text8, whose 100 MB are one line, passes, and what unpacks without end does not
_HEAD_SIZE: Final = 1 << 13  # bytes looked at to tell text from other things


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text without its end, and where it stands."""

    text: str
    place: Place

    def __reduce__(self) -> tuple[Any, ...]:
        """Be sent to another process in a third of the time."""
        return _received, (self.text, self.place.source, self.place.line)


def _received(text: str, source: str, number: int | None) -> Line:
    return Line(text, Place(source, number))


def find_sources(arguments: Sequence[str], suffixes: Sequence[str]) -> list[str]:
    """Return what the arguments name: files as they are, folders and patterns expanded, ``-`` for standard input.

    A folder stands for the files below it, in order of their paths, whose names end in one of ``suffixes``, perhaps
    with that of a compression behind; hidden files and linked folders are left out. Every file is looked for now, so
    that a missing one is known before the first is read.

    Raises:
        DataError: a file or folder is missing, holds no text, or may not be read.
        ConfigError: standard input is named twice.
    """
    if list(arguments).count(STDIN) > 1:
        raise ConfigError("standard input (-) is named twice", fix="name - once")
    return [source for argument in arguments for source in _expand(argument, suffixes)]


def read_lines(source: str, *, errors: EncodingErrors = "strict") -> Iterator[Line]:
    r"""Yield the lines of a file, or of standard input for ``-``, in constant memory.

    Only ``\n`` ends a line, and one ``\r`` before it belongs to the end. A byte order mark at the start is dropped.
    Compressed bytes (gzip, xz, bzip2, zstd) are known by their first bytes, whatever the file is called.

    Args:
        source: one of the names that ``find_sources`` returns.
        errors: what to do with bytes that are not UTF-8: refuse them, or put U+FFFD in their place.

    Raises:
        DataError: the source cannot be read, is damaged, or is not text in UTF-8.
    """
    name = display_name(source)
    chunks = unpacked(_read_chunks(source, name), name)
    start = gather(chunks, _HEAD_SIZE)
    head = start[:_HEAD_SIZE]
    refuse_other_forms(head, name)
    offset = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
    for number, raw in enumerate(_split(chain([start[offset:]], chunks), name), start=1):
        place = Place(name, number)
        try:
            text = raw.removesuffix(b"\r").decode("utf-8", errors)
        except UnicodeDecodeError as error:
            raise bad_byte(raw, error.start, offset, head, place) from error
        yield Line(text, place)
        offset += len(raw) + 1


def display_name(source: str) -> str:
    """Return the name of a source as messages, places and records give it."""
    return "<stdin>" if source == STDIN else source


def _expand(argument: str, suffixes: Sequence[str]) -> list[str]:
    if argument == STDIN:
        return [argument]
    if not argument:
        raise DataError("a file name is empty", fix="check the quotes or the shell variable it comes from")
    try:
        found = _files_below(argument, suffixes) if stat.S_ISDIR(os.stat(argument).st_mode) else [argument]
    except (FileNotFoundError, NotADirectoryError):
        found = _matches(argument) if glob.has_magic(argument) else _refuse_missing(argument)
    except OSError as error:
        raise _unreadable(argument, error) from error
    except ValueError as error:
        raise DataError("no file has a NUL in its name", where=Place(argument), fix="check the name") from error
    for file in found:
        if not os.access(file, os.R_OK):
            _refuse_dangling(file)
            raise _unreadable(file, PermissionError(errno.EACCES, os.strerror(errno.EACCES)))
    return found


def _matches(pattern: str) -> list[str]:
    found = sorted(path for path in glob.glob(pattern, recursive=True) if not os.path.isdir(path))
    if not found:
        raise DataError(
            "no file matches this pattern", where=Place(pattern), fix=f"see what it matches with: ls -d {pattern}"
        )
    return found


def _files_below(folder: str, suffixes: Sequence[str]) -> list[str]:
    endings = tuple(suffix + packed for suffix in suffixes for packed in ("", *PACKED_SUFFIXES))

    def refuse(error: OSError) -> NoReturn:
        raise _unreadable(error.filename, error) from error

    found = []
    for parent, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        wanted = [name for name in names if name.endswith(endings) and not name.startswith(".")]
        found += [path for path in (os.path.join(parent, name) for name in wanted) if os.path.isfile(path)]
    if not found:
        message = f"the folder holds no file whose name ends in {' or '.join(suffixes)}"
        raise DataError(message, where=Place(folder), fix="name the files themselves")
    return sorted(found)


def _refuse_missing(path: str) -> NoReturn:
    _refuse_dangling(path)
    parent, name = os.path.split(path)
    try:
        near = _nearest(name, os.listdir(parent or "."))
        fix = f"did you mean {os.path.join(parent, near)}?" if near else "check the name"
    except PermissionError:
        fix = "check the name"
    except OSError:
        fix = f"check the path: there is no folder {parent} either"
    raise DataError("no such file or folder", where=Place(path), fix=fix)


def _refuse_dangling(path: str) -> None:
    if os.path.islink(path) and not os.path.exists(path):
        message = f"is a link to {os.readlink(path)}, which is not there"
        raise DataError(message, where=Place(path), fix="mend or remove the link")


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the name most alike, by what stands before the suffix: all texts end in .txt, which says nothing."""
    stems = {other: _stem(other) for other in names}
    near = difflib.get_close_matches(_stem(name), stems.values(), n=1)
    alike = difflib.SequenceMatcher(b=name)

    def likeness(other: str) -> float:
        alike.set_seq1(other)
        return alike.ratio()

    return max((other for other, stem in stems.items() if stem in near), key=likeness, default=None)


def _stem(name: str) -> str:
    root, suffix = os.path.splitext(name)
    return os.path.splitext(root)[0] if suffix in PACKED_SUFFIXES else root


def _unreadable(source: str, error: OSError) -> DataError:
    reason = error.strerror or str(error)
    fixes = {
        errno.EACCES: "check the permissions of the file and of the folders above it",
        errno.EISDIR: "name the files in it",
    }
    return DataError(reason[:1].lower() + reason[1:], where=Place(source), fix=fixes.get(error.errno or 0))


def _read_chunks(source: str, name: str) -> Iterator[bytes]:
    """Yield the bytes as they come: those of a pipe before its writer is done."""
    if source == STDIN and (sys.stdin is None or sys.stdin.closed):
        raise DataError("standard input is closed", where=Place(name), fix="pipe text in, or name a file")
    try:
        # Standard input is not ours to close. Its type does not say that it reads what is there, as a file does.
        with nullcontext(cast(BufferedIOBase, sys.stdin.buffer)) if source == STDIN else open(source, "rb") as stream:
            while chunk := _next_chunk(stream):
                yield chunk
    except OSError as error:
        raise _unreadable(name, error) from error


def _next_chunk(stream: BufferedIOBase) -> bytes:
    """Return what is there, waiting for it; nothing at the end.

    A program that shares standard input may have made it non-blocking. Then "nothing yet" looks like the end to all
    but the raw stream.
    """
    chunk = stream.read1(_READ_SIZE)
    raw = getattr(stream, "raw", None)  # a stream in memory has none
    if chunk or raw is None or _blocks(raw):
        return chunk
    while (found := raw.read(_READ_SIZE)) is None:
        select.select([raw], [], [])
    return bytes(found)


def _blocks(raw: RawIOBase) -> bool:
    """Tell whether a read waits for what is to come."""
    if sys.platform == "win32":
        return True
    try:
        return os.get_blocking(raw.fileno())
    except UnsupportedOperation:  # no file of the system
        return True


def _split(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    r"""Yield what stands before each ``\n``, and what stands behind the last one unless that is nothing.

    Raises:
        DataError: a line has no end in sight.
    """
    parts: list[bytes] = []  # of the line not ended yet; joined once, so that a long line costs linear time
    size, number = 0, 1  # of this line
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        parts.append(first)
        size += len(first)
        if size > _LONGEST_LINE:
            message = f"the line has more than {_LONGEST_LINE:,} bytes"
            raise DataError(message, where=Place(name, number), fix="part the text into lines")
        for other in others:
            yield b"".join(parts)
            parts, size = [other], len(other)
            number += 1
    if any(parts):
        yield b"".join(parts)
