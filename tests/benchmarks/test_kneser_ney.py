"""The 5-gram of the benchmarks against one that is written down from the formula, with dictionaries."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from kneser_ney import KneserNey, discounts_of, learn, sentence_nats
from numpy.typing import NDArray

from elmo_cli.text.vocabulary import END_ID, START_ID

SIZE = 14
ORDER = 5


class ByDictionaries:
    """Modified Kneser-Ney, one probability at a time."""

    def __init__(self, sentences: list[list[int]]) -> None:
        raw = [Counter[tuple[int, ...]]() for _ in range(ORDER + 1)]
        before: defaultdict[tuple[int, ...], set[int]] = defaultdict(set)
        for sentence in sentences:
            for n in range(1, ORDER + 1):
                for start in range(len(sentence) - n + 1):
                    gram = tuple(sentence[start : start + n])
                    raw[n][gram] += 1
                    if start:
                        before[gram].add(sentence[start - 1])
        self.counts = {
            n: {
                gram: count if n == ORDER or gram[0] == START_ID else len(before[gram])
                for gram, count in raw[n].items()
                if gram != (START_ID,)
            }
            for n in range(1, ORDER + 1)
        }
        numbers = {n: Counter(self.counts[n].values()) for n in self.counts}
        self.discounts = {n: discounts_of(*(found[k] for k in (1, 2, 3, 4))) for n, found in numbers.items()}

    def probability(self, context: tuple[int, ...], word: int) -> float:
        counts, discounts = self.counts[len(context) + 1], self.discounts[len(context) + 1]
        lower = self.probability(context[1:], word) if context else 1 / (SIZE - 1)
        following = [count for gram, count in counts.items() if gram[:-1] == context]
        if not following:
            return lower
        count = counts.get((*context, word), 0)
        left_over = sum(discounts[min(other, 3)] for other in following)
        return (max(count - discounts[min(count, 3)], 0) + left_over * lower) / sum(following)


def toy_sentences(seed: int, count: int) -> list[list[int]]:
    """Return sentences between marks in which some words are frequent and some contexts come often."""
    random = np.random.default_rng(seed)
    words = np.minimum(random.zipf(1.4, size=(count, 9)) + 1, SIZE - 1)
    return [[START_ID, *row[: random.integers(1, 10)].tolist(), END_ID] for row in words]


def flat(sentences: list[list[int]]) -> NDArray[np.uint32]:
    return np.array([word for sentence in sentences for word in sentence], dtype=np.uint32)


@pytest.fixture(scope="module")
def toy() -> list[list[int]]:
    return toy_sentences(1, 300)


@pytest.fixture(scope="module")
def model(toy: list[list[int]]) -> KneserNey:
    return learn(flat(toy), SIZE, ORDER)


def test_discounts_are_those_of_the_formula() -> None:
    # Y = 10 / (10 + 2 * 6) = 5/11; 1 - 2 Y 6/10, 2 - 3 Y 3/6, 3 - 4 Y 2/3
    assert discounts_of(10, 6, 3, 2) == pytest.approx([0, 5 / 11, 29 / 22, 59 / 33])


def test_without_counts_of_counts_the_discounts_are_the_usual_ones() -> None:
    assert discounts_of(0, 6, 3, 2).tolist() == [0.0, 0.5, 1.0, 1.5]


def test_probabilities_are_those_of_the_formula(toy: list[list[int]], model: KneserNey) -> None:
    other = ByDictionaries(toy)
    for order in range(1, ORDER + 1):
        assert model.orders[order - 1].discounts == pytest.approx(other.discounts[order])
    for sentence in [*toy[:20], *toy_sentences(2, 40)]:
        expected = [
            other.probability(tuple(sentence[max(0, at - ORDER + 1) : at]), sentence[at])
            for at in range(1, len(sentence))
        ]
        assert model.probabilities(flat([sentence]))[1:] == pytest.approx(expected, rel=1e-12)


def test_the_words_after_any_context_share_a_probability_of_one(toy: list[list[int]], model: KneserNey) -> None:
    contexts = [sentence[:at] for sentence in [*toy[:15], *toy_sentences(3, 15)] for at in range(1, len(sentence))]
    for context in contexts:
        total = sum(model.probabilities(flat([[*context, word]]))[-1] for word in range(SIZE) if word != START_ID)
        assert total == pytest.approx(1, abs=1e-9)


def test_a_sentence_does_not_depend_on_its_neighbours(model: KneserNey) -> None:
    sentences = toy_sentences(4, 30)
    alone = [sentence_nats(model, flat([sentence])).item() for sentence in sentences]
    assert sentence_nats(model, flat(sentences)) == pytest.approx(alone, rel=1e-12)


def test_a_word_that_training_never_saw_has_a_probability(toy: list[list[int]]) -> None:
    model = learn(flat(toy), SIZE + 1, ORDER)
    assert 0 < model.probabilities(flat([[START_ID, SIZE, END_ID]]))[1] < 0.01


def test_a_text_of_shorter_sentences_than_the_longest_ngram_is_counted(toy: list[list[int]]) -> None:
    short = [[START_ID, 3, END_ID], [START_ID, 4, END_ID], [START_ID, 3, END_ID]]
    model, other = learn(flat(short), SIZE, ORDER), learn(flat(short), SIZE, 3)
    ids = flat(toy[:20])
    assert model.probabilities(ids) == pytest.approx(other.probabilities(ids), rel=1e-12)
