"""The packed layout against one that is built token by token."""

from dataclasses import dataclass

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from elmo_cli.bilm.packing import pack

LENGTHS = st.lists(st.integers(1, 12), max_size=9)


@dataclass(frozen=True)
class Layout:
    """Each packed row as (sentence, step), and where each sentence's first token stands end to end."""

    rows: list[tuple[int, int]]
    starts: list[int]


def brute_force(lengths: list[int]) -> Layout:
    """Go through time; at each step take the sentences that still have a token, the longest first."""
    sentences = sorted(range(len(lengths)), key=lambda sentence: -lengths[sentence])  # stable, as packing is
    rows = [(s, t) for t in range(max(lengths, default=0)) for s in sentences if t < lengths[s]]
    return Layout(rows, [sum(lengths[:s]) for s in range(len(lengths))])


@given(LENGTHS)
def test_order_holds_the_tokens_step_by_step_longest_sentence_first(lengths: list[int]) -> None:
    layout = brute_force(lengths)
    assert pack(lengths).order.tolist() == [layout.starts[s] + t for s, t in layout.rows]


@given(LENGTHS)
def test_step_sizes_count_the_sentences_alive(lengths: list[int]) -> None:
    alive = tuple(sum(length > t for length in lengths) for t in range(max(lengths, default=0)))
    assert pack(lengths).step_sizes == alive


@given(LENGTHS)
def test_sentence_count_is_the_number_of_sentences(lengths: list[int]) -> None:
    assert pack(lengths).sentence_count == len(lengths)


@given(LENGTHS)
def test_reverse_mirrors_each_token_in_its_sentence(lengths: list[int]) -> None:
    rows = brute_force(lengths).rows
    assert pack(lengths).reverse.tolist() == [rows.index((s, lengths[s] - 1 - t)) for s, t in rows]


@given(LENGTHS)
def test_reverse_is_its_own_inverse(lengths: list[int]) -> None:
    reverse = pack(lengths).reverse
    assert reverse[reverse].tolist() == list(range(sum(lengths)))


@given(LENGTHS)
def test_previous_is_the_row_of_the_same_sentence_one_step_before(lengths: list[int]) -> None:
    rows = brute_force(lengths).rows
    assert pack(lengths).previous.tolist() == [rows.index((s, t - 1)) for s, t in rows[len(lengths) :]]


@given(LENGTHS)
def test_columns_are_the_sentences_of_the_first_step(lengths: list[int]) -> None:
    assert pack(lengths).columns.tolist() == [s for s, t in brute_force(lengths).rows if t == 0]


@given(LENGTHS)
@example([])
def test_indices_are_whole_numbers_of_64_bits_and_stay_so_on_a_device(lengths: list[int]) -> None:
    packing = pack(lengths)
    moved = packing.to(torch.device("cpu"))
    assert moved.step_sizes == packing.step_sizes
    for name in ("order", "reverse", "previous", "columns"):
        before, after = getattr(packing, name), getattr(moved, name)
        assert before.dtype == torch.int64
        assert torch.equal(before, after)


@pytest.mark.parametrize("lengths", [[0], [3, 0, 2], [-1]])
def test_a_sentence_without_a_token_is_refused(lengths: list[int]) -> None:
    message = "a packed sentence needs at least one token; markers make every sentence two longer"
    with pytest.raises(ValueError, match=f"^{message}$"):
        pack(lengths)
