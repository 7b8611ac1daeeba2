"""Vectors of lines in word2vec's text format, read by a reader of our own and by gensim where it is installed."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sentence_rows import LINES, form, rows_of, sentences, written

from elmo_cli.config import DType
from elmo_cli.errors import ConfigError
from elmo_cli.storage.word2vec_vectors import UniqueNames, row_name


def read(content: bytes) -> tuple[list[str], np.ndarray]:
    """Read the format as word2vec's own tools do: white space parts everything."""
    header, *lines = content.decode().removesuffix("\n").split("\n")
    rows, dim = map(int, header.split())
    parts = [line.split() for line in lines]
    assert [len(part) for part in parts] == [dim + 1] * rows
    return [part[0] for part in parts], np.array([part[1:] for part in parts], np.float64).reshape(rows, dim)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_names_and_numbers_read_back(dtype: DType) -> None:
    content = sentences((4,), pooled=True)
    names, vectors = read(written(form("word2vec", dtype=dtype, pooled=True), content))
    assert names == ["The_ferry_left_.", "_", "你好_é", "a___b", "The_ferry_left_.#2"]
    np.testing.assert_array_equal(vectors.astype(dtype), rows_of(content, pooled=True).astype(dtype))


def test_gensim_reads_the_file(tmp_path: pytest.TempPathFactory) -> None:
    models = pytest.importorskip("gensim.models")
    content = sentences((4,), pooled=True, lines=[*LINES, "\u00a0x\u2028y\u3000", "_"])
    path = tmp_path / "v.vec"
    path.write_bytes(written(form("word2vec", pooled=True), content))
    loaded = models.KeyedVectors.load_word2vec_format(str(path))
    assert loaded.index_to_key[-2:] == ["x_y", "_#2"]
    np.testing.assert_array_equal(loaded.vectors, rows_of(content, pooled=True))


def test_no_line_gives_a_header_alone() -> None:
    assert read(written(form("word2vec", pooled=True), []))[1].shape == (0, 4)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_name_is_one_word_for_every_reader(text: str) -> None:
    name = row_name(text)
    assert name.split() == [name]
    assert name.encode().split() == [name.encode()]


@given(st.lists(st.sampled_from(["a", "b", "a#2", "a#3", "a#2#2", "_"]), max_size=12))
def test_a_name_is_given_once(names: list[str]) -> None:
    unique = UniqueNames()
    given_names = [unique.of(name) for name in names]
    unique.close()
    assert len(set(given_names)) == len(names)
    assert all(given_name.startswith(name) for given_name, name in zip(given_names, names, strict=True))
    assert given_names[:1] == names[:1]


@pytest.mark.parametrize(
    ("shape", "pooled", "message"),
    [
        ((4,), False, "word2vec holds a vector a line, not a token\n  fix: add --pool mean, or choose -f npy"),
        (
            (3, 4),
            True,
            "word2vec holds one vector a line, not 3 layers\n  fix: choose --layers average, top or one number",
        ),
    ],
)
def test_what_the_format_has_no_room_for_is_refused(shape: tuple[int, ...], pooled: bool, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        form("word2vec", shape, pooled=pooled).check()
    assert str(caught.value) == message
