"""Both directions of a layer at once: as one stacked computation, or each in a thread of its own.

A time step of an LSTM is too small to be shared out: two threads inside one product spend their time waiting for each
other. The two directions, however, have nothing to wait for until a layer ends, so on a CPU each gets one thread. On a
GPU, and where there is one thread, one batched computation serves both.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Barrier

import torch
from torch import Tensor


def over_directions(compute: Callable[..., None], *tensors: Tensor | None) -> None:
    """Run ``compute`` over tensors whose axis 0 is the direction; it writes its results into some of them.

    Args:
        compute: takes the tensors either whole or as one direction's slices, which lack axis 0.
        tensors: [2, ...], or None for what a layer does not have.
    """
    first = tensors[0]
    if first is None or first.device.type != "cpu" or torch.get_num_threads() == 1:
        compute(*tensors)
        return
    inference = torch.is_inference_mode_enabled()

    def one_direction(direction: int) -> None:
        # Both modes belong to a thread, so they have to be set anew in this one.
        with torch.inference_mode(inference), torch.no_grad():
            compute(*(None if tensor is None else tensor[direction] for tensor in tensors))

    list(_threads().map(one_direction, (0, 1)))  # a list, so that an exception of either is raised here


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
