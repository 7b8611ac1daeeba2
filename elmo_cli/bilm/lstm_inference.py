"""One direction of a layer for inference on a CPU: the gates in one product a step, its weights prepared once.

Same arithmetic as `lstm`, arranged for speed. While many sentences are alive, input and hidden state of a step are
multiplied together by one weight, so that bias and sigmoid come with the product (see `products.prepare_gates`). When
few sentences are left, `lstm` goes on.
"""

from collections.abc import Sequence
from functools import cached_property, partial

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.products import Product, fewest_rows, prepare_gates, prepare_product
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
        self.weights = (input_weight, recurrent_weight, bias, projection)
        self.clips = clips
        self._precision = precision

    def wide_steps(self, step_sizes: Sequence[int]) -> int:
        """Return for how many time steps, from the first on, `run` is the faster way."""
        input_weight, recurrent_weight, _, _ = self.weights
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
        start = 0
        for size in step_sizes:
            rows = slice(start, start + size)
            gates = self._gates(torch.cat((x[rows], hidden[:size]), dim=1))
            # In place, so that a sentence that has ended keeps what it ended with.
            hidden[:size] = output[rows] = self._advance(gates, cell[:size])
            start += size

    def _advance(self, gates: Float[Tensor, "rows gates"], c: Float[Tensor, "rows cell"]) -> Float[Tensor, "rows dim"]:
        """Return the hidden state after a step, from gates that have been activated; ``c`` is changed in place."""
        cell_clip, projection_clip = self.clips
        i, f, o, j = gates.split(c.shape[1], dim=1)
        c.mul_(f).addcmul_(i, j, value=2).sub_(i)
        if cell_clip is not None:
            c.clamp_(-cell_clip, cell_clip)
        h = torch.mul(c, 2).sigmoid_().mul_(2).sub_(1).mul_(o)
        if self._project is not None:
            h = self._project(h)
            if projection_clip is not None:
                h.clamp_(-projection_clip, projection_clip)
        return h

    @cached_property
    def _gates(self) -> Product:
        input_weight, recurrent_weight, bias, _ = self.weights
        return prepare_gates(input_weight, recurrent_weight, bias, self._precision)

    @cached_property
    def _project(self) -> Product | None:
        projection = self.weights[3]
        if projection is None:
            return None
        if self._precision == "float32":  # a weight this narrow gains nothing by a layout of its own
            return partial(torch.matmul, other=projection)
        return prepare_product(projection, None, self._precision)
