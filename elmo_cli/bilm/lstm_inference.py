"""One direction of a layer for inference on a CPU: the gates in one product a step, its weights prepared once.

Same arithmetic as `lstm`, arranged for speed. While many sentences are alive, input and hidden state of a step are
multiplied together by one weight, so that bias and sigmoid come with the product. As ``tanh(j) = 2 sigmoid(2 j) - 1``,
one sigmoid serves all four gates (torch's tanh takes three times as long). When few sentences are left, `lstm` goes on.
"""

from collections.abc import Sequence
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.products import Product, fewest_rows, prepare_product
from elmo_cli.config import Precision


class PreparedDirection:
    """The weights of one direction of a layer, laid out when the first large batch comes.

    Args:
        input_weight: in float32, like all others; none may change afterwards.
        recurrent_weight: of the hidden state.
        bias: as at run time, with the forget gate's offset.
        projection: of the cell's output; None where there is none.
        clips: bounds of the cell and of a projected state; None for no clipping.
        precision: of the products.
    """

    def __init__(
        self,
        input_weight: Float[Tensor, "dim gates"],
        recurrent_weight: Float[Tensor, "dim gates"],
        bias: Float[Tensor, " gates"],
        projection: Float[Tensor, "cell dim"] | None,
        clips: tuple[float | None, float | None],
        precision: Precision,
    ) -> None:
        self._weights = (input_weight, recurrent_weight, bias)
        self._projection = projection
        self._cell_clip, self._projection_clip = clips
        self._precision = precision
        self._cell_dim = bias.shape[0] // 4

    def wide_steps(self, step_sizes: Sequence[int]) -> int:
        """Return for how many time steps, from the first on, `run` is the faster way."""
        input_weight, recurrent_weight, _ = self._weights
        fewest = fewest_rows(self._precision, 4 * (input_weight.numel() + recurrent_weight.numel()))
        return sum(size >= fewest for size in step_sizes)

    def run(
        self,
        x: Float[Tensor, "rows dim"],
        step_sizes: Sequence[int],
        output: Float[Tensor, "rows dim"],
        hidden: Float[Tensor, "sentences dim"],
        cell: Float[Tensor, "sentences cell"],
    ) -> None:
        """Compute some time steps into ``output``, from a state that is overwritten by where each sentence ends."""
        h, c = hidden, cell
        start = 0
        for size in step_sizes:
            rows = slice(start, start + size)
            gates = self._gates(torch.cat((x[rows], h[:size]), dim=1))
            h, c = self._advance(gates, c[:size])
            output[rows] = h
            hidden[:size], cell[:size] = h, c  # a sentence that has ended keeps what it ended with
            start += size

    def _advance(
        self, gates: Float[Tensor, "rows gates"], c: Float[Tensor, "rows cell"]
    ) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows cell"]]:
        """Return the hidden state and the cell after a step, from gates that have been activated."""
        i, f, o, j = gates.split(self._cell_dim, dim=1)
        c = (c * f).addcmul_(i, j, value=2).sub_(i)
        if self._cell_clip is not None:
            c.clamp_(-self._cell_clip, self._cell_clip)
        h = torch.mul(c, 2).sigmoid_().mul_(2).sub_(1).mul_(o)
        if self._project is not None:
            h = self._project(h)
            if self._projection_clip is not None:
                h.clamp_(-self._projection_clip, self._projection_clip)
        return h, c

    @cached_property
    def _gates(self) -> Product:
        input_weight, recurrent_weight, bias = self._weights
        scale = torch.ones_like(bias)
        scale[3 * self._cell_dim :] = 2  # of the candidate j
        weight = torch.cat((input_weight, recurrent_weight)).mul_(scale)
        return prepare_product(weight, bias * scale, self._precision, sigmoid=True)

    @cached_property
    def _project(self) -> Product | None:
        if self._projection is None:
            return None
        if self._precision == "float32":  # a weight this narrow gains nothing by a layout of its own
            return partial(torch.matmul, other=self._projection)
        return prepare_product(self._projection, None, self._precision)
