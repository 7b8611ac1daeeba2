"""Inputs whose sizes lie: what they say they hold is never allocated. Each is read by a process with little memory."""

import binascii
import bz2
import gzip
import json
import lzma
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest
import zstandard

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits the memory of a process as Linux does")

MEMORY_BYTES = 1 << 30  # of address space; numpy, h5py and the reader take half of it, mostly never touched
LIMITED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY_BYTES}, {MEMORY_BYTES}))
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
from pathlib import Path
from elmo_cli.errors import ElmoError
try:
    {{}}
except ElmoError as error:
    print("refused:", error)
else:
    print("fine")
[peak] = [line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
print("peak", int(peak) >> 10)
"""
READ = (
    "from elmo_cli.text.reader import read_sentences\n"
    "    sum(1 for _ in read_sentences([sys.argv[1]], mode='tokens', tokenizer=None))"
)
INFO = "from elmo_cli.storage.model_info import model_info\n    model_info(Path(sys.argv[1])).rows()"
CONVERT = (
    "from elmo_cli.storage.convert import import_model\n"
    "    import_model([Path(sys.argv[1])], Path(sys.argv[1] + '-new'), language='en', replace=False)"
)


def limited(script: str, *arguments: Path) -> tuple[str, int]:
    """Run a script with little memory; return what it says, and its peak of memory in MiB."""
    code = LIMITED.format(script)
    # A thread of OpenBLAS reserves memory of its own, and there may be many.
    run = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    )
    assert run.returncode == 0, run.stderr[-2000:]
    said, _, peak = run.stdout.rpartition("peak ")
    return said, int(peak)


def zeros(packer: Callable[[bytes], bytes], unit: bytes, count: int) -> bytes:
    """Return members of a compressed stream that unpack to ``count`` times 10 MB."""
    return packer(unit * (10_000_000 // len(unit))) * count


BOMBS: dict[str, tuple[Callable[[bytes], bytes], int]] = {
    "gzip": (lambda data: gzip.compress(data, 9), 15),
    "bzip2": (lambda data: bz2.compress(data, 9), 15),
    "xz": (lzma.compress, 15),
    "zstd": (zstandard.ZstdCompressor(level=3).compress, 15),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_lines_unpack_without_end_in_little_memory(kind: str, tmp_path: Path) -> None:
    packer, count = BOMBS[kind]
    path = tmp_path / "many.txt"
    path.write_bytes(zeros(packer, b"a" * 9_999 + b"\n", count))
    said, peak = limited(READ, path)
    assert said == "fine\n"
    assert peak < 200


@pytest.mark.parametrize("kind", BOMBS)
def test_a_line_that_unpacks_without_end_is_refused(kind: str, tmp_path: Path) -> None:
    packer, count = BOMBS[kind]
    path = tmp_path / "long.txt"
    path.write_bytes(zeros(packer, b"a", count))
    said, peak = limited(READ, path)
    assert said.startswith(f"refused: {path}:1: the line has more than 134,217,728 bytes\n")
    assert peak < 600


def test_a_single_member_of_bzip2_unpacks_in_steps(tmp_path: Path) -> None:
    """All of it comes from less than a kilobyte: unpacked at once it would fill the memory."""
    path = tmp_path / "one.txt"
    path.write_bytes(bz2.compress((b"a" * 999_999 + b"\n") * 200, 9))
    said, peak = limited(READ, path)
    assert said == "fine\n"
    assert peak < 250


def test_an_xz_header_that_asks_for_4_gigabytes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "wide.txt.xz"
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(b"a\n" * 100, filters=filters))
    at = packed.index(bytes([0x21, 0x01])) + 2  # the size of the dictionary behind the filter's name
    packed[at] = 40  # 4 GB
    packed[20:24] = binascii.crc32(packed[12:20]).to_bytes(4, "little")
    path.write_bytes(packed)
    said, peak = limited(READ, path)
    assert said.startswith(f"refused: {path}: the xz stream asks for more than 1 GB of memory\n")
    assert peak < 200


@pytest.mark.parametrize("size", [2**40, 2**63, 99_999_999])
def test_the_length_of_a_header_is_not_allocated(model: Path, size: int) -> None:
    path = model / "model.safetensors"
    path.write_bytes(size.to_bytes(8, "little") + path.read_bytes()[8:])
    said, peak = limited(INFO, model)
    assert said.startswith(f"refused: {path}: is not a whole safetensors file")
    assert peak < 200


def test_a_config_of_a_huge_shape_is_refused_before_anything_is_made(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    for group, key, value in (
        ("lstm", "layers", 10**9),
        ("char_cnn", "highway_layers", 10**9),
        ("lstm", "cell_dim", 10**12),
    ):
        text = json.dumps({**config, "bilm": {**config["bilm"], group: {**config["bilm"][group], key: value}}})
        (model / "config.json").write_text(text)
        said, peak = limited(INFO, model)
        assert said.startswith(f"refused: {model / 'config.json'}: the shape of the model cannot be read: ")
        assert peak < 200


@pytest.fixture
def huge_options(tmp_path: Path) -> Path:
    """Options of a model with a vast char CNN, in a folder without weights."""
    from tiny_options import TINY_OPTIONS

    folder = tmp_path / "foreign"
    folder.mkdir()
    options = {**TINY_OPTIONS, "char_cnn": {**TINY_OPTIONS["char_cnn"], "embedding": {"dim": 10_000_000}}}
    (folder / "options.json").write_text(json.dumps(options))
    return folder


@pytest.mark.parametrize("chunks", [None, (1, 1000)])
def test_a_dataset_of_a_huge_shape_is_not_allocated(huge_options: Path, chunks: tuple[int, ...] | None) -> None:
    path = huge_options / "weights.hdf5"
    with h5py.File(path, "w") as file:
        file.create_dataset("char_embed", (261, 10_000_000), np.float32, chunks=chunks)
    assert path.stat().st_size < 100_000
    said, peak = limited(CONVERT, huge_options)
    assert said.startswith(f"refused: {path}: has shapes for 10,440,000,000 bytes, of which 0 are stored\n")
    assert peak < 300
