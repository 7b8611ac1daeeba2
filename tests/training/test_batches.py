"""Sentences to batches: each once an epoch, within the budget, in an order that seed and epoch alone decide."""

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sentence_batches import make_batch

from elmo_cli.bilm.batching import split_by_budget
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary
from elmo_cli.training.batches import BatchMaker, Pieces, cut_pieces, epoch_batches

MARKERS = 2
some_lengths = st.lists(st.integers(1, 30), min_size=1, max_size=60)
MANY = np.random.default_rng(0).integers(1, 40, size=40_000)  # more than one buffer of the shuffle


def batches_of(lengths: object, budget: int, *, seed: int = 1, epoch: int = 0) -> list[list[int]]:
    numbers = np.asarray(lengths, dtype=np.int64)
    return [batch.tolist() for batch in epoch_batches(numbers, budget, seed=seed, epoch=epoch)]


def all_sentences(corpus: Corpus) -> NDArray[np.int64]:
    return np.arange(corpus.info.sentences)


def texts_of(corpus: Corpus, pieces: Pieces) -> list[str]:
    return [
        " ".join(corpus.type_texts(corpus.tokens[start:end].tolist()))
        for start, end in zip(pieces.starts, pieces.ends, strict=True)
    ]


@given(some_lengths, st.integers(1, 80), st.integers(0, 3), st.integers(0, 3))
def test_every_piece_comes_once_an_epoch(lengths: list[int], budget: int, seed: int, epoch: int) -> None:
    batches = batches_of(lengths, budget, seed=seed, epoch=epoch)
    assert sorted(number for batch in batches for number in batch) == list(range(len(lengths)))


@given(some_lengths, st.integers(1, 80))
def test_a_batch_keeps_the_budget_unless_one_piece_alone_exceeds_it(lengths: list[int], budget: int) -> None:
    for batch in batches_of(lengths, budget):
        assert len(batch) == 1 or sum(lengths[number] + MARKERS for number in batch) <= budget


@given(some_lengths, st.integers(1, 80))
def test_no_batch_could_take_in_its_neighbour(lengths: list[int], budget: int) -> None:
    pieces = np.arange(len(lengths))
    batches = list(split_by_budget(pieces, np.array(lengths), budget))
    for batch, following in pairwise(batches):
        assert sum(lengths[number] + MARKERS for number in [*batch, following[0]]) > budget


def test_a_large_text_comes_whole_and_within_the_budget() -> None:
    batches = batches_of(MANY, 1024)
    assert sorted(number for batch in batches for number in batch) == list(range(len(MANY)))
    assert max(sum(MANY[batch]) + MARKERS * len(batch) for batch in batches) <= 1024


def test_sentences_of_like_length_are_together() -> None:
    spreads = [MANY[batch].max() - MANY[batch].min() for batch in batches_of(MANY, 1024)]
    assert np.mean(spreads) < 1


def test_batches_do_not_come_by_length() -> None:
    means = [MANY[batch].mean() for batch in batches_of(MANY, 1024)]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_seed_and_epoch_alone_decide_the_order() -> None:
    lengths = MANY[:500]
    assert batches_of(lengths, 256) == batches_of(lengths, 256)
    assert batches_of(lengths, 256) != batches_of(lengths, 256, epoch=1)
    assert batches_of(lengths, 256) != batches_of(lengths, 256, seed=2)
    assert batches_of(lengths, 256, seed=1, epoch=2) != batches_of(lengths, 256, seed=2, epoch=1)


def test_no_pieces_make_no_batches() -> None:
    assert batches_of([], 100) == []


@pytest.mark.parametrize(
    ("limit", "pieces"),
    [
        (9, ["a b c d e", "f", "g h"]),
        (5, ["a b c d e", "f", "g h"]),
        (2, ["a b", "c d", "e", "f", "g h"]),
        (1, ["a", "b", "c", "d", "e", "f", "g", "h"]),
    ],
)
def test_long_sentences_are_cut_and_nothing_is_dropped(
    corpus_of: Callable[..., Corpus], limit: int, pieces: list[str]
) -> None:
    corpus = corpus_of("a b c d e", "", "f", "g h")
    assert texts_of(corpus, cut_pieces(corpus, all_sentences(corpus), limit)) == pieces


@pytest.mark.parametrize(("limit", "cut"), [(2, 2), (5, 0)])
def test_sentences_are_counted_and_those_that_are_cut(corpus_of: Callable[..., Corpus], limit: int, cut: int) -> None:
    corpus = corpus_of("a b c d e", "", "f", "g h", "i j k")  # "i j k" begins where "g h" ends, and is no rest of it
    pieces = cut_pieces(corpus, all_sentences(corpus), limit)
    assert (pieces.sentences, pieces.cut_sentences) == (4, cut)


def test_only_the_sentences_asked_for_have_pieces(corpus_of: Callable[..., Corpus]) -> None:
    corpus = corpus_of("a b c d e", "", "f", "g h")
    pieces = cut_pieces(corpus, np.array([0, 1, 3]), 3)
    assert texts_of(corpus, pieces) == ["a b c", "d e", "g h"]
    assert (len(pieces), pieces.token_count, pieces.lengths.tolist()) == (3, 7, [3, 2, 2])


def test_a_batch_holds_what_a_plain_construction_does(twenty: Corpus) -> None:
    pieces = cut_pieces(twenty, all_sentences(twenty), 5)
    vocabulary = Vocabulary((*SPECIALS, ".", "the", "my", "ladder"))
    numbers = np.array([7, 0, 30, 8, 2])
    batch = BatchMaker(twenty, pieces, vocabulary, 12)(numbers)
    texts = texts_of(twenty, pieces)
    plain = make_batch([texts[number].split() for number in numbers], vocabulary, 12)
    assert batch.lengths == plain.lengths
    assert torch.equal(batch.targets, plain.targets)
    assert torch.equal(batch.chars[batch.tokens], plain.chars[plain.tokens])


def test_each_type_of_a_batch_is_spelled_once(twenty: Corpus) -> None:
    pieces = cut_pieces(twenty, all_sentences(twenty), 250)
    batch = BatchMaker(twenty, pieces, Vocabulary(SPECIALS), 50)(np.arange(len(pieces)))
    assert len(batch.chars) == twenty.info.types + MARKERS
    assert len(torch.unique(batch.chars, dim=0)) == len(batch.chars)


def test_a_literal_marker_in_the_text_is_the_marker(corpus_of: Callable[..., Corpus]) -> None:
    corpus = corpus_of("a </S> b <S> <UNK>")
    pieces = cut_pieces(corpus, all_sentences(corpus), 250)
    batch = BatchMaker(corpus, pieces, Vocabulary((*SPECIALS, "a")), 10)(np.array([0]))
    assert batch.targets.tolist() == [0, 3, 1, 2, 0, 2, 1]
