"""elmo: deep contextual word vectors from a language model you own.

The Python API is `load`; the command line is ``elmo``.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from elmo_cli.embedding.embedder import Embedder

__all__ = ["Elmo", "load"]


class Elmo:
    """A model ready to embed. Made by `load`.

    Args:
        embedder: holds the biLM.
        language: of the tokenizer for sentences given as text.
    """

    def __init__(self, embedder: "Embedder", language: str) -> None:
        from elmo_cli.text.tokenizer import SpacyTokenizer

        self._embedder = embedder
        self._tokenizer = SpacyTokenizer(language)

    def embed(
        self, sentences: Sequence[str | Sequence[str]], *, layers: str = "average", pool: str = "none"
    ) -> "list[NDArray[np.float32]]":
        """Return one array for each sentence: [tokens, dim], or with ``pool`` [dim].

        Args:
            sentences: each a text, or a list of tokens, which are taken as they are.
            layers: ``average``, ``top``, ``all`` or numbers such as ``0,2``; several layers stand before dim.
            pool: ``none``, ``mean``, ``max``, ``first`` or ``last``.

        Raises:
            TypeError: ``sentences`` is a single string.
        """
        return list(self.embed_each(sentences, layers=layers, pool=pool))

    def embed_each(
        self, sentences: Iterable[str | Sequence[str]], *, layers: str = "average", pool: str = "none"
    ) -> "Iterator[NDArray[np.float32]]":
        """Yield what `embed` returns, sentence by sentence, reading only a little ahead of what is yielded."""
        from elmo_cli.embedding.pooling import pool_tokens
        from elmo_cli.embedding.selection import check_pool, parse_layers

        if isinstance(sentences, str):
            raise TypeError("embed takes a list of sentences, not a single string")
        choice = parse_layers(layers, self._embedder.bilm.config.layer_count)
        check_pool(pool)
        for vectors in self._embedder.embed(map(self._tokens, sentences), choice):
            yield (vectors if pool == "none" else pool_tokens(vectors, pool)).numpy()

    def _tokens(self, sentence: str | Sequence[str]) -> Sequence[str]:
        if not isinstance(sentence, str):
            return sentence
        return [sentence[start:end] for start, end in self._tokenizer.spans([sentence])[0]]


def load(name: str = "small-en", *, device: str = "auto") -> Elmo:
    """Return a model by name or folder, as ``elmo embed -m`` finds it.

    Raises:
        elmo_cli.errors.ModelError: there is no such model, or its files are damaged.
    """
    from elmo_cli.bilm.device import choose_device
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.storage.model_dir import read_config
    from elmo_cli.storage.registry import find_model
    from elmo_cli.storage.weights import load_bilm

    folder = find_model(name)
    config = read_config(folder)
    return Elmo(Embedder(load_bilm(folder, config), choose_device(device)), config.language)
