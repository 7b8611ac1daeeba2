"""Both directions of a layer for inference on a GPU: a time step as one recorded graph, in 16 bits if asked.

Same arithmetic as `lstm`. A step is a dozen small kernels, and launching them takes a GPU longer than running them. So
the step is recorded once for each width, on buffers that stay, and replayed by a single launch; widths are rounded up,
so that a batch needs few of them. What stands in the surplus rows is never read. On a device that records no graphs
the same step is called as it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.directions import add_product
from elmo_cli.config import Precision

_DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
_WARM_UP = 3  # calls before a recording, in which libraries set themselves up


@dataclass(frozen=True, slots=True)
class _Step:
    """A width's buffers and what runs a step on them.

    Attributes:
        inputs: [2, width, 2 * dim], the layer's input, then the hidden state, which a step overwrites.
        cells: [2, width, cell], overwritten, too; float32.
        run: computes a step.
    """

    inputs: Tensor
    cells: Tensor
    run: Callable[[], None]


class PreparedPair:
    """A layer's weights on a device, and its recorded steps.

    Args:
        input_weight: in float32, like all others; none may change afterwards.
        recurrent_weight: of the hidden state.
        bias: as at run time, with the forget gate's offset.
        projection: of the cell's output; None where there is none.
        clips: bounds of the cell and of a projected state; None for no clipping.
        precision: of the products; cells stay in float32.
    """

    def __init__(
        self,
        input_weight: Float[Tensor, "2 dim gates"],
        recurrent_weight: Float[Tensor, "2 dim gates"],
        bias: Float[Tensor, "2 gates"],
        projection: Float[Tensor, "2 cell dim"] | None,
        clips: tuple[float | None, float | None],
        precision: Precision,
    ) -> None:
        dtype = _DTYPES[precision]
        self._weight = torch.cat((input_weight, recurrent_weight), dim=1).to(dtype)
        self._bias = bias.unsqueeze(1).to(dtype)
        self._projection = None if projection is None else projection.to(dtype)
        self._clips = clips
        self._cell_dim = bias.shape[1] // 4
        self._steps: dict[int, _Step] = {}

    def run(
        self,
        x: Float[Tensor, "2 rows dim"],
        step_sizes: Sequence[int],
        hidden: Float[Tensor, "2 sentences dim"],
        cell: Float[Tensor, "2 sentences cell"],
    ) -> Float[Tensor, "2 rows dim"]:
        """Return the hidden states; the state is started from and overwritten by where each sentence ends."""
        dim = x.shape[-1]
        output = torch.empty_like(x)
        step: _Step | None = None
        start = 0
        for size in step_sizes:
            rows = slice(start, start + size)
            needed = self._step(_rounded_up(size))
            if needed is not step:
                needed.inputs[:, :size, dim:], needed.cells[:, :size] = hidden[:, :size], cell[:, :size]
                step = needed
            step.inputs[:, :size, :dim] = x[:, rows]
            step.run()
            output[:, rows] = hidden[:, :size] = step.inputs[:, :size, dim:]
            cell[:, :size] = step.cells[:, :size]
            start += size
        return output

    def _step(self, width: int) -> _Step:
        if width not in self._steps:
            inputs = self._weight.new_zeros(2, width, self._weight.shape[1])
            cells = torch.zeros(2, width, self._cell_dim, device=inputs.device)
            self._steps[width] = _Step(inputs, cells, _recorded(partial(self._advance, inputs, cells), inputs.device))
        return self._steps[width]

    def _advance(self, inputs: Float[Tensor, "2 width both"], cells: Float[Tensor, "2 width cell"]) -> None:
        """Compute a step in place."""
        cell_clip, projection_clip = self._clips
        gates = add_product(self._bias, inputs, self._weight).float()
        sigmoids, j = gates.split((3 * self._cell_dim, self._cell_dim), dim=-1)
        i, f, o = sigmoids.sigmoid_().chunk(3, dim=-1)
        cells.mul_(f).addcmul_(i, j.tanh_())
        if cell_clip is not None:
            cells.clamp_(-cell_clip, cell_clip)
        h = torch.tanh(cells).mul_(o).to(inputs.dtype)
        if self._projection is not None:
            h = torch.bmm(h, self._projection)
            if projection_clip is not None:
                h.clamp_(-projection_clip, projection_clip)
        inputs[..., inputs.shape[-1] - h.shape[-1] :] = h


def _rounded_up(size: int) -> int:
    """Return the width that serves a step of ``size`` rows: at most a sixteenth more from 256 rows on."""
    grain = max(16, 1 << max(0, size.bit_length() - 5))
    return -(-size // grain) * grain


def _recorded(step: Callable[[], None], device: torch.device) -> Callable[[], None]:
    """Return a graph's replay that does what ``step`` does, or the step itself where there are no graphs."""
    if device.type != "cuda":
        return step
    beside = torch.cuda.Stream(device)
    beside.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(beside):
        for _ in range(_WARM_UP):
            step()
    torch.cuda.current_stream(device).wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay
