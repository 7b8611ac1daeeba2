"""Event files: what TensorBoard's own reader finds in them, and, without it, the checksums and bytes of the format."""

import math
import struct
from pathlib import Path
from typing import Any

import pytest

from elmo_cli.storage.run_dir import RunDir
from elmo_cli.storage.tensorboard import EventWriter, crc32c

HELDOUT = {"forward": 30.5, "backward": 31.25, "targets": 10}


def fill(folder: Path) -> None:
    """Write three steps, and then the last two anew, as a resumed run does."""
    writer = EventWriter(folder, first_step=1)
    for step in (1, 2, 3):
        writer.add({"step": step, "epoch": 0, "loss_nats": 6.0 - step, "sampled": False})
    (path,) = folder.iterdir()
    path.rename(folder / "events.out.tfevents.1000000000.earlier.1")
    again = EventWriter(folder, first_step=2)
    again.add({"step": 2, "epoch": 0, "loss_nats": 2.5, "sampled": True})
    again.add({"step": 2, "epoch": 0, "heldout": HELDOUT})


@pytest.mark.parametrize(
    ("content", "checksum"),
    # RFC 3720, appendix B.4, and the check value of the catalogue of CRC algorithms.
    [(bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E), (b"123456789", 0xE3069283)],
)
def test_the_checksum_is_crc_32c(content: bytes, checksum: int) -> None:
    assert crc32c(content) == checksum


def test_records_are_framed_as_tensorflow_frames_them(tmp_path: Path) -> None:
    EventWriter(tmp_path, first_step=7)
    (path,) = tmp_path.iterdir()
    content, events = path.read_bytes(), []
    while content:
        (length,) = struct.unpack("<Q", content[:8])
        for start, end in ((0, 8), (12, 12 + length)):
            crc = crc32c(content[start:end])
            masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32
            assert content[end : end + 4] == struct.pack("<I", masked)
        events.append(content[12 : 12 + length])
        content = content[16 + length :]
    version, start_of_session = events
    # Field 1 (a double, the time) takes nine bytes; then field 2 (the step), and what the event is.
    assert version[9:] == b"\x10\x00" + b"\x1a\x0dbrain.Event:2"
    assert start_of_session[9:] == b"\x10\x07" + b"\x3a\x02\x08\x01"


def test_tensorboard_reads_the_scalars_of_a_resumed_run(tmp_path: Path) -> None:
    reader: Any = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator", reason="tensorboard is not installed"
    )
    fill(tmp_path)
    found = reader.EventAccumulator(str(tmp_path)).Reload()
    scalars = {tag: [(at.step, at.value) for at in found.Scalars(tag)] for tag in found.Tags()["scalars"]}
    assert scalars == {
        "loss_nats": [(1, 5.0)],
        "sampled_loss_nats": [(2, 2.5)],
        "heldout/forward": [(2, 30.5)],
        "heldout/backward": [(2, 31.25)],
    }


def test_a_perplexity_beyond_float32_is_infinite(tmp_path: Path) -> None:
    EventWriter(tmp_path, first_step=1).add({"step": 1, "heldout": {"both": 1e40, "forward": -1e40}})
    (path,) = tmp_path.iterdir()
    assert struct.pack("<f", math.inf) in path.read_bytes()
    assert struct.pack("<f", -math.inf) in path.read_bytes()


def test_a_run_writes_its_metrics_as_events_when_asked(tmp_path: Path) -> None:
    run = RunDir(tmp_path)
    run.create({})
    run.add_metrics({"step": 0, "loss_nats": 1.5})
    assert not run.has_events
    run.write_events(0)
    run.add_metrics({"step": 1, "loss_nats": 1.25})
    assert run.has_events
    (path,) = run.path.glob("events.out.tfevents.*")
    assert b"loss_nats" in path.read_bytes()
    assert len((run.path / "metrics.jsonl").read_text().splitlines()) == 2
