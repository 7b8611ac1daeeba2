"""Embedding as the first ELMo tools did it, with the LSTMs' state carried from batch to batch: to reproduce them only.

bilm-tf and AllenNLP never reset the state: row i of a batch starts where row i of the batch before ended. So a
sentence's vectors depend on all that was embedded before it, on the batch size and on the order. Published vectors were
made that way, and only this way gives them again.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.lstm import LSTMState
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice


class StatefulEmbedder:
    """An `Embedder` that carries state and keeps batches as they come.

    Args:
        bilm: in inference mode.
        device: to compute on.
        batch_size: sentences a batch; 64 is the default of AllenNLP's command.
    """

    def __init__(self, bilm: BiLM, device: torch.device, batch_size: int) -> None:
        self._embedder = Embedder(bilm, device)
        self.counts = self._embedder.counts
        self._batch_size = batch_size
        self._states = [layer.zero_state(batch_size) for layer in bilm.lstm_layers]

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[Float[Tensor, "tokens ..."]]:
        """Yield the chosen layers of each sentence's tokens; the state is carried on to the next call, too.

        A sentence of no tokens runs its two markers through the LSTMs, as in bilm-tf. The rows that a smaller batch
        leaves unused keep their state.
        """
        max_characters = self._embedder.bilm.config.char_cnn.max_characters
        remaining = iter(sentences)
        while batch := list(islice(remaining, self._batch_size)):
            used = [LSTMState(state.hidden[:, : len(batch)], state.cell[:, : len(batch)]) for state in self._states]
            yield from self._embedder.embed_batch(batch, choice, used)
            self.counts.add(batch, max_characters)
