"""Occurrences in groups, and the groups in the plane."""

import numpy as np
import pytest

from elmo_cli.neighbors.index import Occurrence
from elmo_cli.neighbors.plane import principal_plane, spread_points
from elmo_cli.neighbors.senses import Senses, group_vectors

pytest.importorskip("sklearn", reason="scikit-learn, an extra, is not installed")

DIM = 6


def senses_of(labels: list[int], *, spread: float = 0.05, **options: object) -> Senses:
    """Group vectors that lie about a centre for each label."""
    random = np.random.default_rng(0)
    vectors = np.eye(DIM)[labels] * 3 + random.normal(size=(len(labels), DIM)) * spread
    units = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    occurrences = [Occurrence(0, row) for row in range(len(labels))]
    return group_vectors(occurrences, units, **{"groups": None, "least": 0.05, "seed": 1, **options})


def test_the_number_of_groups_is_found_and_the_largest_comes_first() -> None:
    labels = [2] * 5 + [0] * 12 + [1] * 8
    found = senses_of(labels)
    assert found.labels.tolist() == [2] * 5 + [0] * 12 + [1] * 8
    assert [len(group.members) for group in found.groups] == [12, 8, 5]
    assert found.silhouette is not None
    assert found.silhouette > 0.9


def test_the_most_typical_comes_first() -> None:
    found = senses_of([0] * 9 + [1] * 9)
    for number, group in enumerate(found.groups):
        units = found.units[found.labels == number].astype(np.float64)
        mean = units.mean(axis=0)
        expected = np.sort(units @ mean / np.linalg.norm(mean))[::-1]
        assert group.typicality == pytest.approx(expected.tolist(), abs=1e-5)


def test_the_number_of_groups_may_be_given() -> None:
    assert len(senses_of([0] * 9 + [1] * 9, groups=4).groups) == 4
    assert len(senses_of([0] * 9 + [1] * 9, groups=1).groups) == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_fewer_than_four_occurrences_are_one_group(count: int) -> None:
    found = senses_of([0, 1, 2][:count])
    assert [len(group.members) for group in found.groups] == [count]
    assert found.silhouette is None


def test_one_line_again_and_again_is_one_group() -> None:
    assert len(senses_of([0] * 8, spread=0).groups) == 1


def test_the_same_seed_gives_the_same_groups() -> None:
    labels = np.random.default_rng(4).integers(0, DIM, 60).tolist()
    first, second = (senses_of(labels, seed=7) for _ in range(2))
    assert first.groups == second.groups


def test_a_high_bar_leaves_one_group() -> None:
    assert len(senses_of([0] * 9 + [1] * 9, least=1.0).groups) == 1


def test_occurrences_beyond_the_sample_join_the_nearest_group(monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli.neighbors import senses

    monkeypatch.setattr(senses, "SAMPLE", 20)
    labels = [0] * 40 + [1] * 30
    assert senses_of(labels).labels.tolist() == labels


def test_the_plane_is_that_of_the_largest_spread() -> None:
    random = np.random.default_rng(2)
    vectors = random.normal(size=(50, 5)) * [9, 4, 1, 1, 1]
    points = principal_plane(vectors.astype(np.float32))
    spread = np.linalg.eigvalsh(np.cov(vectors.T, bias=True))[::-1]
    np.testing.assert_allclose(points.var(axis=0), spread[:2], rtol=1e-4)
    assert np.abs(points[:, 0] @ points[:, 1]) < 1e-2


@pytest.mark.parametrize("count", [1, 2, 3])
def test_few_points_have_places_in_the_square(count: int) -> None:
    places = spread_points(principal_plane(np.eye(count, 4, dtype=np.float32)))
    assert places.shape == (count, 2)
    assert ((places >= -1e-9) & (places <= 1 + 1e-9)).all()
