"""npz, safetensors, Parquet and Arrow, read back with the library that their users have."""

import io
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import safetensors.numpy
import safetensors.torch
from sentence_rows import LINES, Sentences, form, rows_of, sentences, table_of, texts_of, written

from elmo_cli.config import DType
from elmo_cli.errors import ConfigError, ModelError
from elmo_cli.storage import arrow_vectors
from elmo_cli.storage import vectors as vectors_module
from elmo_cli.storage.vector_formats import FORMATS

BINARY = ["npz", "safetensors", "parquet", "arrow"]
SHAPES = [(4,), (3, 4), (1,)]
COLUMNS = ("line", "sentence", "token", "start", "end", "text")


def arrays_of(name: str, content: bytes) -> dict[str, Any]:
    if name == "safetensors":
        return safetensors.numpy.load(content)
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


def arrow_table(name: str, content: bytes) -> pa.Table:
    source = pa.BufferReader(content)
    return pa.parquet.read_table(source) if name == "parquet" else pa.ipc.open_file(source).read_all()


def vectors_of(name: str, content: bytes) -> np.ndarray:
    if name in ("npz", "safetensors"):
        return np.asarray(arrays_of(name, content)["vectors"])
    column = arrow_table(name, content)["vector"].combine_chunks()
    shape = [len(column)]
    while pa.types.is_fixed_size_list(column.type):
        shape.append(column.type.list_size)
        column = column.flatten()
    return column.to_numpy(zero_copy_only=False).reshape(shape)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("pooled", [False, True])
def test_vectors_read_back_as_they_were(name: str, shape: tuple[int, ...], dtype: DType, pooled: bool) -> None:
    content = sentences(shape, pooled=pooled)
    found = vectors_of(name, written(form(name, shape, dtype, pooled=pooled), content))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows_of(content, pooled=pooled).astype(dtype))


@pytest.mark.parametrize("name", ["npz", "safetensors"])
def test_arrays_beside_the_vectors_say_what_each_row_is(name: str) -> None:
    content = sentences((4,))
    arrays = arrays_of(name, written(form(name), content))
    texts = texts_of(arrays)
    numbers = zip(*(arrays[column].tolist() for column in COLUMNS[:-1]), strict=True)
    expected = [tuple(-1 if cell is None else cell for cell in row) for row in table_of(content)]
    assert [(*row, text) for row, text in zip(numbers, texts, strict=True)] == expected


@pytest.mark.parametrize("name", ["npz", "safetensors"])
def test_pooled_arrays_have_the_text_of_each_line(name: str) -> None:
    arrays = arrays_of(name, written(form(name, pooled=True), sentences((4,), pooled=True)))
    assert texts_of(arrays) == LINES
    assert arrays["line"].tolist() == arrays["sentence"].tolist() == [1, 2, 3, 4, 5]
    assert set(arrays) == {"vectors", "line", "sentence", "text_bytes", "text_offsets"}


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_columns_of_a_table_say_what_each_row_is(name: str) -> None:
    content = sentences((4,))
    table = arrow_table(name, written(form(name), content))
    assert table.column_names == [*COLUMNS, "vector"]
    assert [tuple(row[column] for column in COLUMNS) for row in table.to_pylist()] == table_of(content)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_a_pooled_table_has_the_text_of_each_line(name: str) -> None:
    table = arrow_table(name, written(form(name, pooled=True), sentences((4,), pooled=True)))
    assert table.column_names == ["line", "sentence", "text", "vector"]
    assert table["text"].to_pylist() == LINES


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_a_table_is_written_group_by_group(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = sentences((4,))
    monkeypatch.setattr(arrow_vectors, "_GROUP_BYTES", 4 * 16)
    found = written(form(name), content)
    groups = (
        pa.parquet.ParquetFile(pa.BufferReader(found)).num_row_groups
        if name == "parquet"
        else pa.ipc.open_file(pa.BufferReader(found)).num_record_batches
    )
    assert groups == 3  # of 4, 0 + 2 + 4 and 4 tokens
    assert arrow_table(name, found).equals(arrow_table(name, _whole(name, content)))


@pytest.mark.parametrize("name", ["parquet", "arrow"])
@pytest.mark.parametrize("pooled", [False, True])
def test_the_text_of_a_group_counts_too(name: str, pooled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    content = sentences((4,), pooled=pooled, lines=["x" * 1_000] * 4)
    monkeypatch.setattr(arrow_vectors, "_GROUP_BYTES", 2_000)
    found = pa.BufferReader(written(form(name, pooled=pooled), content))
    groups = (
        pa.parquet.ParquetFile(found).num_row_groups
        if name == "parquet"
        else pa.ipc.open_file(found).num_record_batches
    )
    assert groups == 2


def _whole(name: str, content: Sentences) -> bytes:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_vectors, "_GROUP_BYTES", 1 << 30)
        return written(form(name), content)


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("pooled", [False, True])
def test_no_text_gives_no_rows_of_the_usual_width(name: str, pooled: bool) -> None:
    found = written(form(name, (3, 4), pooled=pooled), [])
    assert vectors_of(name, found).shape == (0, 3, 4)


@pytest.mark.parametrize("name", BINARY)
def test_the_same_input_gives_the_same_bytes(name: str) -> None:
    assert written(form(name), sentences((4,))) == written(form(name), sentences((4,)))


@pytest.mark.parametrize("name", ["npy", "jsonl", *BINARY])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sentence_too_long_to_convert_at_once_gives_the_same_bytes(
    name: str, shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = written(form(name, shape), sentences(shape))
    monkeypatch.setattr(vectors_module, "_ROWS_AT_ONCE", 3)  # of four tokens
    assert written(form(name, shape), sentences(shape)) == at_once


@pytest.mark.parametrize("name", BINARY)
def test_a_lone_surrogate_in_a_token_is_escaped(name: str) -> None:
    found = written(form(name), sentences((4,), lines=["a\ud800"]))
    texts = texts_of(arrays_of(name, found)) if name in ("npz", "safetensors") else arrow_table(name, found)["text"]
    assert [str(text) for text in texts] == ["a\\ud800"]


@pytest.mark.parametrize("lines", [["a"], ["a b"], ["a b c"]])
def test_torch_takes_every_tensor_of_a_file(lines: list[str]) -> None:
    """Three float16 rows of two numbers are 12 bytes: without padding, the int64 behind them would be misaligned."""
    content = sentences((2,), lines=lines)
    tensors = safetensors.torch.load(written(form("safetensors", (2,), "float16"), content))
    assert tensors["text_offsets"].tolist() == [0, *np.cumsum([len(t) for t in content[0][0].tokens])]
    assert np.array_equal(tensors["vectors"].numpy(), rows_of(content).astype(np.float16))


@pytest.mark.parametrize("name", ["npy", *BINARY, "hdf5", "jsonl", "word2vec"])
def test_no_format_takes_a_number_that_is_not_finite(name: str) -> None:
    content = sentences((4,), pooled=True)
    content[0][1][2] = np.nan
    with pytest.raises(ModelError, match="a vector holds nan"):
        written(form(name, pooled=True), content)


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_a_missing_package_is_named_with_its_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ConfigError) as caught:
        form(name).check()
    assert str(caught.value) == (
        "Parquet and Arrow files need the package pyarrow\n  fix: pip install 'elmo-cli[parquet]'"
    )


def test_every_ending_tells_one_format() -> None:
    endings = [ending for endings in FORMATS.values() for ending in endings]
    assert len(set(endings)) == len(endings)
