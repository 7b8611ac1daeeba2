"""Labels for text by a learned mix and its head, sentence by sentence in constant memory."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import torch
from torch import Tensor

from elmo_cli.embedding.pooling import mix_layers
from elmo_cli.errors import ModelError
from elmo_cli.mixing.comparison import group_labels
from elmo_cli.mixing.encoder import Encoder
from elmo_cli.mixing.heads import restore_head
from elmo_cli.storage.mix_file import MixFile

_BATCH_TOKENS = 4096  # through the head at once
_BATCH_SENTENCES = 256


class Predictor:
    """Gives labels to sentences.

    Args:
        mix: with its head.
        encoder: that it was learned with.

    Raises:
        ModelError: the head cannot be read.
    """

    def __init__(self, mix: MixFile, encoder: Encoder) -> None:
        self._mix = mix
        self._encoder = encoder
        self._head = restore_head(mix.head, mix.encoder.dim, len(mix.task.labels))

    def labels(self, sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
        """Yield the labels of each sentence, in order: one a token, or a single one."""
        waiting: deque[Tensor] = deque()  # mixed vectors [tokens, dim] of sentences
        size = 0
        for layers in self._encoder.layers(sentences):
            waiting.append(mix_layers(layers, self._mix.weights))
            size += layers.shape[1]
            if size >= _BATCH_TOKENS or len(waiting) >= _BATCH_SENTENCES:
                yield from self._labels_of(list(waiting))
                waiting.clear()
                size = 0
        yield from self._labels_of(list(waiting))

    @torch.inference_mode()
    def _labels_of(self, vectors: list[Tensor]) -> list[Sequence[str]]:
        if not vectors:
            return []
        lengths = [len(part) for part in vectors]
        logits: Tensor = self._head(torch.cat(vectors), lengths)
        if not torch.isfinite(logits).all():
            raise ModelError("the head gives scores that are no numbers", fix="learn the mix again")
        task = self._mix.task
        return group_labels([task.labels[number] for number in logits.argmax(dim=1).tolist()], lengths, task.unit)
