"""Search: the order of brute force in float64, over several parts and blocks."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.neighbors import search as searching
from elmo_cli.neighbors.index import Index, Occurrence, append_to_index
from elmo_cli.neighbors.nearest_types import nearest_types
from elmo_cli.neighbors.query import type_vector
from elmo_cli.neighbors.search import Candidates, Space, all_tokens, occurrences_of, search
from elmo_cli.reporting import SilentReporter

Make = Callable[..., Index]


@pytest.fixture
def index(make_index: Make, work: Callable) -> Index:
    """Two parts of random words, more rows than a block of the tests has."""
    random = np.random.default_rng(3)
    words = np.array(["play", "bank", "the", "of", "kids", "river", "do", "n't"])
    lines = [" ".join(random.choice(words, random.integers(1, 9))) for _ in range(120)]
    first = make_index(lines[:70])
    return append_to_index(first.folder, lambda info: work(lines[70:], "more.txt"), reporter=SilentReporter())


def stored(index: Index, layer: int) -> "np.ndarray":
    return np.concatenate([part.vectors(layer, slice(None)) for part in index.parts]).astype(np.float64)


def rows_of(index: Index, word: str) -> list[int]:
    types = [part.types[int(row["type"])] for part in index.parts for row in part.rows]
    return [number for number, other in enumerate(types) if other == word]


def global_row(index: Index, occurrence: Occurrence) -> int:
    return occurrence.row + sum(part.info.rows for part in index.parts[: occurrence.part])


def cosines(vectors: "np.ndarray", query: "np.ndarray") -> "np.ndarray":
    return vectors @ query / np.linalg.norm(vectors, axis=1) / np.linalg.norm(query)


@pytest.mark.parametrize("block", [7, 1 << 14])
def test_any_token_is_found_in_the_order_of_brute_force(
    index: Index, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(searching, "BLOCK_ROWS", block)
    queries = np.random.default_rng(5).normal(size=(3, index.info.vector_dim)).astype(np.float32)
    found = search(index, all_tokens(index), queries, 2, count=50, space=Space(index, [], 2))
    vectors = stored(index, 2)
    for query, hits in zip(queries, found, strict=True):
        exact = cosines(vectors, query.astype(np.float64))
        order = np.argsort(-exact, kind="stable")[:50]
        assert [hit.score for hit in hits] == pytest.approx(exact[order].tolist(), abs=1e-6)
        ours = exact[[global_row(index, hit.occurrence) for hit in hits]]
        assert (np.diff(ours) <= 1e-6).all()  # the same order, but for those float32 cannot tell apart


def test_only_the_words_own_occurrences_are_found(index: Index) -> None:
    query = np.ones((1, index.info.vector_dim), np.float32)
    candidates = occurrences_of(index, [("bank",)], ignore_case=False)
    [hits] = search(index, candidates, query, 1, count=10_000, space=Space(index, candidates, 1))
    assert sorted(global_row(index, hit.occurrence) for hit in hits) == rows_of(index, "bank")
    best = max(rows_of(index, "bank"), key=lambda row: cosines(stored(index, 1)[[row]], query[0])[0])
    assert global_row(index, hits[0].occurrence) == best


def test_a_run_of_tokens_has_the_mean_of_its_vectors(index: Index) -> None:
    candidates = occurrences_of(index, [("don't",), ("do", "n't")], ignore_case=False)
    query = np.ones((1, index.info.vector_dim), np.float32)
    [hits] = search(index, candidates, query, 2, count=1000, space=Space(index, candidates, 2))
    assert hits
    assert {hit.occurrence.length for hit in hits} == {2}
    vectors = stored(index, 2)
    for hit in hits:
        row = global_row(index, hit.occurrence)
        sentence, token, _ = index.place(hit.occurrence)
        assert sentence.tokens[token : token + 2] == ("do", "n't")
        assert hit.score == pytest.approx(cosines(vectors[[row, row + 1]].mean(axis=0)[None], query[0])[0], abs=1e-6)


def test_case_is_ignored_only_if_asked(make_index: Make) -> None:
    index = make_index(("Play a play", "PLAY"))
    counts = [
        sum(group.count(index) for group in occurrences_of(index, [("play",)], ignore_case=c)) for c in (False, True)
    ]
    assert counts == [1, 3]


def test_equal_scores_come_in_the_order_of_the_corpus(make_index: Make) -> None:
    index = make_index(("a b", "a b", "a b"))
    query = index.parts[0].vectors(2, slice(0, 1))
    [hits] = search(
        index, occurrences_of(index, [("a",)], ignore_case=False), query, 2, count=2, space=Space(index, [], 2)
    )
    assert [hit.occurrence.row for hit in hits] == [0, 2]


def test_a_key_keeps_the_best_of_each_and_what_is_skipped_is_left_out(index: Index) -> None:
    query = np.ones((1, index.info.vector_dim), np.float32)

    def line(occurrence: Occurrence) -> object:
        sentence, _, number = index.place(occurrence)
        return sentence.source, number

    space = Space(index, [], 2)
    [every] = search(index, all_tokens(index), query, 2, count=10_000, space=space)
    [unique] = search(index, all_tokens(index), query, 2, count=10_000, space=space, same=line)
    first: dict[object, object] = {}
    for hit in every:
        first.setdefault(line(hit.occurrence), hit)
    assert unique == list(first.values())
    best = every[0].occurrence
    [rest] = search(index, all_tokens(index), query, 2, count=3, space=space, skip=[lambda o: o == best])
    assert rest == every[1:4]


def test_centring_and_whitening_are_those_of_the_candidates(index: Index) -> None:
    rows = np.arange(40)
    vectors = stored(index, 2)[rows]
    centered = vectors - vectors.mean(axis=0)
    units = Space(index, [Candidates(0, rows)], 2, center=True).unit(vectors.astype(np.float32))
    np.testing.assert_allclose(units, centered / np.linalg.norm(centered, axis=1, keepdims=True), atol=1e-5)
    space = Space(index, all_tokens(index), 2, whiten=True)
    assert space.turn is not None
    white = (stored(index, 2) - stored(index, 2).mean(axis=0)) @ space.turn.astype(np.float64)
    spread = np.cov(white.T, bias=True)
    np.testing.assert_allclose(spread, np.diag(np.diag(spread)), atol=2e-3)
    assert np.diag(spread).max() == pytest.approx(1, abs=2e-3)


def test_a_vector_of_zeros_is_near_to_nothing(index: Index) -> None:
    query = np.zeros((1, index.info.vector_dim), np.float32)
    [hits] = search(index, all_tokens(index), query, 2, count=3, space=Space(index, [], 2))
    assert [hit.score for hit in hits] == [0, 0, 0]


def test_static_neighbours_are_types_by_layer_0(index: Index, embedder: Embedder, tmp_path: Path) -> None:
    found = nearest_types(index, "Play", type_vector("Play", embedder), count=100)
    words = sorted({word for part in index.parts for word in part.types} - {"Play"})
    query = type_vector("Play", embedder).astype(np.float64)
    exact = {word: cosines(type_vector(word, embedder).astype(np.float64)[None], query)[0] for word in words}
    assert [near.word for near in found] == sorted(words, key=lambda word: -exact[word])
    assert [near.score for near in found] == pytest.approx([exact[near.word] for near in found], abs=1e-3)
    assert {near.word: near.count for near in found} == {word: len(rows_of(index, word)) for word in words}
