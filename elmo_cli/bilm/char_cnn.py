"""The token encoder: a word type's characters to one vector, whatever its neighbours are."""

from typing import Any, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_cli.bilm.highway import Highway
from elmo_cli.config import CharCNNConfig
from elmo_cli.text.characters import CHARACTER_COUNT, PADDING


class CharCNN(nn.Module):
    """Characters -> convolutions -> max over positions -> activation -> highway -> projection.

    Peters et al. (2018), section 3.4, with the order of operations of bilm-tf. The projection is left out where
    it would not change the width (``filter_count == output_dim``).

    Args:
        config: shape of the encoder.
        output_dim: width of a token's vector, the LSTM's projection size.
    """

    def __init__(self, config: CharCNNConfig, output_dim: int) -> None:
        super().__init__()
        self.config = config
        # Made of a tensor: to draw values for one without storage, as loading would, torch loads its compiler (1.3 s).
        self.embedding = nn.Embedding.from_pretrained(torch.empty(CHARACTER_COUNT, config.embedding_dim), freeze=False)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(config.embedding_dim, count, width) for width, count in config.filters
        )
        self.highways = nn.ModuleList(Highway(config.filter_count) for _ in range(config.highway_layers))
        projected = config.filter_count != output_dim
        self.projection = nn.Linear(config.filter_count, output_dim) if projected else None

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the weights as bilm-tf does; all biases start at 0 but the highway gates'."""
        nn.init.uniform_(self.embedding.weight, -1.0, 1.0, generator=generator)
        for convolution in cast(list[nn.Conv1d], self.convolutions):
            if self.config.activation == "relu":
                nn.init.uniform_(convolution.weight, -0.05, 0.05, generator=generator)
            else:
                fan_in = convolution.weight[0].numel()
                nn.init.normal_(convolution.weight, std=fan_in**-0.5, generator=generator)
            if convolution.bias is not None:
                nn.init.zeros_(convolution.bias)
        for highway in cast(list[Highway], self.highways):
            highway.initialise(generator)
        if self.projection is not None:
            nn.init.normal_(self.projection.weight, std=self.config.filter_count**-0.5, generator=generator)
            nn.init.zeros_(self.projection.bias)

    def forward(self, chars: Int[Tensor, "types chars"]) -> Float[Tensor, "types dim"]:
        """Return one vector for each row of character ids.

        Args:
            chars: ids 0..260 of each type, padded to the model's ``max_characters``.
        """
        x = self.embedding(self._without_idle_padding(chars))
        pooled = [_largest_response(x, convolution) for convolution in cast(list[nn.Conv1d], self.convolutions)]
        # The activation is monotone, so it may follow the maximum, where it has fewer values to work on.
        h = torch.cat(pooled, dim=1)
        h = torch.relu(h) if self.config.activation == "relu" else torch.tanh(h)
        for highway in self.highways:
            h = highway(h)
        return h if self.projection is None else self.projection(h)

    def _without_idle_padding(self, chars: Int[Tensor, "types chars"]) -> Int[Tensor, "types chars2"]:
        """Cut columns that cannot change the result.

        Past the longest word all windows read padding alone and give one and the same value, so one such window of
        each filter is enough: as many columns of padding stay as the widest filter has.
        """
        used = (chars != PADDING).any(dim=0)
        longest = int(used.nonzero()[-1]) + 1 if bool(used.any()) else 0
        widest = max(width for width, _ in self.config.filters)
        return chars[:, : longest + widest]


def _largest_response(
    x: Float[Tensor, "types chars embedding"], convolution: nn.Conv1d
) -> Float[Tensor, "types filters"]:
    """Return the maximum over positions of each filter of one width.

    As one matrix product over all windows. `torch.conv1d` on a CPU prepares a kernel for every new shape of input and
    keeps it, and here nearly every batch has a new shape: that cost a third more time, and gigabytes in a long run.
    """
    types, chars, embedding = x.shape
    count, _, width = convolution.weight.shape
    positions = chars - width + 1
    strides = (chars * embedding, embedding, 1)
    windows = x.contiguous().as_strided((types, positions, width * embedding), strides).reshape(-1, width * embedding)
    weight = convolution.weight.permute(2, 1, 0).reshape(width * embedding, count)
    responses = windows @ weight if convolution.bias is None else torch.addmm(convolution.bias, windows, weight)
    responses = responses.view(types, positions, count)
    return cast(Tensor, _Largest.apply(responses)) if responses.requires_grad else responses.amax(dim=1)  # type: ignore[no-untyped-call]


class _Largest(torch.autograd.Function):
    """``apply(responses)``: [types, positions, filters] -> [types, filters], the largest over the positions.

    Positions with one and the same largest value share its gradient, as in `torch.amax`, whose own backward pass counts
    them in int64 and takes as long as an LSTM layer's.
    """

    @staticmethod
    def forward(ctx: Any, responses: Float[Tensor, "types positions filters"]) -> Float[Tensor, "types filters"]:  # noqa: ANN401
        """Return the largest; keep the responses."""
        largest = responses.amax(dim=1)
        ctx.save_for_backward(responses, largest)
        return largest

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Float[Tensor, "types positions filters"]:  # noqa: ANN401
        """Give each largest value's gradient to the positions that have it."""
        responses, largest = ctx.saved_tensors
        hits = torch.eq(responses, largest.unsqueeze(1), out=torch.empty_like(responses))
        shares = gradients[0] / hits.sum(dim=1)
        return hits.mul_(shares.unsqueeze(1))
