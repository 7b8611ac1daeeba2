"""Arrays for `elmo mix apply` and indexes for `elmo neighbors` that others made or a crash has damaged."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Answer
from fuzz_targets import refused_or_fine
from hypothesis import given
from hypothesis import strategies as st
from strange import examples, mutated, strange_documents

Elmo = Callable[..., Answer]


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


SOUND = npy(np.ones((2, 3, 4), np.float32))
HEADERS = st.sampled_from(
    [
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000, 3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1, 3, 4)}",
        "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 0, 4)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (2, 3, 4)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3, 4)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3, 4L)}",
        "(" * 5000,
        "{'descr': '''",
        "__import__('os').system('true')",
    ]
)


def with_header(text: str) -> bytes:
    raw = text.encode("latin-1", "replace")
    return b"\x93NUMPY\x01\x00" + len(raw).to_bytes(2, "little") + raw + SOUND[-96:]


def test_damaged_arrays_of_layers_are_layers_or_refused(tmp_path: Path) -> None:
    from elmo_cli.mixing.apply import file_rows, stream_rows

    path = tmp_path / "layers.npy"

    @examples(80)
    @given(
        data=mutated(SOUND[:128]).map(lambda head: head + SOUND[128:])
        | HEADERS.map(with_header)
        | st.binary(max_size=40)
    )
    def check(data: bytes) -> None:
        path.write_bytes(data)
        with refused_or_fine():
            _take(file_rows(str(path)))
        with refused_or_fine():
            _take(stream_rows(io.BytesIO(data), "<stdin>"))

    check()


def _take(rows: object) -> None:
    for number, piece in enumerate(rows.pieces):  # type: ignore[attr-defined]
        assert piece.nbytes <= 1 << 26
        if number > 3:
            return


@pytest.fixture(scope="session")
def index(elmo: Elmo, sound_model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("index")
    (folder / "t.txt").write_text("the boat left\nA boat left the pier\n")
    options = ("-m", sound_model, "--input", "tokens", "--workers", 0)
    answer = elmo("index", folder / "t.txt", "-o", folder / "t.idx", *options)
    assert answer.code == 0, answer.stderr
    return folder / "t.idx"


def look_up(elmo: Elmo, index: Path, model: Path) -> None:
    answer = elmo("neighbors", "boat", "the boat left", "--index", index, "-m", model)
    assert answer.code in (0, 1, 2), answer.stderr


def test_each_file_of_an_index_may_be_damaged(elmo: Elmo, index: Path, sound_model: Path, tmp_path: Path) -> None:
    names = sorted(path.relative_to(index) for path in index.rglob("*") if path.is_file() and path.stat().st_size)
    copy = tmp_path / "copy.idx"

    @examples(12)
    @given(data=st.data(), name=st.sampled_from(names))
    def check(data: st.DataObject, name: Path) -> None:
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(index, copy)
        (copy / name).write_bytes(data.draw(mutated((index / name).read_bytes())))
        look_up(elmo, copy, sound_model)

    check()


def test_an_index_may_say_anything_of_itself(elmo: Elmo, index: Path, sound_model: Path, tmp_path: Path) -> None:
    from elmo_cli.neighbors.index_info import _sum

    copy = tmp_path / "copy.idx"
    shutil.copytree(index, copy)
    sound = json.loads((index / "index.json").read_text())
    sound.pop("sha256")

    @examples(12)
    @given(text=strange_documents(sound))
    def check(text: str) -> None:
        content = json.loads(text)
        if isinstance(content, dict):
            content = {**content, "sha256": _sum(content)}
        (copy / "index.json").write_text(json.dumps(content))
        look_up(elmo, copy, sound_model)

    check()
