"""Both directions of a layer at once: as one stacked computation, or each in a thread of its own.

A time step of an LSTM is too small to be shared out: two threads inside one product spend their time waiting for each
other. The two directions, however, have nothing to wait for until a layer ends, so on a CPU each gets one thread. On a
GPU one batched computation serves both.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier
from types import EllipsisType

import torch
from torch import Tensor

Direction = int | EllipsisType  # an index into axis 0: of one direction, or ``...`` for both


def each_direction(compute: Callable[[Direction], None], device: torch.device) -> None:
    """Run ``compute``, without gradients, for both directions, at once if it can be done.

    Args:
        compute: takes 0, then 1, perhaps in two threads; on a GPU it is called once, with ``...``.
        device: on which it computes.
    """
    if device.type != "cpu":
        compute(...)
        return
    if torch.get_num_threads() == 1:
        for direction in (0, 1):
            compute(direction)
        return
    inference = torch.is_inference_mode_enabled()

    def in_thread(direction: int) -> None:
        # Both modes belong to a thread, so they have to be set anew in this one.
        with torch.inference_mode(inference), torch.no_grad():
            compute(direction)

    list(_threads().map(in_thread, (0, 1)))  # a list, so that an exception of either is raised here


@cache
def _threads() -> ThreadPoolExecutor:
    """Return two threads whose arithmetic uses no further ones."""
    count = torch.get_num_threads()
    pool = ThreadPoolExecutor(2, thread_name_prefix="direction", initializer=_compute_alone)
    both = Barrier(2)  # a pool starts no second thread while its first one is idle
    list(pool.map(lambda _: both.wait(), range(2)))
    torch.set_num_threads(count)  # what the two set is also the default of threads to come
    return pool


def _compute_alone() -> None:
    """Let the arithmetic of the calling thread use no further ones."""
    torch.get_num_threads()  # a thread's first call takes over the default, and would later undo the next line
    torch.set_num_threads(1)


def add_product(base: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return ``base + a @ b`` for matrices, or for pairs of them."""
    return torch.addmm(base, a, b) if a.dim() == 2 else torch.baddbmm(base, a, b)


def add_product_(base: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Add ``a @ b`` to ``base`` in place, for matrices or for pairs of them."""
    return base.addmm_(a, b) if a.dim() == 2 else base.baddbmm_(a, b)
