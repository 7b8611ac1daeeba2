"""The biLM with its softmax: what training minimises and perplexity measures."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.packing import pack
from elmo_cli.bilm.softmax import Negatives, Softmax
from elmo_cli.config import BiLMConfig

_TYPES_AT_ONCE = 512  # through the char CNN, when measuring: one sentence may have tens of thousands


@dataclass(frozen=True, slots=True)
class Batch:
    """Whole sentences, their markers among the tokens, laid end to end.

    Attributes:
        chars: character ids of the distinct word types of the batch.
        tokens: row of ``chars`` of each token.
        targets: vocabulary id of each token.
        lengths: tokens of each sentence, markers included.
    """

    chars: Int[Tensor, "types chars"]
    tokens: Int[Tensor, " marked"]
    targets: Int[Tensor, " marked"]
    lengths: tuple[int, ...]

    def to(self, device: torch.device) -> "Batch":
        """Return the same batch on ``device``."""
        return Batch(self.chars.to(device), self.tokens.to(device), self.targets.to(device), self.lengths)


class LanguageModel(nn.Module):
    """A biLM and the softmax that both of its directions share.

    Args:
        config: shape of the biLM.
        vocabulary_size: word types of the softmax, the special ones included.
        dropout: rate while training.
        sparse: whether the softmax's gradient holds only the rows a step used.
    """

    def __init__(self, config: BiLMConfig, vocabulary_size: int, *, dropout: float = 0.0, sparse: bool = False) -> None:
        super().__init__()
        self.bilm = BiLM(config, dropout=dropout)
        self.softmax = Softmax(vocabulary_size, config.lstm.projection_dim, sparse=sparse)

    def losses(
        self, batch: Batch, negatives: tuple[Negatives, Negatives] | None = None
    ) -> tuple[Float[Tensor, " targets"], Float[Tensor, " targets"]]:
        """Return the loss in nats of each forward and each backward target.

        A sentence of n tokens has n + 1 targets a direction: forward its tokens and ``</S>``, backward its tokens
        and ``<S>``. Without ``negatives`` (forward's and backward's) the losses are negative log-likelihoods under
        the full softmax.
        """
        packing = pack(batch.lengths).to(batch.tokens.device)
        # A frozen biLM keeps nothing for a backward pass that never comes.
        learns = any(parameter.requires_grad for parameter in self.bilm.parameters())
        with torch.set_grad_enabled(torch.is_grad_enabled() and learns):
            types = self._type_vectors(batch.chars)
            # As an embedding look-up, whose gradient adds up a type's occurrences faster than indexing's does.
            x = nn.functional.embedding(batch.tokens[packing.order], types)
            forward, backward = self.bilm.language_model_states(x, packing)
        targets = batch.targets[packing.order]
        first = packing.sentence_count
        forward, forward_targets = forward.index_select(0, packing.previous), targets[first:]
        backward, backward_targets = backward[first:], targets[packing.previous]
        if negatives is None:
            return (
                self.softmax.full_loss(forward, forward_targets),
                self.softmax.full_loss(backward, backward_targets),
            )
        return (
            self.softmax.sampled_loss(forward, forward_targets, negatives[0]),
            self.softmax.sampled_loss(backward, backward_targets, negatives[1]),
        )

    def _type_vectors(self, chars: Int[Tensor, "types chars"]) -> Float[Tensor, "types dim"]:
        """Return the token encoder's output; without a gradient to come, so many types at a time as memory allows."""
        encode = self.bilm.token_encoder
        if torch.is_grad_enabled() or len(chars) <= _TYPES_AT_ONCE:
            return encode(chars)
        return torch.cat([encode(part) for part in chars.split(_TYPES_AT_ONCE)])
