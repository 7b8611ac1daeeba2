"""From mixed vectors to labels: small heads, so that what is learned is mostly how to use the layers."""

from collections.abc import Sequence
from typing import Final

import torch
from jaxtyping import Float
from torch import Tensor, nn

from elmo_cli.bilm.dropout import SeededDropout
from elmo_cli.errors import ModelError
from elmo_cli.storage.mix_file import StoredHead

HIDDEN_DIM: Final = 100  # of each direction of the biLSTM


class LinearHead(nn.Module):
    """A linear layer on each token alone."""

    def __init__(self, dim: int, labels: int) -> None:
        super().__init__()
        self.output = nn.Linear(dim, labels)

    def forward(self, vectors: Float[Tensor, "tokens dim"], lengths: Sequence[int]) -> Float[Tensor, "tokens labels"]:
        """Return the logits of each token."""
        found: Tensor = self.output(vectors)
        return found


class BiLSTMHead(nn.Module):
    """One biLSTM over the sentence and a linear layer on top, so that a label can depend on its neighbours' tokens."""

    def __init__(self, dim: int, labels: int, hidden_dim: int, dropout: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(dim, hidden_dim, bidirectional=True)
        self.dropout = SeededDropout(dropout)
        self.output = nn.Linear(2 * hidden_dim, labels)

    def forward(self, vectors: Float[Tensor, "tokens dim"], lengths: Sequence[int]) -> Float[Tensor, "tokens labels"]:
        """Return the logits of each token."""
        sentences = [sentence for sentence in vectors.split(list(lengths)) if len(sentence)]
        if not sentences:
            empty: Tensor = self.output(vectors.new_zeros(0, self.output.in_features))
            return empty
        packed = nn.utils.rnn.pack_sequence(sentences, enforce_sorted=False)
        states, _ = self.lstm(packed)
        found = torch.cat(nn.utils.rnn.unpack_sequence(states))
        logits: Tensor = self.output(self.dropout(found))
        return logits


class PooledHead(nn.Module):
    """Mean and maximum over the tokens of a sentence, side by side, and a linear layer. No tokens: zeros."""

    def __init__(self, dim: int, labels: int) -> None:
        super().__init__()
        self.output = nn.Linear(2 * dim, labels)

    def forward(
        self, vectors: Float[Tensor, "tokens dim"], lengths: Sequence[int]
    ) -> Float[Tensor, "sentences labels"]:
        """Return the logits of each sentence."""
        counts = torch.tensor(lengths, dtype=torch.int64)
        pooled = [torch.segment_reduce(vectors, how, lengths=counts) for how in ("mean", "max")]
        mean, largest = (torch.where(counts.unsqueeze(1) > 0, part, 0.0) for part in pooled)
        found: Tensor = self.output(torch.cat((mean, largest), dim=1))
        return found


def build_head(kind: str, dim: int, labels: int, *, hidden_dim: int, dropout: float = 0.0) -> nn.Module:
    """Return a head with weights that are still to be set.

    Raises:
        ValueError: there is no such kind.
    """
    if kind == "linear":
        return LinearHead(dim, labels)
    if kind == "bilstm":
        return BiLSTMHead(dim, labels, hidden_dim, dropout)
    if kind == "pooled":
        return PooledHead(dim, labels)
    raise ValueError(f"there is no head {kind!r}")


def initialise(head: nn.Module, generator: torch.Generator) -> None:
    """Draw all weights between -1 and 1 over the root of their row's length, as torch does; biases are 0."""
    with torch.no_grad():
        for name, parameter in head.named_parameters():
            if "bias" in name:
                parameter.zero_()
            else:
                bound = parameter.shape[-1] ** -0.5
                parameter.uniform_(-bound, bound, generator=generator)


def store_head(kind: str, hidden_dim: int, head: nn.Module) -> StoredHead:
    """Return a head as a mix file keeps it."""
    from safetensors.numpy import save

    tensors = {name: tensor.detach().cpu().contiguous().numpy() for name, tensor in head.state_dict().items()}
    return StoredHead(kind, hidden_dim if kind == "bilstm" else 0, save(tensors))


def restore_head(stored: StoredHead, dim: int, labels: int) -> nn.Module:
    """Return a stored head, ready for inference.

    Raises:
        ModelError: its tensors are not those of such a head.
    """
    tensors = {name: torch.from_numpy(array.copy()) for name, array in stored.tensors().items()}
    try:
        head = build_head(stored.kind, dim, labels, hidden_dim=stored.hidden_dim)
        head.load_state_dict(tensors)
    except (ValueError, RuntimeError) as error:
        raise ModelError(f"the head of the mix does not fit: {error!s:.200}") from error
    return head.eval()
