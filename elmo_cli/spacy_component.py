"""ELMo vectors of spaCy's own tokens, as a component of a pipeline: ``nlp.add_pipe("elmo")``."""

import shutil
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, no_type_check

import numpy as np
from numpy.typing import NDArray
from spacy.language import Language
from spacy.tokens import Doc, Span, Token

from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli import Elmo

_LAYERS: Final = "elmo_layers"  # key in ``doc.user_data``


class ElmoComponent:
    """Sets ``doc.tensor``: a row for each token, zeros for tokens of white space, which the biLM does not see.

    Where a component before this one has found sentences, each is a sentence to the biLM; else a doc is one. Several
    layers stand one behind the other in ``doc.tensor``, so that ``token.vector`` works; ``doc._.elmo``,
    ``span._.elmo`` and ``token._.elmo`` are the same numbers with the layers apart: [tokens, dim] or [tokens, layers,
    dim], and one dimension less for a token. ``doc._.elmo_vector`` and ``span._.elmo_vector`` are the mean over tokens
    that are no white space.

    The model is loaded with the first doc. `to_disk` copies it, so that a saved pipeline needs nothing else.

    Args:
        name: of the component.
        model: name or folder, as ``elmo embed -m`` takes it.
        layers: ``average``, ``top``, ``all`` or numbers such as ``0,2``.
        device: to compute on.
    """

    def __init__(self, name: str, model: str, layers: str, device: str) -> None:
        self.name = name
        self.model = model
        self.layers = layers
        self.device = device
        self._elmo: Elmo | None = None
        for kind in (Doc, Span, Token):
            kind.set_extension("elmo", getter=_vectors, force=True)
        for kind in (Doc, Span):
            kind.set_extension("elmo_vector", getter=_mean, force=True)

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of a doc."""
        return next(self.pipe([doc]))

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of docs, ``batch_size`` docs at once."""
        docs = iter(stream)
        while batch := list(islice(docs, batch_size)):
            self._set_vectors(batch)
            yield from batch

    def to_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> None:
        """Copy the model into a folder.

        Raises:
            elmo_cli.errors.ElmoError: there is no such model, or the folder cannot be made.
        """
        from elmo_cli.storage.files import make_folder
        from elmo_cli.storage.model_dir import MODEL_FILES
        from elmo_cli.storage.registry import find_model

        source, target = find_model(self.model), Path(path)
        make_folder(target)
        for name in MODEL_FILES:
            if (source / name).is_file() and (source / name).resolve() != (target / name).resolve():
                shutil.copyfile(source / name, target / name)

    def from_disk(self, path: str | Path, *, exclude: Sequence[str] = ()) -> "ElmoComponent":
        """Take the model from a folder that `to_disk` has written."""
        self.model = f"{Path(path).resolve()}/"
        self._elmo = None
        return self

    def _set_vectors(self, docs: list[Doc]) -> None:
        if self._elmo is None:
            from elmo_cli import load

            self._elmo = load(self.model, device=self.device)
        shape = self._elmo.row_shape(layers=self.layers)
        sentences = [tokens for doc in docs for tokens in _sentences(doc)]
        found = self._elmo.embed_each(([token.text for token in tokens] for tokens in sentences), layers=self.layers)
        for doc in docs:
            doc.tensor = np.zeros((len(doc), int(np.prod(shape))), np.float32)
            doc.user_data[_LAYERS] = shape[0] if len(shape) > 1 else 0
        for tokens, vectors in zip(sentences, found, strict=True):
            if tokens:
                places = [token.i for token in tokens]
                tokens[0].doc.tensor[places] = vectors.reshape(len(tokens), -1)


@Language.factory(
    "elmo",
    assigns=["doc.tensor", "doc._.elmo", "doc._.elmo_vector", "span._.elmo", "span._.elmo_vector", "token._.elmo"],
    default_config={"model": DEFAULT_MODEL, "layers": "average", "device": "auto"},
)
@no_type_check  # spaCy asks this very function for its arguments, which a wrapper that checks types would hide
def make_elmo(nlp: Language, name: str, model: str, layers: str, device: str) -> ElmoComponent:
    """Return the component; spaCy calls this for ``nlp.add_pipe("elmo", config={...})``."""
    return ElmoComponent(name, model, layers, device)


def _sentences(doc: Doc) -> list[list[Token]]:
    """Return the tokens of each sentence without those of white space."""
    parts: Iterable[Any] = doc.sents if doc.has_annotation("SENT_START") else [doc]
    return [[token for token in part if not token.is_space] for part in parts]


def _vectors(tokens: Doc | Span | Token) -> NDArray[np.float32]:
    """Return the vectors of a doc, a span or a token, with the layers apart.

    Raises:
        ValueError: the doc has none.
    """
    doc: Any = tokens if isinstance(tokens, Doc) else tokens.doc
    layer_count = doc.user_data.get(_LAYERS, 0)
    tensor: NDArray[np.float32] = doc.tensor
    if tensor.ndim != 2 or len(tensor) != len(doc):
        raise ValueError("the doc has no vectors: it has not gone through the component elmo")
    rows = tensor.reshape(len(doc), layer_count, tensor.shape[1] // layer_count) if layer_count else tensor
    if isinstance(tokens, Span):
        return rows[tokens.start : tokens.end]
    return np.asarray(rows[tokens.i]) if isinstance(tokens, Token) else rows


def _mean(tokens: Doc | Span) -> NDArray[np.float32]:
    """Return the mean vector over tokens that are no white space; zeros where there is none."""
    rows = _vectors(tokens)
    words = [number for number, token in enumerate(tokens) if not token.is_space]
    return rows[words].mean(axis=0) if words else np.zeros(rows.shape[1:], np.float32)
