"""The approximate index: most of the nearest tokens, with exact cosines."""

from collections.abc import Callable

import numpy as np
import pytest

from elmo_cli.errors import DataError, OutputError
from elmo_cli.neighbors.approximate import add_approximate, search_approximate
from elmo_cli.neighbors.index import Index, alone, append_to_index
from elmo_cli.neighbors.search import Space, all_tokens, search
from elmo_cli.reporting import SilentReporter

pytest.importorskip("usearch", reason="usearch, an extra, is not installed")


@pytest.fixture
def index(make_index: Callable[..., Index], work: Callable) -> Index:
    random = np.random.default_rng(3)
    words = np.array([f"w{number}" for number in range(40)])
    lines = [" ".join(random.choice(words, random.integers(3, 9))) for _ in range(80)]
    made = make_index(lines[:50])
    return append_to_index(made.folder, lambda info: work(lines[50:], "more.txt"), reporter=SilentReporter())


def test_it_finds_nearly_all_that_are_nearest_and_says_how_many(index: Index) -> None:
    recall = add_approximate(index.folder, seed=1, reporter=SilentReporter())
    assert set(recall) == {1, 2}
    assert min(recall.values()) > 0.95
    opened = Index(index.folder)
    queries = np.random.default_rng(1).normal(size=(5, index.info.vector_dim)).astype(np.float32)
    near = search_approximate(opened, queries, 2, count=5)
    exact = search(opened, all_tokens(opened), queries, 2, count=5, space=Space(opened, [], 2))
    for ours, best in zip(near, exact, strict=True):
        assert [hit.score for hit in ours] == pytest.approx([hit.score for hit in best], abs=1e-5)


def test_what_is_added_later_makes_it_void(index: Index, work: Callable) -> None:
    add_approximate(index.folder, seed=1, reporter=SilentReporter())
    grown = append_to_index(index.folder, lambda info: work(("new words",), "new.txt"), reporter=SilentReporter())
    assert grown.info.approximate == {}
    assert not list(index.folder.glob("*.usearch"))


def test_a_damaged_graph_is_an_error(index: Index) -> None:
    add_approximate(index.folder, seed=1, reporter=SilentReporter())
    (index.folder / "approximate-2.usearch").write_bytes(b"nothing")
    with pytest.raises(DataError, match="damaged"):
        search_approximate(Index(index.folder), np.ones((1, index.info.vector_dim), np.float32), 2, count=5)


def test_it_is_not_made_while_a_part_is_added(index: Index) -> None:
    with alone(index.folder), pytest.raises(OutputError, match="another process is adding to"):
        add_approximate(index.folder, seed=1, reporter=SilentReporter())
