"""Compressed bytes to bytes: gzip, xz, bzip2 and zstd, known by their first bytes and unpacked as they come."""

import bz2
import importlib
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

from elmo_cli.errors import DataError, Place

PACKED_SUFFIXES: Final = (".gz", ".xz", ".bz2", ".zst")

_PIECE_SIZE: Final = 1 << 10  # compressed bytes fed at once; bounds what zstd, which has no other limit, unpacks to
_CONTENT_SIZE: Final = 1 << 20  # bytes unpacked at once: a "zip bomb" makes a gigabyte of one piece of bzip2
_XZ_MEMORY: Final = 1 << 30  # bytes; the largest preset of xz needs a fifteenth of it, but a header may ask for 4 GB
_TOO_MUCH_MEMORY: Final = {  # what a header asked for, where the decoder refuses it, and the remedy
    "xz": (f"more than {_XZ_MEMORY >> 30} GB of memory", "compress it again with a smaller dictionary"),
    "zstd": ("a window of more than 128 MB", "compress it again without --long, or unpack it: zstd -d --long=31"),
}
_FETCH_AGAIN: Final = "copy or download the file again"

_MAGIC_SIZE: Final = 10
_COMPRESSION_MAGIC: Final = re.compile(
    rb"(?P<gzip>\x1f\x8b\x08)|(?P<xz>\xfd7zXZ\x00)|(?P<bzip2>BZh[1-9](?:1AY&SY|\x17rE8P\x90))"
    rb"|(?P<zstd>\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18)"  # a frame, or a skippable frame before one
)


def gather(chunks: Iterator[bytes], size: int) -> bytes:
    """Take chunks up to ``size`` bytes or a line's end, so that nobody waits for more than a pipe's first line."""
    head = b""
    while len(head) < size and b"\n" not in head and (chunk := next(chunks, b"")):
        head += chunk
    return head


def unpacked(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """Return the chunks, decompressed where the first bytes say so.

    Raises:
        DataError: the stream is damaged or ends early, or a package for it is missing.
    """
    head = gather(chunks, _MAGIC_SIZE)
    magic = _COMPRESSION_MAGIC.match(head)
    whole = chain([head], chunks)
    return whole if magic is None else _decompress(whole, str(magic.lastgroup), name)


def _decompress(chunks: Iterator[bytes], kind: str, name: str) -> Iterator[bytes]:
    make_decoder, fault = _decompressor(kind, name)
    decoder = None
    for chunk in chunks:
        for start in range(0, len(chunk), _PIECE_SIZE):
            piece = chunk[start : start + _PIECE_SIZE]
            # A stream may have several members, and NULs between and behind them that fill up a block.
            while piece := piece if decoder else piece.lstrip(b"\0"):
                decoder = decoder or make_decoder()
                try:
                    yield from filter(None, _contents(decoder, kind, piece))
                except fault as error:
                    raise _damaged(kind, name, error) from error
                piece, decoder = (decoder.unused_data, None) if decoder.eof else (b"", decoder)
    if decoder is not None:
        raise DataError(f"the {kind} stream ends early", where=Place(name), fix=_FETCH_AGAIN)


def _contents(decoder: Any, kind: str, piece: bytes) -> Iterator[bytes]:  # noqa: ANN401 (libraries of four kinds)
    """Yield what a piece unpacks to, a little at a time where the decoder can be asked for that."""
    if kind == "gzip":
        content = bytes(_CONTENT_SIZE)
        while not decoder.eof and (piece or len(content) == _CONTENT_SIZE):
            content = decoder.decompress(piece, _CONTENT_SIZE)
            yield content
            piece = decoder.unconsumed_tail
    elif hasattr(decoder, "needs_input"):
        yield decoder.decompress(piece, _CONTENT_SIZE)
        while not (decoder.eof or decoder.needs_input):
            yield decoder.decompress(b"", _CONTENT_SIZE)
    else:
        yield decoder.decompress(piece)


def _damaged(kind: str, name: str, error: Exception) -> DataError:
    if kind in _TOO_MUCH_MEMORY and "emory" in str(error):  # "Memory usage limit exceeded", "requires too much memory"
        wanted, fix = _TOO_MUCH_MEMORY[kind]
        return DataError(f"the {kind} stream asks for {wanted}", where=Place(name), fix=fix)
    return DataError(f"the {kind} stream is damaged", where=Place(name), fix=_FETCH_AGAIN)


def _decompressor(kind: str, name: str) -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return what makes a decoder of one member, and what the decoder raises at damaged data."""
    if kind == "gzip":
        return partial(zlib.decompressobj, wbits=31), (zlib.error,)  # 31: a gzip header, any window
    if kind == "bzip2":
        return bz2.BZ2Decompressor, (OSError, ValueError)
    if kind == "xz":
        return partial(lzma.LZMADecompressor, memlimit=_XZ_MEMORY), (lzma.LZMAError,)
    try:
        zstd = importlib.import_module("compression.zstd")  # Python 3.14
        return zstd.ZstdDecompressor, (zstd.ZstdError,)
    except ImportError:
        pass
    try:
        zstd = importlib.import_module("zstandard")
    except ImportError as error:
        message = "the file is compressed with zstd, for which a package is missing"
        raise DataError(message, where=Place(name), fix="pip install 'elmo-cli[zstd]'") from error
    return lambda: zstd.ZstdDecompressor().decompressobj(), (zstd.ZstdError,)
