"""Sentences of different lengths in one flat tensor, time step by time step, without any padding."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Packing:
    """Where each token of a batch lies when the batch is laid out by time step.

    Sentences are sorted by falling length, so the rows alive at a time step are always the first ones, and a
    finished sentence costs nothing. Row ``r`` of a packed tensor is the token that stands at ``order[r]`` when the
    sentences lie end to end as given.

    Attributes:
        step_sizes: number of sentences that have a token at each time step, falling.
        order: position in the end-to-end layout of each packed row.
        reverse: packed row that stands mirrored in the same sentence: the reading order of the backward LM.
            It is its own inverse.
        previous: for each packed row after the first time step, the row of the same sentence one step before. Row
            ``step_sizes[0] + k`` follows row ``previous[k]``.
        columns: number of the sentence, as given, whose tokens stand in each column (the first row of a time step is
            column 0): the sentences by falling length.
    """

    step_sizes: tuple[int, ...]
    order: Int[Tensor, " rows"]
    reverse: Int[Tensor, " rows"]
    previous: Int[Tensor, " later"]
    columns: Int[Tensor, " sentences"]

    @property
    def sentence_count(self) -> int:
        """Number of sentences, which is the number of rows of the first time step."""
        return self.step_sizes[0] if self.step_sizes else 0

    def to(self, device: torch.device) -> "Packing":
        """Return the same packing with its index tensors on ``device``."""
        indices = (self.order, self.reverse, self.previous, self.columns)
        return Packing(self.step_sizes, *(index.to(device) for index in indices))


def pack(lengths: Sequence[int]) -> Packing:
    """Lay out sentences of the given lengths (each at least 1), which lie end to end in this order."""
    if not lengths:
        empty = torch.zeros(0, dtype=torch.int64)
        return Packing((), empty, empty, empty, empty)
    given = torch.tensor(lengths, dtype=torch.int64)
    if int(given.min()) < 1:
        raise ValueError("a packed sentence needs at least one token; markers make every sentence two longer")
    starts = given.cumsum(0) - given
    by_length, sentence = torch.sort(given, descending=True, stable=True)
    longest = int(by_length[0])
    # The number of sentences longer than t, for each t.
    ended = torch.bincount(by_length, minlength=longest + 1).cumsum(0)
    step_sizes = len(lengths) - ended[:longest]
    step_starts = step_sizes.cumsum(0) - step_sizes
    step = torch.repeat_interleave(torch.arange(longest), step_sizes)
    column = torch.arange(step.numel()) - step_starts[step]
    order = starts[sentence][column] + step
    reverse = step_starts[by_length[column] - 1 - step] + column
    later = slice(len(lengths), None)
    previous = step_starts[step[later] - 1] + column[later]
    return Packing(tuple(step_sizes.tolist()), order, reverse, previous, sentence)
