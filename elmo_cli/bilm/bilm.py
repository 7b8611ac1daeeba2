"""The bidirectional language model of Peters et al. (2018), section 3.1, without its softmax."""

from collections.abc import Sequence
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from elmo_cli.bilm.char_cnn import CharCNN
from elmo_cli.bilm.dropout import SeededDropout
from elmo_cli.bilm.lstm import BiLSTMLayer, LSTMState
from elmo_cli.bilm.packing import Packing, pack
from elmo_cli.bilm.products import check_precision
from elmo_cli.config import BiLMConfig, Precision

MARKERS_A_SENTENCE = 2  # <S> and </S>, read like tokens


class BiLM(nn.Module):
    """A forward and a backward LSTM stack over one token encoder.

    The stacks know nothing of each other: layer k of a direction reads layer k-1 of the same direction.

    Args:
        config: shape of encoder and stacks.
        dropout: rate applied, while training, to the input of every LSTM layer and to the top output, with a fresh
            mask for each row. The skip path carries the dropped input, as in bilm-tf.
    """

    def __init__(self, config: BiLMConfig, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.config = config
        self.dropout = SeededDropout(dropout)
        self.token_encoder = CharCNN(config.char_cnn, config.lstm.projection_dim)
        self.layers = nn.ModuleList(BiLSTMLayer(config.lstm) for _ in range(config.lstm.layers))

    def initialise(self, generator: torch.Generator) -> None:
        """Draw all weights afresh."""
        self.token_encoder.initialise(generator)
        for layer in self.lstm_layers:
            layer.initialise(generator)

    @property
    def lstm_layers(self) -> list[BiLSTMLayer]:
        """The biLSTM layers, bottom first."""
        return cast(list[BiLSTMLayer], list(self.layers))

    def prepare(self, precision: Precision = "float32") -> None:
        """Make inference faster on the device where the weights are, which must never change again.

        Weights of float64 stay as they are, for they are there to be exact.

        Raises:
            ConfigError: the device does not compute in this precision.
        """
        weight = self.token_encoder.embedding.weight
        check_precision(precision, weight.device)
        if weight.dtype != torch.float32:
            return
        for layer in self.lstm_layers:
            layer.prepare(precision)

    def forward(
        self, tokens: Float[Tensor, "rows dim"], packing: Packing, states: Sequence[LSTMState] | None = None
    ) -> list[Float[Tensor, "2 rows dim"]]:
        """Return the output of each biLSTM layer, bottom first, each direction in its own reading order.

        Args:
            tokens: packed token vectors, the sentence markers' among them.
            packing: their layout.
            states: one a layer, in the order of the packing's columns, overwritten by where the sentences end; None to
                start at zero, as every sentence should.
        """
        return self.run_stacks(torch.stack((tokens, tokens.index_select(0, packing.reverse))), packing, states)

    def run_stacks(
        self, x: Float[Tensor, "2 rows dim"], packing: Packing, states: Sequence[LSTMState] | None = None
    ) -> list[Float[Tensor, "2 rows dim"]]:
        """Do what `forward` does, from token vectors that lie in the reading order of each direction."""
        outputs = []
        for number, layer in enumerate(self.lstm_layers):
            x = self.dropout(x)
            h = layer(x, packing, None if states is None else states[number])
            x = h + x if number > 0 and self.config.lstm.skip_connections else h
            outputs.append(x)
        return outputs

    def language_model_states(
        self, tokens: Float[Tensor, "rows dim"], packing: Packing
    ) -> tuple[Float[Tensor, "rows dim"], Float[Tensor, "rows dim"]]:
        """Return what the softmax reads: the forward and the backward LM's top output, both in packed order.

        Row t of the first has read the sentence up to and including t and predicts token t+1; row t of the second
        has read it from the end down to t and predicts token t-1.
        """
        top = self.dropout(self.forward(tokens, packing)[-1])
        return top[0], top[1].index_select(0, packing.reverse)

    @torch.no_grad()
    def embed(
        self,
        type_vectors: Float[Tensor, "types dim"],
        tokens: Int[Tensor, " marked"],
        lengths: Sequence[int],
        states: Sequence[LSTMState] | None = None,
        *,
        keep_markers: bool = False,
    ) -> Float[Tensor, "layers kept width"]:
        """Return all layers of the tokens of a batch, sentences end to end as given.

        Layer 0 is the token encoder's vector twice; layer k is ``[forward_k ; backward_k]``.

        Args:
            type_vectors: the token encoder's output for the distinct types of the batch.
            tokens: row of ``type_vectors`` of each token, markers included, sentences end to end.
            lengths: number of tokens of each sentence, markers included.
            states: one a layer, a row a sentence, overwritten; None to start at zero, as every sentence should.
            keep_markers: whether the vectors of ``<S>`` and ``</S>`` are returned too, which no task sees.
        """
        packing = pack(lengths).to(type_vectors.device)
        place = torch.empty_like(packing.order)
        place[packing.order] = torch.arange(place.numel(), device=place.device)
        kept = place if keep_markers else place[_inner_positions(lengths, type_vectors.device)]
        mirrored = packing.reverse[kept]
        x = type_vectors[tokens[packing.order]]
        outputs = self.forward(x, packing) if states is None else self._forward_from(x, packing, states)
        doubled = x[kept].repeat(1, 2)
        return torch.stack([doubled, *(torch.cat((h[0][kept], h[1][mirrored]), dim=1) for h in outputs)])

    def _forward_from(
        self, x: Float[Tensor, "rows dim"], packing: Packing, states: Sequence[LSTMState]
    ) -> list[Float[Tensor, "2 rows dim"]]:
        """Run `forward` from states that are in the order of the sentences as given, and leave them so."""
        columns = packing.columns
        sorted_states = [LSTMState(state.hidden[:, columns], state.cell[:, columns]) for state in states]
        outputs = self.forward(x, packing, sorted_states)
        for state, moved in zip(states, sorted_states, strict=True):
            state.hidden[:, columns], state.cell[:, columns] = moved.hidden, moved.cell
        return outputs


def _inner_positions(lengths: Sequence[int], device: torch.device) -> Int[Tensor, " unmarked"]:
    """Return the end-to-end positions of all tokens but each sentence's first and last."""
    ends = torch.tensor(lengths, dtype=torch.int64, device=device).cumsum(0)
    inner = torch.ones(int(ends[-1]) if len(lengths) else 0, dtype=torch.bool, device=device)
    inner[ends - 1] = False
    inner[ends - torch.tensor(lengths, dtype=torch.int64, device=device)] = False
    return inner.nonzero().squeeze(1)
