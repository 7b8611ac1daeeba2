"""Numbers as JSON text, which read back as the very same ones."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from elmo_cli.config import DType
from elmo_cli.storage.decimals import json_array

FINITE = {
    "float32": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "float16": st.floats(width=16, allow_nan=False, allow_infinity=False),
}

# Where the text of a number changes its form, and the neighbours of each.
BORDERS = [0.0, 1e-45, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 99.5, 3e38]


def read_json(text: bytes, dtype: str) -> np.ndarray:
    """Read numbers as most programs do: as doubles, which are then rounded."""
    return np.array(json.loads(text), np.float64).astype(dtype)


def numbers_of(text: bytes) -> list[str]:
    return text.decode().replace("[", "").replace("]", "").split(",")


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@settings(deadline=None)
@given(data=st.data())
def test_numbers_read_back_as_the_same_ones(dtype: DType, data: st.DataObject) -> None:
    shape = data.draw(arrays.array_shapes(min_dims=1, max_dims=3, max_side=6))
    values = data.draw(arrays.arrays(dtype, shape, elements=FINITE[dtype]))
    np.testing.assert_array_equal(read_json(json_array(values), dtype), values)


def test_every_float16_reads_back_as_itself() -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[np.isfinite(values)]
    np.testing.assert_array_equal(read_json(json_array(values), "float16"), values)


def test_numbers_of_all_sizes_look_as_printf_writes_them() -> None:
    random = np.random.default_rng(7)
    bits = random.integers(0, 1 << 32, 50_000, dtype=np.uint32).view(np.float32)
    usual = 10 ** random.uniform(-5, 2, 50_000)
    values = np.concatenate([bits[np.isfinite(bits)], usual, -usual]).astype(np.float32)
    assert numbers_of(json_array(values)) == [f"{value:.9g}" for value in values.tolist()]


@pytest.mark.parametrize("border", BORDERS)
def test_numbers_beside_a_change_of_form_look_as_printf_writes_them(border: float) -> None:
    middle = np.float32(border)
    values = np.array([np.nextafter(middle, np.float32(-1)), middle, np.nextafter(middle, np.float32(3.4e38))])
    assert numbers_of(json_array(values)) == [f"{value:.9g}" for value in values.tolist()]
    assert numbers_of(json_array(-values[values > 0])) == [f"{-value:.9g}" for value in values.tolist() if value > 0]


def test_minus_zero_is_zero() -> None:
    assert json_array(np.array([-0.0], np.float32)) == b"[0]"


def test_more_rows_than_are_written_in_one_go_stay_in_order() -> None:
    values = np.arange(30_000, dtype=np.float32).reshape(1000, 3, 10) / 8192
    np.testing.assert_array_equal(read_json(json_array(values), "float32"), values)


def test_a_row_longer_than_what_is_written_in_one_go_is_whole() -> None:
    values = np.arange(20_000, dtype=np.float32).reshape(1, 20_000) / 8192
    np.testing.assert_array_equal(read_json(json_array(values), "float32"), values)
