"""Streams whose first bytes are known only after their last, and a stream for libraries that write after a failure."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase, UnsupportedOperation
from typing import IO, Any, BinaryIO, Final

from elmo_cli.errors import OutputError

ByteStream = BinaryIO | BufferedIOBase  # the first alone would leave out streams in memory, which have no name

_COPY_SIZE: Final = 1 << 20  # bytes copied at once


class LateHeader:
    """Writes a header that is known only when everything behind it has been written.

    To a file the content goes at once and the header is patched in at the end. Until then zero bytes stand there, so
    that what a killed run leaves behind is a file to nobody: with a count in it, the rows that happened to be there
    could pass for the whole. A pipe, and a file opened for appending (``>>``), where every write lands at the end,
    cannot be patched; their content waits in a temporary file (in ``$TMPDIR``) until then.

    The stream may stand anywhere in its file; it is left behind the content, and closed by whoever opened it.

    Args:
        stream: where to.
        size: of the header, in bytes.
    """

    def __init__(self, stream: ByteStream, size: int) -> None:
        self.is_spooled = not _can_be_patched(stream)
        self._stream = stream
        self._size = size
        self._start = 0
        if self.is_spooled:
            self._spool = Spool()
        else:
            self._start = stream.tell()
            stream.write(bytes(size))

    def write(self, content: bytes) -> None:
        """Write what comes next behind the header.

        Raises:
            OutputError: there is no room for the temporary file.
        """
        if self.is_spooled:
            self._spool.write(content)
        else:
            self._stream.write(content)

    def flush(self) -> None:
        """Hand the content on, unless it has to wait for the end; nothing is whole before `finish`."""
        if not self.is_spooled:
            self._stream.flush()

    def finish(self, header: bytes) -> None:
        """Make the whole: write the header.

        Raises:
            ValueError: the header has another size than was said.
        """
        if len(header) != self._size:
            raise ValueError(f"the header has {len(header)} bytes instead of {self._size}")
        if self.is_spooled:
            self._stream.write(header)
            self._spool.pour_into(self._stream)
        else:
            end = self._stream.tell()
            self._stream.seek(self._start)
            self._stream.write(header)
            self._stream.seek(end)
        self._stream.flush()

    def abandon(self) -> None:
        """Let go of what waits."""
        if self.is_spooled:
            self._spool.close()


class Spool:
    """Bytes that wait in a temporary file, in ``$TMPDIR``; it is gone with the object, whatever happens.

    Raises:
        OutputError: the file cannot be made, or there is no room in it.
    """

    def __init__(self) -> None:
        self.size = 0  # bytes
        with spool_errors():
            self._file: IO[bytes] = tempfile.TemporaryFile()

    def write(self, content: bytes) -> None:
        """Add bytes."""
        with spool_errors():
            self._file.write(content)
        self.size += len(content)

    def pour_into(self, stream: "ByteStream | LateHeader | IO[bytes]") -> None:
        """Write all bytes into a stream and close the file."""
        try:
            with spool_errors():
                self._file.seek(0)  # what is still in memory goes to the disk here
            while content := self._file.read(_COPY_SIZE):
                stream.write(content)
        finally:
            self.close()

    def close(self) -> None:
        """Let go of the file; what is still in memory is not written first, as there may be no room for it."""
        getattr(self._file, "raw", self._file).close()


class Outlet:
    """A stream for a library that may write more after a failure: it then takes the bytes and drops them.

    zipfile, for one, writes the end of its archive whenever it is closed, be it by the garbage collector; behind a
    closed pipe that would be a second error, and in a redirect the half would look like a whole.

    Args:
        stream: where to, from wherever it stands; neither seekable nor closed here.
    """

    closed = False  # pyarrow asks

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._position = 0
        self._is_abandoned = False

    def write(self, content: Any) -> int:  # noqa: ANN401 (bytes, or a buffer of pyarrow)
        """Write bytes and return their number."""
        size = memoryview(content).nbytes
        if not self._is_abandoned:
            try:
                self._stream.write(content)
            except BaseException:
                self._is_abandoned = True
                raise
        self._position += size
        return size

    def tell(self) -> int:
        """Return how many bytes have been written."""
        return self._position

    def seekable(self) -> bool:
        """Return False: what has been written is gone."""
        return False

    def readable(self) -> bool:
        """Return False."""
        return False

    def writable(self) -> bool:
        """Return True."""
        return True

    def flush(self) -> None:
        """Hand on what has been written."""
        if not self._is_abandoned:
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream is closed by whoever opened it."""

    def abandon(self) -> None:
        """Write nothing any more."""
        self._is_abandoned = True


def _can_be_patched(stream: ByteStream) -> bool:
    """Tell whether a write after a seek lands there; a file open for appending claims so, but writes at its end."""
    if not stream.seekable():
        return False
    try:
        descriptor = stream.fileno()
    except UnsupportedOperation:
        return True  # in memory
    if sys.platform == "win32":
        return True
    import fcntl

    return not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND


@contextmanager
def spool_errors() -> Iterator[None]:
    """Turn an `OSError` about a temporary file into an `OutputError` that names the variable which moves it."""
    try:
        yield
    except OSError as error:
        raise OutputError(
            f"cannot keep the vectors in a temporary file: {error.strerror}",
            fix="set TMPDIR to a folder with more room, or write to a file: -o vectors.npy",
        ) from error
