r"""Tables of text, tab-separated and never quoted: what would break a cell is escaped, a tab as ``\t``."""

from collections.abc import Iterable, Sequence
from io import BufferedIOBase
from typing import BinaryIO, Final

_ESCAPES: Final = str.maketrans({"\\": r"\\", "\t": r"\t", "\n": r"\n", "\r": r"\r"})


def escaped(text: str) -> str:
    r"""Return a text as it stands in a cell: backslash as ``\\``, tab, newline, carriage return as ``\t \n \r``."""
    return text.translate(_ESCAPES)


def utf8(text: str) -> bytes:
    r"""Return UTF-8, with an escape such as ``\ud800``, which JSON knows, for a lone surrogate."""
    return text.encode("utf-8", errors="backslashreplace")


class TableWriter:
    """Writes a table row by row.

    Args:
        stream: where to; closed by whoever opened it.
        header: names of the columns.
    """

    def __init__(self, stream: BinaryIO | BufferedIOBase, header: Sequence[str]) -> None:
        self._stream = stream
        self.write([header])

    def write(self, rows: Iterable[Sequence[str]]) -> None:
        """Write rows of cells, which hold no tab and no line end."""
        self._stream.write(utf8("".join("\t".join(row) + "\n" for row in rows)))
