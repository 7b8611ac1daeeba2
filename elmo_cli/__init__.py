"""elmo: deep contextual word vectors from a language model you own.

The Python API is `load`, and `ElmoVectorizer` for scikit-learn; the command line is ``elmo``.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.selection import LayerChoice, Pooling
    from elmo_cli.sklearn_vectorizer import ElmoVectorizer

__all__ = ["Elmo", "ElmoVectorizer", "load"]


def __getattr__(name: str) -> Any:  # noqa: ANN401 (a class that is loaded only when asked for)
    if name == "ElmoVectorizer":
        from elmo_cli.sklearn_vectorizer import ElmoVectorizer

        return ElmoVectorizer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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

    @overload
    def embed(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        layers: "str | int | Sequence[int]" = "average",
        pool: Literal["none"] = "none",
        skip_punct: bool = False,
    ) -> "list[NDArray[np.float32]]": ...

    @overload
    def embed(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        layers: "str | int | Sequence[int]" = "average",
        pool: "Pooling",
        skip_punct: bool = False,
    ) -> "NDArray[np.float32]": ...

    def embed(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        layers: "str | int | Sequence[int]" = "average",
        pool: str = "none",
        skip_punct: bool = False,
    ) -> "list[NDArray[np.float32]] | NDArray[np.float32]":
        """Return one array a sentence, [tokens, dim]; with ``pool``, one array of a row a sentence, [sentences, dim].

        Args:
            sentences: each a text, or a list of tokens, which are taken as they are.
            layers: ``average``, ``top``, ``all``, or numbers such as ``1`` or ``[0, 2]``; several layers stand before
                dim.
            pool: ``none``, ``mean``, ``max``, ``first``, ``last``, or ``mean-max``, twice as wide; a sentence of no
                tokens gives zeros.
            skip_punct: leave tokens without a letter or digit out of the rows, or of the pool; the model reads them.

        Raises:
            TypeError: ``sentences`` is a single string, or one of them is neither text nor tokens.
            elmo_cli.errors.ConfigError: there is no such layer or pooling.
        """
        import numpy as np

        arrays = list(self.embed_each(sentences, layers=layers, pool=pool, skip_punct=skip_punct))
        if pool == "none":
            return arrays
        return np.stack(arrays) if arrays else np.zeros((0, *self.row_shape(layers=layers, pool=pool)), np.float32)

    def embed_each(
        self,
        sentences: Iterable[str | Sequence[str]],
        *,
        layers: "str | int | Sequence[int]" = "average",
        pool: str = "none",
        skip_punct: bool = False,
    ) -> "Iterator[NDArray[np.float32]]":
        """Yield the arrays of `embed`, sentence by sentence, reading only a little ahead of what is yielded."""
        from elmo_cli.embedding.selection import check_pool, parse_layers

        if isinstance(sentences, str | bytes):
            raise TypeError(f"embed takes a list of sentences, not a single {type(sentences).__name__}: [text]")
        choice = parse_layers(layers, self._embedder.bilm.config.layer_count)
        check_pool(pool)
        return self._arrays(sentences, choice, pool, skip_punct)

    def row_shape(self, *, layers: "str | int | Sequence[int]" = "average", pool: str = "none") -> tuple[int, ...]:
        """Return the shape of a token's vector or of a pooled one: (dim,), or (layers, dim) for several layers."""
        from elmo_cli.embedding.selection import check_pool, parse_layers, pooled_shape

        config = self._embedder.bilm.config
        check_pool(pool)
        return pooled_shape(parse_layers(layers, config.layer_count).row_shape(config.vector_dim), pool)

    def _arrays(
        self, sentences: Iterable[str | Sequence[str]], choice: "LayerChoice", pool: str, skip_punct: bool
    ) -> "Iterator[NDArray[np.float32]]":
        from elmo_cli.embedding.pooling import pool_tokens, take_tokens
        from elmo_cli.embedding.selection import kept_tokens

        kept: deque[Sequence[int]] = deque()  # of the sentences that the embedder has read ahead

        def tokens() -> Iterator[Sequence[str]]:
            for sentence in sentences:
                found = self._tokens(sentence)
                kept.append(kept_tokens(found, skip_punct=skip_punct))
                yield found

        for vectors in self._embedder.embed(tokens(), choice):
            vectors = take_tokens(vectors, kept.popleft())
            yield (vectors if pool == "none" else pool_tokens(vectors, pool)).numpy()

    def _tokens(self, sentence: object) -> Sequence[str]:
        if isinstance(sentence, str):
            return [sentence[start:end] for start, end in self._tokenizer.spans([sentence])[0]]
        if isinstance(sentence, Iterable) and not isinstance(sentence, bytes):
            tokens = list(sentence)
            if all(isinstance(token, str) for token in tokens):
                return tokens
        raise TypeError(f"a sentence is a text or a list of tokens, which are str; this one is {sentence!r:.80}")


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
