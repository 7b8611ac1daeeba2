"""Both directions stacked, or each in a thread of its own: the same to the caller."""

from concurrent.futures import ThreadPoolExecutor
from threading import current_thread, main_thread

import pytest
import torch

from elmo_cli.bilm import directions
from elmo_cli.bilm.directions import over_directions


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> int:
    torch.set_num_threads(request.param)  # the fixtures of all tests set it back
    return request.param


@pytest.mark.usefixtures("threads")
def test_results_of_both_directions_are_written() -> None:
    x, output = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(2, 2)

    def double(x: torch.Tensor, output: torch.Tensor, absent: None) -> None:
        assert absent is None
        output.copy_(2 * x)

    over_directions(double, x, output, None)
    assert torch.equal(output, 2 * x)


def test_directions_share_a_thread_only_where_there_is_one(threads: int) -> None:
    shapes, elsewhere = [], []

    def note(x: torch.Tensor) -> None:
        shapes.append(tuple(x.shape))
        elsewhere.append(current_thread() is not main_thread())

    over_directions(note, torch.zeros(2, 3))
    assert shapes == ([(2, 3)] if threads == 1 else [(3,), (3,)])
    assert elsewhere == ([False] if threads == 1 else [True, True])


@pytest.mark.parametrize("direction", [0, 1])
def test_an_error_in_either_direction_reaches_the_caller(threads: int, direction: int) -> None:
    def fail(x: torch.Tensor) -> None:
        if threads == 1 or x.item() == direction:
            raise ValueError(f"direction {direction}")

    with pytest.raises(ValueError, match=f"^direction {direction}$"):
        over_directions(fail, torch.tensor([0.0, 1.0]))


@pytest.mark.usefixtures("threads")
def test_the_mode_of_the_caller_holds_in_the_threads() -> None:
    modes = []

    def note(x: torch.Tensor) -> None:
        modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))

    with torch.no_grad():
        over_directions(note, torch.zeros(2))
    with torch.inference_mode():
        over_directions(note, torch.zeros(2))
    assert set(modes) == {(False, False), (True, False)}


def test_only_the_two_threads_compute_with_one_thread_each() -> None:
    torch.set_num_threads(2)
    directions._threads.cache_clear()  # so that they are started in this test
    inside = []
    over_directions(lambda x: inside.append(torch.get_num_threads()), torch.zeros(2))
    with ThreadPoolExecutor(1) as pool:
        started_later = pool.submit(torch.get_num_threads).result()
    assert (inside, torch.get_num_threads(), started_later) == ([1, 1], 2, 2)
