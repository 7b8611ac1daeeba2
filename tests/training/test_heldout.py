"""The text held out to measure on, and the unigram model it is compared with."""

import math
from collections.abc import Callable
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_cli.text.corpus import Corpus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary
from elmo_cli.training import heldout
from elmo_cli.training.batches import cut_pieces
from elmo_cli.training.heldout import Frequencies, count_types, split_heldout, target_frequencies

CHUNK = 100  # sentences; the size in a text of 5,000 sentences and more


@pytest.fixture(scope="module")
def large(corpus_of: Callable[..., Corpus]) -> Corpus:
    """A text of 10,050 sentences, every 50th of them empty, of 1 to 9 tokens."""
    return corpus_of(*(" ".join("abcdefghi"[: 1 + n % 9]) if n % 50 else "" for n in range(10_050)))


def test_training_and_held_out_sentences_never_overlap_and_are_all_that_have_tokens(large: Corpus) -> None:
    kept, held_out = split_heldout(large, seed=1)
    full = np.flatnonzero(np.diff(large.sentence_ends, prepend=0))
    assert np.array_equal(np.sort(np.concatenate((kept, held_out))), full)


def test_whole_chunks_of_neighbours_are_held_out(large: Corpus) -> None:
    kept, held_out = split_heldout(large, seed=1)
    full = np.sort(np.concatenate((kept, held_out)))
    chunk_of = np.searchsorted(full, held_out) // CHUNK
    chunks, sizes = np.unique(chunk_of, return_counts=True)
    last = (len(full) - 1) // CHUNK
    assert all(size == CHUNK for chunk, size in zip(chunks, sizes, strict=True) if chunk != last)
    assert len(chunks) > 1


def test_about_a_twentieth_of_the_tokens_is_held_out(large: Corpus) -> None:
    _, held_out = split_heldout(large, seed=1)
    lengths = np.diff(large.sentence_ends, prepend=0)
    assert 0.05 <= lengths[held_out].sum() / lengths.sum() < 0.05 + CHUNK * 5.5 / lengths.sum()


def test_the_seed_decides_which_chunks_are_held_out(large: Corpus) -> None:
    first, again, other = (split_heldout(large, seed=seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("book", range(10))
def test_a_book_in_one_line_is_trained_on(corpus_of: Callable[..., Corpus], book: int) -> None:
    corpus = corpus_of(*(" ".join(["word"] * 500) if n == book else "a b" for n in range(10)))
    kept, held_out = split_heldout(corpus, seed=1)
    assert book in kept
    assert 1 <= len(held_out) <= 4


@pytest.mark.parametrize(("sentences", "held_out"), [(1, 0), (9, 0), (10, 1), (20, 1)])
def test_a_text_of_less_than_ten_sentences_spares_none(
    corpus_of: Callable[..., Corpus], sentences: int, held_out: int
) -> None:
    corpus = corpus_of(*(f"a{n} b ." for n in range(sentences)), "", "")
    kept, spared = split_heldout(corpus, seed=1)
    assert (len(kept), len(spared)) == (sentences - held_out, held_out)


def test_types_are_counted_in_the_chosen_pieces_alone(corpus_of: Callable[..., Corpus]) -> None:
    corpus = corpus_of("a b a", "c a", "b b", "a c d")
    counts = count_types(corpus, cut_pieces(corpus, np.array([0, 2, 3]), 2))
    assert dict(zip(corpus.all_type_texts, counts.tolist(), strict=True)) == {"a": 3, "b": 3, "c": 1, "d": 1}


@settings(max_examples=30)
@given(st.sets(st.integers(0, 19)), st.integers(1, 9), st.sampled_from([1, 7, 1 << 22]))
def test_counting_runs_of_pieces_is_counting_each(twenty: Corpus, chosen: set[int], limit: int, at_once: int) -> None:
    pieces = cut_pieces(twenty, np.array(sorted(chosen), dtype=np.int64), limit)
    plain = np.zeros(twenty.info.types, dtype=np.int64)
    for start, end in zip(pieces.starts, pieces.ends, strict=True):
        np.add.at(plain, twenty.tokens[start:end], 1)
    with patch.object(heldout, "_COUNTED_AT_ONCE", at_once):
        assert np.array_equal(count_types(twenty, pieces), plain)


def test_targets_are_tokens_markers_and_the_unknown(corpus_of: Callable[..., Corpus]) -> None:
    corpus = corpus_of("a b a", "c a")
    frequencies = target_frequencies(corpus, cut_pieces(corpus, np.arange(2), 250), Vocabulary((*SPECIALS, "a")))
    assert frequencies.counts.tolist() == [2, 2, 2, 3]
    assert frequencies.unknown_rate(sentences=2) == 2 / 5


def test_relative_frequencies_are_smoothed_by_one(corpus_of: Callable[..., Corpus]) -> None:
    log_relative = Frequencies(np.array([2, 2, 0, 3])).log_relative()
    np.testing.assert_allclose(np.exp(log_relative), np.array([3, 3, 1, 4]) / 11)


def test_the_unigram_perplexity_is_that_of_a_hand_calculation() -> None:
    training = Frequencies(np.array([2, 2, 1, 5]))  # <S>, </S>, <UNK>, a
    measured = Frequencies(np.array([1, 1, 2, 1]))
    # The start of a sentence is no target. Smoothed by one, the others have 3, 2 and 6 of 11.
    nats = -(math.log(3 / 11) + 2 * math.log(2 / 11) + math.log(6 / 11)) / 4
    assert training.perplexity_of(measured) == pytest.approx(math.exp(nats))


def test_the_unigram_perplexity_of_nothing_is_one() -> None:
    assert Frequencies(np.array([2, 2, 1])).perplexity_of(Frequencies(np.array([0, 0, 0]))) == 1
