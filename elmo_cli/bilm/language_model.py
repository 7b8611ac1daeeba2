"""The biLM with its softmax: what training minimises and perplexity measures."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.lstm import LSTMState
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


@dataclass(frozen=True, slots=True)
class StreamBatch:
    """A window of several streams of text, each direction's with a text of its own.

    Axis 0 is the direction, 0 forward and 1 backward, whose sentences run backward. Rows are those of time step 0 of
    all streams, then those of time step 1, and so on.

    Attributes:
        chars: character ids of the distinct word types of both directions.
        tokens: row of ``chars`` of each token read.
        targets: vocabulary id of the token that follows it in its stream's reading order.
        streams: number of streams.
    """

    chars: Int[Tensor, "types chars"]
    tokens: Int[Tensor, "2 rows"]
    targets: Int[Tensor, "2 rows"]
    streams: int

    def to(self, device: torch.device) -> "StreamBatch":
        """Return the same batch on ``device``."""
        return StreamBatch(self.chars.to(device), self.tokens.to(device), self.targets.to(device), self.streams)


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
            forward, backward = map(_whole, self.bilm.language_model_states(x, packing))
        targets = batch.targets[packing.order]
        first = packing.sentence_count
        forward, forward_targets = forward.index_select(0, packing.previous), targets[first:]
        backward, backward_targets = backward[first:], targets[packing.previous]
        return self._losses((forward, backward), (forward_targets, backward_targets), negatives)

    def stream_losses(
        self, batch: StreamBatch, states: Sequence[LSTMState], negatives: tuple[Negatives, Negatives] | None = None
    ) -> tuple[Float[Tensor, " rows"], Float[Tensor, " rows"]]:
        """Return the loss in nats of each forward and each backward target of a window.

        Args:
            batch: the window.
            states: of each layer, where the window before has ended; overwritten. The gradient stops there.
            negatives: forward's and backward's; None for the full softmax.
        """
        steps = batch.tokens.shape[1] // batch.streams
        packing = pack((steps,) * batch.streams).to(batch.tokens.device)
        x = nn.functional.embedding(batch.tokens, self._type_vectors(batch.chars))
        top = _whole(self.bilm.dropout(self.bilm.run_stacks(x, packing, states)[-1]))
        return self._losses((top[0], top[1]), (batch.targets[0], batch.targets[1]), negatives)

    def _losses(
        self,
        states: tuple[Float[Tensor, "targets dim"], Float[Tensor, "targets dim"]],
        targets: tuple[Int[Tensor, " targets"], Int[Tensor, " targets"]],
        negatives: tuple[Negatives, Negatives] | None,
    ) -> tuple[Float[Tensor, " targets"], Float[Tensor, " targets"]]:
        """Return the loss of each target of the forward and of the backward LM."""
        if negatives is None:
            forward, backward = map(self.softmax.full_loss, states, targets)
        else:
            forward, backward = map(self.softmax.sampled_loss, states, targets, negatives)
        return forward, backward

    def _type_vectors(self, chars: Int[Tensor, "types chars"]) -> Float[Tensor, "types dim"]:
        """Return the token encoder's output; without a gradient to come, so many types at a time as memory allows."""
        encode = self.bilm.token_encoder
        if torch.is_grad_enabled() or len(chars) <= _TYPES_AT_ONCE:
            return encode(chars)
        return torch.cat([encode(part) for part in chars.split(_TYPES_AT_ONCE)])


def _whole(h: Float[Tensor, "*directions rows dim"]) -> Float[Tensor, "*directions rows dim"]:
    """Return float32 for fewer bits, as autocast leaves them: a softmax over thousands of types does not bear that."""
    return h.float() if h.dtype in (torch.float16, torch.bfloat16) else h
