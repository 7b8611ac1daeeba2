"""`ElmoVectorizer` between the parts of scikit-learn, and by its own checks of estimators."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import elmo_cli
from elmo_cli import Elmo
from elmo_cli.errors import ConfigError, ModelError

sklearn = pytest.importorskip("sklearn")
from sklearn.base import clone  # noqa: E402
from sklearn.exceptions import NotFittedError  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.utils import estimator_checks  # noqa: E402

from elmo_cli.sklearn_vectorizer import ElmoVectorizer  # noqa: E402

TEXTS = ["The ferry left.", "", "Nobody waved back!", "The sea is cold."]
DIM = 64


@pytest.fixture
def vectorizer(model: Path) -> ElmoVectorizer:
    return ElmoVectorizer(str(model))


def test_the_package_hands_it_out() -> None:
    assert elmo_cli.ElmoVectorizer is ElmoVectorizer


@pytest.mark.parametrize("settings", [{}, {"pool": "max", "skip_punct": True}, {"layers": "all", "pool": "mean-max"}])
def test_vectors_are_those_of_the_model(vectorizer: ElmoVectorizer, elmo: Elmo, settings: dict[str, Any]) -> None:
    found = vectorizer.set_params(**settings).fit_transform(TEXTS)
    expected = elmo.embed(TEXTS, **{"pool": "mean", **settings}).reshape(len(TEXTS), -1)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert vectorizer.n_features_out_ == expected.shape[1]
    assert len(vectorizer.get_feature_names_out()) == expected.shape[1]


def test_features_have_names(vectorizer: ElmoVectorizer) -> None:
    assert vectorizer.fit(TEXTS).get_feature_names_out()[[0, -1]].tolist() == ["elmovectorizer0", "elmovectorizer63"]


def test_a_clone_has_the_settings_and_no_model(vectorizer: ElmoVectorizer) -> None:
    copy = clone(vectorizer.set_params(pool="max", layers="top").fit(TEXTS))
    assert copy.get_params() == vectorizer.get_params()
    with pytest.raises(NotFittedError):
        copy.transform(TEXTS)


def test_a_pickle_is_small_and_works(vectorizer: ElmoVectorizer) -> None:
    found = vectorizer.fit_transform(TEXTS)
    content = pickle.dumps(vectorizer)
    assert len(content) < 2000
    np.testing.assert_array_equal(pickle.loads(content).transform(TEXTS), found)


def test_a_search_over_settings_in_a_pipeline(vectorizer: ElmoVectorizer) -> None:
    texts = [f"The {word} left." for word in ("ferry", "boat", "ship")] * 2
    texts += [f"{word} is cold today" for word in ("It", "Water", "Air")] * 2
    labels = [0] * 6 + [1] * 6
    pipeline = make_pipeline(vectorizer, LogisticRegression(C=100))
    grid = {"elmovectorizer__pool": ["mean", "max"], "elmovectorizer__layers": ["top", "all"]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(texts, labels)
    assert search.best_score_ == 1
    assert search.predict(["The ship left.", "Water is cold today"]).tolist() == [0, 1]


@pytest.mark.parametrize(
    "name",
    [
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_get_params_invariance",
        "check_mixin_order",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_set_params",
        "check_valid_tag_types",
    ],
)
def test_scikit_learns_own_checks_that_need_no_data_pass(vectorizer: ElmoVectorizer, name: str) -> None:
    getattr(estimator_checks, name)("ElmoVectorizer", vectorizer)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_has_no_other_check_for_what_takes_texts(vectorizer: ElmoVectorizer) -> None:
    results = estimator_checks.check_estimator(vectorizer, on_fail=None, on_skip=None)
    assert {result["check_name"] for result in results if result["status"] not in ("passed", "skipped")} == set()


@pytest.mark.parametrize("method", ["fit", "transform", "fit_transform"])
def test_a_single_string_is_refused(vectorizer: ElmoVectorizer, method: str) -> None:
    if method == "transform":
        vectorizer.fit(TEXTS)
    with pytest.raises(ValueError, match="a list of texts is expected, not a single string"):
        getattr(vectorizer, method)("The ferry left.")


def test_wrong_settings_are_told_by_fit(vectorizer: ElmoVectorizer) -> None:
    with pytest.raises(ValueError, match="one vector a text: pool cannot be 'none'"):
        clone(vectorizer).set_params(pool="none").fit(TEXTS)
    with pytest.raises(ConfigError, match="'sum' is not known"):
        clone(vectorizer).set_params(pool="sum").fit(TEXTS)
    with pytest.raises(ModelError, match="no model 'nobody'"):
        clone(vectorizer).set_params(model="nobody").fit(TEXTS)
