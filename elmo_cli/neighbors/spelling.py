"""Layer 0 alone: the vectors of words by their spelling, without the LSTMs, which cost most of the time."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.text.characters import character_ids

_SENTENCES_AT_ONCE = 1024
_TYPES_AT_ONCE = 512


class SpellingEmbedder:
    """A `SentenceEmbedder` for layer 0, which remembers every word type.

    Args:
        bilm: in inference mode, on its device.
        device: of the biLM.
    """

    def __init__(self, bilm: BiLM, device: torch.device) -> None:
        self._bilm = bilm
        self._device = device
        self._known: dict[str, Tensor] = {}

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[Float[Tensor, "tokens ..."]]:
        """Yield layer 0 of each sentence's tokens [tokens, dim].

        Raises:
            ValueError: another layer is asked for.
        """
        if choice.indices != (0,):
            raise ValueError(f"spelling gives layer 0 alone, not {choice.indices}")
        rest = iter(sentences)
        while window := list(islice(rest, _SENTENCES_AT_ONCE)):
            self._learn({token for sentence in window for token in sentence})
            for sentence in window:
                yield torch.stack([self._known[token] for token in sentence])

    @torch.inference_mode()
    def _learn(self, types: set[str]) -> None:
        new = sorted(types.difference(self._known), key=lambda token: (len(token), token))  # little padding
        for start in range(0, len(new), _TYPES_AT_ONCE):
            words = new[start : start + _TYPES_AT_ONCE]
            chars = torch.from_numpy(character_ids(words, self._bilm.config.char_cnn.max_characters))
            vectors = self._bilm.token_encoder(chars.to(self._device)).cpu()
            # Both directions begin with the same vector, and layer 0 holds it twice.
            self._known.update(zip(words, torch.cat((vectors, vectors), dim=1), strict=True))
