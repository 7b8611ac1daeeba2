"""Both directions stacked, or each in a thread of its own: the same to the caller."""

from concurrent.futures import ThreadPoolExecutor
from threading import current_thread, main_thread

import pytest
import torch

from elmo_cli.bilm import directions
from elmo_cli.bilm.directions import Direction, each_direction

CPU = torch.device("cpu")


@pytest.fixture(params=[1, 2], ids=["one thread", "two threads"])
def threads(request: pytest.FixtureRequest) -> int:
    torch.set_num_threads(request.param)  # the fixtures of all tests set it back
    return request.param


@pytest.mark.usefixtures("threads")
def test_results_of_both_directions_are_written() -> None:
    x, output = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.zeros(2, 2)

    def double(direction: Direction) -> None:
        output[direction] = 2 * x[direction]

    each_direction(double, CPU)
    assert torch.equal(output, 2 * x)


def test_a_thread_serves_both_directions_only_where_there_is_one(threads: int) -> None:
    elsewhere = []

    def note(direction: Direction) -> None:
        elsewhere.append((direction, current_thread() is not main_thread()))

    each_direction(note, CPU)
    assert sorted(elsewhere) == [(0, threads == 2), (1, threads == 2)]


def test_elsewhere_one_call_serves_both() -> None:
    called = []
    each_direction(called.append, torch.device("meta"))
    assert called == [...]


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("direction", [0, 1])
def test_an_error_in_either_direction_reaches_the_caller(direction: int) -> None:
    def fail(running: Direction) -> None:
        if running == direction:
            raise ValueError(f"direction {direction}")

    with pytest.raises(ValueError, match=f"^direction {direction}$"):
        each_direction(fail, CPU)


@pytest.mark.usefixtures("threads")
def test_the_mode_of_the_caller_holds_in_the_threads() -> None:
    modes = []

    def note(direction: Direction) -> None:
        modes.append((torch.is_inference_mode_enabled(), torch.is_grad_enabled()))

    with torch.no_grad():
        each_direction(note, CPU)
    with torch.inference_mode():
        each_direction(note, CPU)
    assert set(modes) == {(False, False), (True, False)}


def test_only_the_two_threads_compute_with_one_thread_each() -> None:
    torch.set_num_threads(2)
    directions._threads.cache_clear()  # so that they are started in this test
    inside = []
    each_direction(lambda direction: inside.append(torch.get_num_threads()), CPU)
    with ThreadPoolExecutor(1) as pool:
        started_later = pool.submit(torch.get_num_threads).result()
    assert (inside, torch.get_num_threads(), started_later) == ([1, 1], 2, 2)
