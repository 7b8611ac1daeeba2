"""The softmax over word types that both directions share, whole for measuring and sampled for training."""

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

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
        losses = [self._block_loss(*parts) for parts in zip(h.split(rows), targets.split(rows), strict=True)]
        return torch.cat(losses) if losses else h.new_zeros(0)

    def _block_loss(self, h: Float[Tensor, "rows dim"], targets: Int[Tensor, " rows"]) -> Float[Tensor, " rows"]:
        logits = torch.addmm(self.bias, h, self.weight.t())
        if torch.is_grad_enabled():
            return nn.functional.cross_entropy(logits, targets, reduction="none")
        # The same in place: without a gradient to come, nothing but one number a row has to be kept.
        own = logits.gather(1, targets[:, None])
        largest = logits.amax(dim=1, keepdim=True)
        return (logits.sub_(largest).exp_().sum(dim=1, keepdim=True).log_() + largest - own).squeeze(1)

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
        bias = self.bias[ids]  # one number a type: a dense gradient costs nothing
        own, others = weight[: len(targets)], weight[len(targets) :]
        corrected = bias - negatives.log_expected_counts(ids)
        own_logits = (h * own).sum(dim=1, keepdim=True) + corrected[: len(targets), None]
        other_logits = torch.addmm(corrected[len(targets) :], h, others.t())
        other_logits = other_logits.masked_fill(targets[:, None] == negatives.ids, float("-inf"))
        logits = torch.cat((own_logits, other_logits), dim=1)
        return logits.logsumexp(dim=1) - own_logits.squeeze(1)


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
