"""Event files as TensorBoard reads them, written without it: a few lines of its formats are all that scalars need.

A file is a row of records (length, checksum, content, checksum), as in TensorFlow's ``TFRecord``. A content is an
``Event`` in the wire format of Protocol Buffers, whose field numbers ``event.proto`` and ``summary.proto`` fix.
"""

import math
import os
import socket
import struct
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

_POLYNOMIAL: Final = 0x82F63B78  # of CRC-32C (Castagnoli), lowest bit first
_MASK: Final = 0xA282EAD8  # TensorFlow adds it to a rotated checksum, so that none is the checksum of itself
_VARINT, _EIGHT_BYTES, _COUNTED, _FOUR_BYTES = 0, 1, 2, 5  # wire types
_SESSION_START: Final = 1


class EventWriter:
    """Appends scalars to a new event file in a folder, each at once, so that TensorBoard can follow a run.

    Args:
        folder: of the run.
        first_step: what earlier files of the folder say of this step and later ones no longer counts.
    """

    def __init__(self, folder: Path, *, first_step: int) -> None:
        now = time.time()
        self._path = folder / f"events.out.tfevents.{int(now)}.{socket.gethostname()}.{os.getpid()}"
        version = _event(now, 0, _counted(3, b"brain.Event:2"))
        start = _event(now, first_step, _counted(7, _number(1, _SESSION_START)))
        self._append(_record(version) + _record(start))

    def add(self, metrics: Mapping[str, Any]) -> None:
        """Write a line of metrics: its ``step``, and each value that is no count, those of a table as ``table/name``.

        A loss under the sampled softmax gets a name of its own, ``sampled_loss_nats``.

        Raises:
            OSError: the file cannot be written.
        """
        names = {"loss_nats": "sampled_loss_nats"} if metrics.get("sampled") else {}
        values = b"".join(
            _counted(1, _counted(1, names.get(name, name).encode()) + _field(2, _FOUR_BYTES) + _float(x))
            for name, x in _scalars(metrics)
        )
        self._append(_record(_event(time.time(), int(metrics["step"]), _counted(5, values))))

    def _append(self, content: bytes) -> None:
        with self._path.open("ab") as file:
            file.write(content)


def _scalars(metrics: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    for name, value in metrics.items():
        if isinstance(value, Mapping):
            yield from _scalars(value, f"{name}/")
        elif isinstance(value, float):
            yield prefix + name, value


def _event(seconds: float, step: int, what: bytes) -> bytes:
    return _field(1, _EIGHT_BYTES) + struct.pack("<d", seconds) + _number(2, step) + what


def _field(number: int, wire_type: int) -> bytes:
    return _varint(number << 3 | wire_type)


def _number(number: int, value: int) -> bytes:
    return _field(number, _VARINT) + _varint(value)


def _counted(number: int, content: bytes) -> bytes:
    return _field(number, _COUNTED) + _varint(len(content)) + content


def _float(value: float) -> bytes:
    """Return four bytes; a perplexity of a model that is lost may be more than they hold, and counts as infinite."""
    try:
        return struct.pack("<f", value)
    except OverflowError:
        return struct.pack("<f", math.copysign(math.inf, value))


def _varint(value: int) -> bytes:
    """Return a whole number >= 0, seven bits a byte, the lowest first; all bytes but the last have the highest bit."""
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def _record(content: bytes) -> bytes:
    length = struct.pack("<Q", len(content))
    return length + _checksum(length) + content + _checksum(content)


def _checksum(content: bytes) -> bytes:
    crc = crc32c(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + _MASK) & 0xFFFFFFFF)


def crc32c(content: bytes) -> int:
    """Return the CRC-32C of some bytes (RFC 3720, appendix B.4). Bit by bit: an event has a hundred of them."""
    crc = 0xFFFFFFFF
    for byte in content:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
