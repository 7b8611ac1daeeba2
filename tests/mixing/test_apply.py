"""Stored layers to mixed vectors, against the sum written out in NumPy."""

import io
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from elmo_cli.embedding.pooling import mix_layers
from elmo_cli.errors import DataError
from elmo_cli.mixing import apply
from elmo_cli.mixing.apply import check_shape, file_rows, mixed_pieces, stream_rows
from elmo_cli.storage.mix_file import MixWeights

WEIGHTS = MixWeights((0.2, 0.5, 0.3), 1.1)
# Sums of three float32 numbers of size 1.
FLOAT32 = 1e-6


def made_up(rows: int, dtype: str = "float32") -> NDArray[np.float64]:
    return np.random.default_rng(1).standard_normal((rows, 3, 4)).astype(dtype)


def by_hand(layers: NDArray[np.float64], weights: MixWeights) -> NDArray[np.float64]:
    x = layers.astype(np.float64)
    if weights.layer_norm:
        x = (x - x.mean(axis=2, keepdims=True)) / np.sqrt(x.var(axis=2, keepdims=True))
    return weights.gamma * np.einsum("k,tkd->td", weights.s, x)


def as_stream(array: NDArray[np.float64]) -> io.BytesIO:
    stream = io.BytesIO()
    np.save(stream, array)
    stream.seek(0)
    return stream


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64", ">f4"])
@pytest.mark.parametrize("layer_norm", [False, True])
def test_a_file_and_a_pipe_give_the_sum(tmp_path: Path, monkeypatch, dtype: str, layer_norm: bool) -> None:  # noqa: ANN001
    monkeypatch.setattr(apply, "_PIECE_BYTES", 5 * 3 * 4 * 4)  # five rows at once
    layers, weights = made_up(13, dtype), MixWeights(WEIGHTS.s, 1.1, layer_norm)
    np.save(tmp_path / "a.npy", layers)
    for rows in (file_rows(str(tmp_path / "a.npy")), stream_rows(as_stream(layers), "pipe")):
        pieces = list(mixed_pieces(rows, weights))
        assert [len(piece) for piece in pieces][:2] == [5, 5] or dtype == "float64"
        np.testing.assert_allclose(np.concatenate(pieces), by_hand(layers, weights), atol=5e-6)


@pytest.mark.parametrize(("number", "message"), [(np.nan, "row 8 holds nan"), (1e38, "the sum of row 8 is too large")])
def test_a_sum_that_is_not_finite_is_told_with_file_and_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: float,
    message: str,
) -> None:
    monkeypatch.setattr(apply, "_PIECE_BYTES", 5 * 3 * 4 * 4)  # five rows at once
    layers = made_up(13)
    layers[7, 1, 2] = number
    np.save(tmp_path / "a.npy", layers)
    with pytest.raises(DataError, match=f"a.npy: {message}"):
        list(mixed_pieces(file_rows(str(tmp_path / "a.npy")), MixWeights((0.2, 0.5, 0.3), 10.0)))


def test_an_array_of_no_rows_gives_none() -> None:
    assert list(mixed_pieces(stream_rows(as_stream(made_up(0)), "pipe"), WEIGHTS)) == []


def test_an_array_in_fortran_order_is_read_from_a_file(tmp_path: Path) -> None:
    layers = made_up(6)
    np.save(tmp_path / "a.npy", np.asfortranarray(layers))
    found = np.concatenate(list(mixed_pieces(file_rows(str(tmp_path / "a.npy")), WEIGHTS)))
    np.testing.assert_allclose(found, by_hand(layers, WEIGHTS), atol=FLOAT32)
    with pytest.raises(DataError, match="Fortran order"):
        stream_rows(as_stream(np.asfortranarray(layers)), "pipe")


def test_an_array_of_one_layer_in_fortran_order_is_not_read_in_the_wrong_order() -> None:
    with pytest.raises(DataError, match="Fortran order"):
        stream_rows(as_stream(np.asfortranarray(made_up(6)[:, :1])), "pipe")


def test_an_array_of_one_layer_that_may_not_be_written_gives_no_warning() -> None:
    [found] = mixed_pieces(stream_rows(as_stream(made_up(6)[:, :1].copy()), "pipe"), MixWeights((1.0,)))
    np.testing.assert_array_equal(found, made_up(6)[:, 0])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3)), r"the array has the shape \[2, 3\], not \[tokens, layers, dim\]"),
        (np.zeros((2, 3, 4), dtype=np.int64), "the array holds int64, not floats"),
    ],
)
def test_what_is_no_array_of_layers_is_refused(tmp_path: Path, array: NDArray[np.float64], message: str) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match=message):
        file_rows(str(tmp_path / "a.npy"))
    with pytest.raises(DataError, match=message):
        stream_rows(as_stream(array), "pipe")


@pytest.mark.parametrize("size", [0, 3, 60, 200])
def test_a_truncated_array_is_refused(tmp_path: Path, size: int) -> None:
    content = as_stream(made_up(13)).getvalue()[:size]
    (tmp_path / "a.npy").write_bytes(content)
    with pytest.raises(DataError):
        list(file_rows(str(tmp_path / "a.npy")).pieces)
    with pytest.raises(DataError):
        list(stream_rows(io.BytesIO(content), "pipe").pieces)


def test_an_array_of_objects_is_never_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([{}], dtype=object))
    with pytest.raises(DataError):
        file_rows(str(tmp_path / "a.npy"))


def test_an_array_that_the_weights_do_not_fit_is_refused_with_both_shapes() -> None:
    rows = stream_rows(as_stream(made_up(2)), "pipe")
    with pytest.raises(DataError, match="pipe: the array has 3 layers of 4 numbers, the mix 2 layers of 8"):
        check_shape(rows, 2, 8, "the mix")
    check_shape(rows, 3, None, "--weights")


def test_weights_of_another_number_of_layers_are_a_mistake_of_the_program() -> None:
    import torch

    with pytest.raises(ValueError, match="there are 2 layers and 3 weights"):
        mix_layers(torch.zeros(2, 1, 4), WEIGHTS)
