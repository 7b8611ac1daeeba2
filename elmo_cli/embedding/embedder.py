"""Sentences to vectors: windows sorted by length, each word type through the char CNN once, input order restored."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.batching import read_windows, split_by_budget
from elmo_cli.bilm.bilm import MARKERS_A_SENTENCE, BiLM
from elmo_cli.bilm.lstm import LSTMState
from elmo_cli.config import Precision
from elmo_cli.embedding.long_sentences import embed_long
from elmo_cli.embedding.pooling import choose_layers
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import ModelError
from elmo_cli.reporting import Reporter, SilentReporter
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START, character_ids, is_cut

_WINDOW_TOKENS = 16_384  # read ahead and sorted by length, markers included; output of a window is held at once
_WINDOW_SENTENCES = 4096
_BATCH_TOKENS = 4096  # through the LSTMs at once
_GPU_SCALE = 16  # times as many of all three on a GPU, whose time goes by steps rather than by rows
_TYPES_AT_ONCE = 512  # through the char CNN at once
_CACHED_TYPES = 65_536  # word vectors kept between windows


@dataclass(slots=True)
class EmbeddingCounts:
    """What went through an embedder.

    Attributes:
        sentences: also those of no tokens.
        cut_tokens: tokens of more bytes than the model reads.
    """

    sentences: int = 0
    tokens: int = 0
    cut_tokens: int = 0

    def add(self, sentences: Sequence[Sequence[str]], max_characters: int) -> None:
        """Count sentences that a model with ``max_characters`` ids a token has embedded."""
        self.sentences += len(sentences)
        self.tokens += sum(map(len, sentences))
        self.cut_tokens += sum(is_cut(token, max_characters) for sentence in sentences for token in sentence)


class Embedder:
    """Computes the layers of tokens with a biLM.

    A sentence's vectors depend on the sentence alone: the LSTMs start at zero for each one, and batches, windows and
    the cache of word vectors change nothing but the rounding of float32.

    Args:
        bilm: in inference mode; its weights must not change afterwards.
        device: to compute on.
        precision: of the LSTMs' products. Less than float32 is faster and deviates.
        reporter: told when batches have to be smaller, as the device has too little memory.

    Raises:
        ConfigError: the device does not compute in this precision.
    """

    def __init__(
        self,
        bilm: BiLM,
        device: torch.device,
        precision: Precision = "float32",
        reporter: Reporter | None = None,
    ) -> None:
        self.bilm = bilm.to(device)
        bilm.prepare(precision)
        self.device = device
        self.counts = EmbeddingCounts()
        self._reporter: Reporter = reporter or SilentReporter()
        self._scale = 1 if device.type == "cpu" else _GPU_SCALE
        self._batch_tokens = self._scale * _BATCH_TOKENS
        self._rows: dict[str, int] = {}  # row of each word type in the table
        self._table = torch.zeros(0, bilm.config.lstm.projection_dim, device=device)

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[Float[Tensor, "tokens ..."]]:
        """Yield the chosen layers of each sentence's tokens, in the order of the sentences.

        Args:
            sentences: tokens of each; may be endless, as no more than a window is read ahead.
            choice: [tokens, dim] or, for several layers, [tokens, layers, dim] is yielded.
        """
        sizes = {"max_tokens": self._scale * _WINDOW_TOKENS, "max_sentences": self._scale * _WINDOW_SENTENCES}
        for window in read_windows(sentences, **sizes):
            yield from self._embed_window(window, choice)

    @torch.inference_mode()
    def _embed_window(self, window: list[Sequence[str]], choice: LayerChoice) -> list[Float[Tensor, "tokens ..."]]:
        # Sentences without a token never enter a batch.
        shape = (0, *choice.row_shape(self.bilm.config.vector_dim))
        found = [torch.zeros(shape)] * len(window)
        order = []
        for number, sentence in enumerate(window):
            if len(sentence) > self._scale * _WINDOW_TOKENS:
                marked = [SENTENCE_START, *sentence, SENTENCE_END]
                found[number] = embed_long(self.bilm, self._look_up, marked, choice)
            elif sentence:
                order.append(number)
        self.learn_types([window[number] for number in order])
        order.sort(key=lambda number: -len(window[number]))
        while order:
            # Cut anew each time, as the budget may have become smaller under way.
            batch = next(split_by_budget(order, [len(window[number]) for number in order], self._batch_tokens))
            order = order[len(batch) :]
            vectors = self._embed_or_halve([window[number] for number in batch], choice)
            for number, part in zip(batch, vectors, strict=True):
                found[number] = part
        self.counts.add(window, self.bilm.config.char_cnn.max_characters)
        return found

    def _embed_or_halve(
        self, sentences: list[Sequence[str]], choice: LayerChoice
    ) -> Sequence[Float[Tensor, "tokens ..."]]:
        """Embed a batch; where the device has too little memory, in halves, as all batches from then on."""
        try:
            return self.embed_batch(sentences, choice)
        except torch.OutOfMemoryError as error:
            if len(sentences) == 1:
                raise ModelError(
                    f"{self.device} has too little memory for a sentence of {len(sentences[0]):,} tokens",
                    fix="choose --device cpu, or cut the sentence",
                ) from error
        # Only here, behind the exception, is the memory free that the failed try still held.
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
        self._batch_tokens = max(1, sum(map(len, sentences)) // 2)
        self._reporter.warn(f"{self.device} is out of memory: going on with batches of {self._batch_tokens:,} tokens")
        middle = len(sentences) // 2
        halves = (sentences[:middle], sentences[middle:])
        return [vectors for half in halves for vectors in self._embed_or_halve(half, choice)]

    @torch.inference_mode()
    def embed_batch(
        self, sentences: list[Sequence[str]], choice: LayerChoice, states: Sequence[LSTMState] | None = None
    ) -> Sequence[Float[Tensor, "tokens ..."]]:
        """Return the chosen layers of sentences that go through the LSTMs together.

        Args:
            sentences: tokens of each, perhaps none.
            choice: of layers.
            states: one a layer, with a row a sentence, to start from and to leave behind; None to start at zero.
        """
        self.learn_types(sentences)
        tokens = [row for sentence in sentences for row in self._marked_rows(sentence)]
        lengths = [len(sentence) for sentence in sentences]
        marked = [length + MARKERS_A_SENTENCE for length in lengths]
        layers = self.bilm.embed(self._table, torch.tensor(tokens, device=self.device), marked, states)
        return choose_layers(layers, choice).cpu().split(lengths)

    def _look_up(self, tokens: Sequence[str]) -> Float[Tensor, "tokens dim"]:
        """Return the token encoder's vector of each token."""
        self.learn_types([tokens])
        return self._table[torch.tensor([self._rows[token] for token in tokens], device=self.device)]

    def _marked_rows(self, sentence: Sequence[str]) -> list[int]:
        """Return the row of the table of each token of a sentence, its markers included."""
        rows = self._rows
        return [rows[SENTENCE_START], *(rows[token] for token in sentence), rows[SENTENCE_END]]

    def learn_types(self, window: list[Sequence[str]]) -> None:
        """Put the vectors of all word types of a window into the table."""
        types = {SENTENCE_START, SENTENCE_END}.union(*window)
        max_characters = self.bilm.config.char_cnn.max_characters
        new_types = types.difference(self._rows)
        if not new_types:
            return
        if len(self._rows) + len(new_types) > _CACHED_TYPES:
            self._rows.clear()
            self._table = self._table[:0]
            new_types = types
        # Sorted by length, so that short words do not pay for the padding of long ones; then by text, so that the
        # order never depends on hashing.
        new = sorted(new_types, key=lambda token: (len(token), token))
        parts = [self._table]
        for at in range(0, len(new), _TYPES_AT_ONCE):
            chars = character_ids(new[at : at + _TYPES_AT_ONCE], max_characters)
            parts.append(self.bilm.token_encoder(torch.from_numpy(chars).to(self.device)))
        first = len(self._table)
        self._table = torch.cat(parts)  # before the rows are known, as the device may have no room for it
        self._rows.update((token, first + number) for number, token in enumerate(new))
