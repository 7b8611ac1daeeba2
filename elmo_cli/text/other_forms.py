"""What is no text in UTF-8, known by its first bytes: other encodings, and files of other programs."""

import codecs
from typing import Final

from elmo_cli.errors import DataError, Place

_FEW_NULS: Final = 4  # so that a very short text may hold a NUL
_NUL_SHARE: Final = 0.1

_BINARY_KINDS: Final = {
    b"\x93NUMPY": "a NumPy array",
    b"\x89HDF": "an HDF5 file",
    b"PK\x03\x04": "a zip archive, as .npz, .docx and .xlsx are",
    b"\x7fELF": "a program",
    b"%PDF": "a PDF",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"SQLite format 3": "an SQLite database",
}
_BYTE_ORDER_MARKS: Final = {  # UTF-32 first: its little-endian mark begins with that of UTF-16
    codecs.BOM_UTF32_LE: "UTF-32",
    codecs.BOM_UTF32_BE: "UTF-32",
    codecs.BOM_UTF16_LE: "UTF-16",
    codecs.BOM_UTF16_BE: "UTF-16",
}


def refuse_other_forms(head: bytes, name: str) -> None:
    """Refuse UTF-16, UTF-32 and binary files, whose bytes may well be valid UTF-8.

    Args:
        head: the first bytes; some thousands, if there are as many.
        name: of the source, for the message.

    Raises:
        DataError: the bytes are of such a form.
    """
    nul_count = head.count(0)
    many_nuls = nul_count > max(_FEW_NULS, _NUL_SHARE * len(head))
    encoding = next((known for mark, known in _BYTE_ORDER_MARKS.items() if head.startswith(mark)), None)
    if encoding is None and many_nuls:
        encoding = _wide_encoding(head)
    if encoding is not None:
        fix = f"convert it with: iconv -f {encoding} -t UTF-8"
        raise DataError(f"is {encoding}, not UTF-8", where=Place(name), fix=fix)
    kind = _binary_kind(head)
    if many_nuls or (kind and nul_count):
        raise DataError(f"is binary, not text{kind}", where=Place(name), fix="name plain text files")


def bad_byte(raw: bytes, index: int, line_offset: int, head: bytes, place: Place) -> DataError:
    """Return what to tell of a byte that is not UTF-8.

    Args:
        raw: the line.
        index: of the byte in it.
        line_offset: of the line in the source, in bytes.
        head: the source's first bytes.
        place: of the line.
    """
    message = f"byte 0x{raw[index]:02x} at offset {line_offset + index} is not UTF-8"
    kind = _binary_kind(head)
    if kind or 0 in head or 0 in raw:
        return DataError(f"looks like a binary file{kind}: {message}", where=place, fix="name plain text files")
    fix = "convert it (iconv -f LATIN1 -t UTF-8, if it is Latin-1), or pass --encoding-errors replace"
    return DataError(message, where=place, fix=fix)


def _wide_encoding(head: bytes) -> str | None:
    """Return the encoding of two or four bytes a character under which every character could stand in a text."""
    for encoding in ("UTF-32LE", "UTF-32BE", "UTF-16LE", "UTF-16BE"):
        try:
            text = codecs.getincrementaldecoder(encoding)().decode(head)  # the last character may be cut
        except UnicodeDecodeError:
            continue
        if all(character.isprintable() or character.isspace() for character in text):
            return encoding
    return None


def _binary_kind(head: bytes) -> str:
    kind = "a tar archive" if head[257:262] == b"ustar" else None
    kind = next((known for magic, known in _BINARY_KINDS.items() if head.startswith(magic)), kind)
    return f" ({kind})" if kind else ""
