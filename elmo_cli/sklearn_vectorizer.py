"""ELMo vectors of texts as a step of a scikit-learn pipeline."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from elmo_cli.errors import ConfigError
from elmo_cli.settings import DEFAULT_MODEL

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils.validation import check_is_fitted
except ImportError as error:
    raise ConfigError("ElmoVectorizer needs the package scikit-learn", fix="pip install 'elmo-cli[sklearn]'") from error

if TYPE_CHECKING:
    from elmo_cli import Elmo

Documents = Iterable[str | Sequence[str]]


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns texts into one vector each.

    Nothing is learned: `fit` loads the model and looks at the settings, not at the texts. A pickle holds the settings
    alone and loads the model anew, so the model has to be found where it is opened, too. Each text is one sentence to
    the biLM, however long it is.

    Args:
        model: name or folder, as ``elmo embed -m`` takes it.
        layers: ``average``, ``top``, ``all`` or numbers such as ``0,2``; several layers stand one behind the other.
        pool: ``mean``, ``max``, ``first``, ``last``, or ``mean-max``, twice as wide.
        skip_punct: leave tokens without a letter or digit out of the pool; the model reads them.
        device: to compute on.

    Attributes:
        n_features_out_: width of a vector.
    """

    def __init__(
        self,
        model: str = DEFAULT_MODEL,
        *,
        layers: str = "average",
        pool: str = "mean",
        skip_punct: bool = False,
        device: str = "auto",
    ) -> None:
        self.model = model
        self.layers = layers
        self.pool = pool
        self.skip_punct = skip_punct
        self.device = device

    def fit(self, raw_documents: Documents, y: Any = None) -> "ElmoVectorizer":  # noqa: ANN401 (labels of any kind)
        """Load the model and check the settings.

        Raises:
            ValueError: ``raw_documents`` is a single string, or ``pool`` is ``none``.
            elmo_cli.errors.ElmoError: the model cannot be used, or a setting makes no sense.
        """
        _refuse_string(raw_documents)
        if self.pool == "none":
            raise ValueError("ElmoVectorizer gives one vector a text: pool cannot be 'none'")
        self._elmo = self._load()
        self.n_features_out_ = int(np.prod(self._elmo.row_shape(layers=self.layers, pool=self.pool)))
        return self

    def transform(self, raw_documents: Documents) -> NDArray[np.float32]:
        """Return one row a text, [texts, features]; a text of no tokens gives zeros.

        Args:
            raw_documents: texts, or lists of tokens, which are taken as they are.

        Raises:
            ValueError: ``raw_documents`` is a single string.
            TypeError: one of them is neither text nor tokens.
            sklearn.exceptions.NotFittedError: before `fit`.
        """
        check_is_fitted(self, "n_features_out_")
        _refuse_string(raw_documents)
        elmo = self.__dict__.get("_elmo") or self._load()
        self._elmo = elmo
        how: Any = self.pool  # one that gives a row a text, as `fit` has seen to
        rows: NDArray[np.float32] = elmo.embed(raw_documents, layers=self.layers, pool=how, skip_punct=self.skip_punct)
        return rows.reshape(len(rows), self.n_features_out_)

    @property
    def _n_features_out(self) -> int:
        return self.n_features_out_

    def _load(self) -> "Elmo":
        from elmo_cli import load

        return load(self.model, device=self.device)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_elmo"}

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401 (scikit-learn's own type)
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        tags.target_tags.required = False
        return tags


def _refuse_string(raw_documents: object) -> None:
    if isinstance(raw_documents, str | bytes):
        raise ValueError("a list of texts is expected, not a single string: [text]")
