"""The softmax over word types that both directions share, whole for measuring and sampled for training."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from elmo_cli.bilm.sampled_loss import SampledLoss

_BLOCK_LOGITS = 1 << 21  # logits held at once by the full softmax: 8 MB, for which the allocator asks no new pages


class Softmax(nn.Module):
    """``log softmax(h W^T + b)``, with W [vocabulary, dim].

    Args:
        vocabulary_size: number of word types, the three special ones included.
        dim: width of the LSTM's output.
        sparse: whether the gradient of W holds only the rows that a step used.
    """

    def __init__(self, vocabulary_size: int, dim: int, *, sparse: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocabulary_size, dim))
        self.bias = nn.Parameter(torch.empty(vocabulary_size))
        self.sparse = sparse

    def initialise(self, generator: torch.Generator, log_frequencies: Float[Tensor, " vocabulary"]) -> None:
        """Draw W from N(0, 1/dim) as bilm-tf does, and start b at the types' log relative frequencies.

        With that bias an untrained model predicts the unigram distribution, instead of having to learn it first.
        """
        nn.init.normal_(self.weight, std=self.weight.shape[1] ** -0.5, generator=generator)
        with torch.no_grad():
            self.bias.copy_(log_frequencies)

    def full_loss(self, h: Float[Tensor, "rows dim"], targets: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        """Return the negative log-likelihood in nats of each target, over the whole vocabulary."""
        rows = max(1, _BLOCK_LOGITS // self.weight.shape[0])
        if torch.is_grad_enabled():
            blocks = zip(h.split(rows), targets.split(rows), strict=True)
            losses = [nn.functional.cross_entropy(self._logits(part), own, reduction="none") for part, own in blocks]
            return torch.cat(losses) if losses else h.new_zeros(0)
        return self._measured_loss(h, targets, rows)

    def _logits(self, h: Float[Tensor, "rows dim"]) -> Float[Tensor, "rows vocabulary"]:
        return torch.addmm(self.bias, h, self.weight.t())

    def _measured_loss(
        self, h: Float[Tensor, "rows dim"], targets: Int[Tensor, " rows"], block_rows: int
    ) -> Float[Tensor, " rows"]:
        """Return the same in place: without a gradient to come, nothing but one number a row has to be kept.

        One buffer serves all blocks. Freed and asked for anew, they would leave holes between the small tensors that
        stay, and memory would grow with the text.
        """
        losses = h.new_empty(len(h))
        buffer = h.new_empty(min(block_rows, len(h)), self.weight.shape[0])
        for start in range(0, len(h), block_rows):
            part = slice(start, start + block_rows)
            logits = torch.addmm(self.bias, h[part], self.weight.t(), out=buffer[: len(h[part])])
            own = logits.gather(1, targets[part, None])
            largest = logits.amax(dim=1, keepdim=True)
            logs = logits.sub_(largest).exp_().sum(dim=1, keepdim=True).log_()
            losses[part] = (logs + largest - own).squeeze(1)
        return losses

    def sampled_loss(
        self, h: Float[Tensor, "rows dim"], targets: Int[Tensor, " rows"], negatives: "Negatives"
    ) -> Float[Tensor, " rows"]:
        """Return the sampled-softmax loss of each target against negatives that all rows share.

        Logits are corrected by the log of the expected count of each candidate in the sample; a negative that is the
        row's own target is left out of that row (Jean et al. 2015, as in TensorFlow's ``sampled_softmax_loss``).
        The loss is smaller than the true negative log-likelihood and must never be reported as a perplexity.
        """
        ids = torch.cat((targets, negatives.ids))
        # One look-up for both, so that a sparse gradient has to be put together only once.
        weight = nn.functional.embedding(ids, self.weight, sparse=self.sparse)
        # One number a type: a dense gradient costs nothing.
        corrected = self.bias[ids] - negatives.log_expected_counts(ids)
        count = len(targets)
        hits = negatives.hits(targets)
        loss: Tensor = SampledLoss.apply(  # type: ignore[no-untyped-call]
            h, weight[:count], weight[count:], corrected[:count], corrected[count:], hits
        )
        return loss


@dataclass(frozen=True, slots=True)
class Negatives:
    """Distinct word types drawn without replacement from a log-uniform distribution.

    Attributes:
        ids: the types drawn.
        tries: draws it took until they were all distinct.
        vocabulary_size: number of types drawn from.
    """

    ids: Int[Tensor, " negatives"]
    tries: int
    vocabulary_size: int

    def to(self, device: torch.device) -> "Negatives":
        """Return the same sample on ``device``."""
        return Negatives(self.ids.to(device), self.tries, self.vocabulary_size)

    def hits(self, targets: Int[Tensor, " rows"]) -> tuple[Int[Tensor, " hits"], Int[Tensor, " hits"]]:
        """Return the rows whose target is among the negatives, and which negative it is."""
        ordered, order = self.ids.sort()
        place = torch.searchsorted(ordered, targets).clamp_max_(len(ordered) - 1)
        rows = (ordered[place] == targets).nonzero().squeeze(1)
        return rows, order[place[rows]]

    def log_expected_counts(self, ids: Int[Tensor, " ids"]) -> Float[Tensor, " ids"]:
        """Return ``ln(1 - (1 - p)^tries)``, the log of the chance that each type is in such a sample."""
        # As log1p and expm1, float32 loses nothing, although p may be far below its rounding of 1.
        p = torch.log1p(1 / (ids + 1).float()) / math.log(self.vocabulary_size + 1)
        return (-torch.expm1(self.tries * torch.log1p(-p))).log()


def draw_negatives(vocabulary_size: int, count: int, random: np.random.Generator) -> Negatives:
    """Draw ``count`` distinct types with ``p(k) = ln((k + 2) / (k + 1)) / ln(V + 1)``.

    The distribution suits a vocabulary that is sorted by falling frequency. Drawn again and again until ``count``
    are distinct, as TensorFlow's candidate sampler does.
    """
    if count >= vocabulary_size:
        raise ValueError(f"cannot draw {count} distinct types out of {vocabulary_size}; use the full softmax")
    drawn: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
    while True:
        fresh = np.exp(random.random(2 * count) * math.log(vocabulary_size + 1)).astype(np.int64) - 1
        # Rounding may reach V itself at the very end of the range.
        drawn = np.concatenate((drawn, fresh.clip(0, vocabulary_size - 1)))
        first_seen = np.sort(np.unique(drawn, return_index=True)[1])
        if len(first_seen) >= count:
            kept = first_seen[:count]
            return Negatives(torch.from_numpy(drawn[kept]), int(kept[-1]) + 1, vocabulary_size)
