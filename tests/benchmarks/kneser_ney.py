"""Perplexity of a Kneser-Ney 5-gram on the tokens, and with the vocabulary, of a model's forward language model.

    python tests/benchmarks/kneser_ney.py train-0?.txt.xz --test test.txt.xz -m small-en

Interpolated modified Kneser-Ney after Chen and Goodman (1998), section 4: three discounts an order, estimated from
counts of counts. Counted as the biLM counts: texts are tokenized in the same way, words outside the model's vocabulary
are ``<UNK>``, each sentence stands alone, its tokens and ``</S>`` are predicted, ``<S>`` is only read. A training text
of 70 million tokens takes about 5 GB of memory and some minutes.
"""

import argparse
import sys
import time
from dataclasses import dataclass

import numpy as np
from measuring import print_table
from numpy.typing import NDArray
from prepared_texts import marked_ids, open_model, prepared

from elmo_cli.text.vocabulary import END_ID, START_ID

_USUAL_DISCOUNTS = (0.5, 1.0, 1.5)  # where counts of counts tell none, as in toy texts; KenLM's fallback


@dataclass(frozen=True)
class Order:
    """The n-grams of one n, and what is known of each context: the first n - 1 words of an n-gram.

    Attributes:
        keys: uint64 [n-grams], sorted: the id of the context times the size of the vocabulary, plus the last word. An
            n-gram's id is its place here; a single word's id is the word. Without use where n is 1.
        counts: uint32 [n-grams], occurrences where n is the largest or the first word is ``<S>``; elsewhere, different
            words that stand before the n-gram.
        totals: int64 [contexts], sum of the counts.
        left_over: float64 [contexts], the share of the context's probability that the next smaller n gives out.
        discounts: float64 [4], taken from a count of 0, 1, 2, and of 3 or more.
    """

    keys: NDArray[np.uint64]
    counts: NDArray[np.uint32]
    totals: NDArray[np.int64]
    left_over: NDArray[np.float64]
    discounts: NDArray[np.float64]

    def discounted(self, counts: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return counts less their discounts."""
        return np.maximum(counts - self.discounts[np.minimum(counts, 3)], 0.0)


@dataclass(frozen=True)
class KneserNey:
    """An interpolated modified Kneser-Ney model; made by `learn`.

    Attributes:
        orders: from single words up.
        size: of the vocabulary, ``<S>`` among it.
    """

    orders: tuple[Order, ...]
    size: int

    def probabilities(self, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
        """Return the probability of each token from those before it in its sentence; 0 for ``<S>``.

        Args:
            ids: [tokens and marks], as `prepared_texts.marked_ids` returns them.
        """
        single = self.orders[0]
        of_words = single.discounted(single.counts) / single.totals[0] + single.left_over[0] / (self.size - 1)
        of_words[START_ID] = 0.0
        found = of_words[ids]
        grams = ids.astype(np.int64)  # id of the gram that starts at each position, -1 where it was never seen
        for n, order in enumerate(self.orders[1:], start=2):
            if not len(order.keys):  # no sentence of the training text was as long
                break
            words, contexts = ids[n - 1 :], grams[: len(ids) - n + 1]
            grams = _look_up(order.keys, contexts, words, self.size)
            counts = np.where(grams >= 0, order.counts[grams], 0).astype(np.uint32)
            # A gram over the end of a sentence was never seen: so no context reaches into the sentence before.
            seen = contexts >= 0
            seen[seen] = order.totals[contexts[seen]] > 0
            at = contexts[seen]
            part = order.discounted(counts[seen]) / order.totals[at]
            tail = found[n - 1 :]
            tail[seen] = part + order.left_over[at] * tail[seen]
        return found


def _look_up(
    keys: NDArray[np.uint64], contexts: NDArray[np.int64], words: NDArray[np.uint32], size: int
) -> NDArray[np.int64]:
    """Return the id of each gram, -1 for those that are not there."""
    wanted = contexts.astype(np.uint64) * np.uint64(size) + words
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where((contexts >= 0) & (keys[places] == wanted), places, -1)


def learn(ids: NDArray[np.uint32], size: int, n: int = 5) -> KneserNey:
    """Count a text and return its model.

    Args:
        ids: [tokens and marks], as `prepared_texts.marked_ids` returns them.
        size: of the vocabulary.
        n: longest n-gram.
    """
    orders: list[Order] = []
    keys = np.zeros(0, dtype=np.uint64)
    counts = np.bincount(ids, minlength=size).astype(np.uint32)
    begins = np.arange(size) == START_ID  # whether each gram begins with <S>, so that nothing can stand before it
    counts[START_ID] = 0  # never predicted
    grams, inside, context_count = ids, np.ones(len(ids), dtype=bool), 1
    for longer in range(2, n + 1):
        # The gram that starts at each position, if it is inside its sentence.
        inside = inside[: len(ids) - longer + 1] & (ids[longer - 2 : len(ids) - 1] != END_ID)
        starts = np.flatnonzero(inside).astype(np.uint32)
        longer_keys = grams[starts].astype(np.uint64)
        longer_keys *= np.uint64(size)
        longer_keys += ids[starts + (longer - 1)]
        by_key = np.argsort(longer_keys)
        longer_keys = longer_keys[by_key]
        starts = starts[by_key]
        del by_key
        is_first = np.empty(len(starts), dtype=bool)
        is_first[:1], is_first[1:] = True, longer_keys[1:] != longer_keys[:-1]
        first = np.flatnonzero(is_first)
        examples = starts[first]
        before = np.bincount(grams[examples + 1], minlength=len(counts)).astype(np.uint32)
        orders.append(_order(keys, np.where(begins, counts, before), size, context_count))
        keys, context_count = longer_keys[first], len(counts)
        del longer_keys, before
        counts = np.diff(first, append=len(starts)).astype(np.uint32)
        begins = ids[examples] == START_ID
        if longer < n:
            numbers = np.cumsum(is_first, dtype=np.uint32)
            numbers -= np.uint32(1)
            grams = np.zeros(len(ids), dtype=np.uint32)
            grams[starts] = numbers
    return KneserNey((*orders, _order(keys, counts, size, context_count)), size)


def _order(keys: NDArray[np.uint64], counts: NDArray[np.uint32], size: int, context_count: int) -> Order:
    counts_of_counts = np.bincount(np.minimum(counts, 5), minlength=6)[1:5]
    discounts = discounts_of(*counts_of_counts.tolist())
    contexts = (keys // np.uint64(size)).astype(np.uint32) if len(keys) else np.zeros(len(counts), dtype=np.uint32)
    totals = np.bincount(contexts, weights=counts, minlength=context_count)
    left_over = np.bincount(contexts, weights=discounts[np.minimum(counts, 3)], minlength=context_count)
    shares = left_over / np.maximum(totals, 1)
    return Order(keys, counts, totals.astype(np.int64), shares, discounts)


def discounts_of(ones: int, twos: int, threes: int, fours: int) -> NDArray[np.float64]:
    """Return the discounts of counts 0, 1, 2 and from 3 on, from how many n-grams have the counts 1 to 4.

    Chen and Goodman (1998), equation (26); `_USUAL_DISCOUNTS` where that is no discount.
    """
    numbers = np.array([ones, twos, threes, fours], dtype=np.float64)
    if ones and twos and threes:
        share = ones / (ones + 2 * twos)
        steps = np.arange(1, 4)
        found = steps - (steps + 1) * share * numbers[1:] / numbers[:3]
        if ((found >= 0) & (found <= steps)).all():
            return np.array([0.0, *found])
    return np.array([0.0, *_USUAL_DISCOUNTS])


def sentence_nats(model: KneserNey, ids: NDArray[np.uint32]) -> NDArray[np.float64]:
    """Return the negative log-likelihood of each sentence's tokens and ``</S>``, in nats."""
    probabilities = model.probabilities(ids)
    is_start = ids == START_ID
    probabilities[is_start] = 1.0
    return -np.add.reduceat(np.log(probabilities), np.flatnonzero(is_start))


def main() -> None:
    """Count the training texts and print the perplexity of each test text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("train", nargs="+", help="a sentence a line")
    parser.add_argument("--test", nargs="+", required=True, help="texts, each measured alone")
    parser.add_argument("-m", "--model", default="small-en", help="whose vocabulary and language")
    parser.add_argument("-n", type=int, default=5, help="longest n-gram")
    arguments = parser.parse_args()
    _, config, vocabulary = open_model(arguments.model)
    training = marked_ids(prepared(arguments.train, config.language), vocabulary)
    started = time.process_time()
    model = learn(training.ids, len(vocabulary), arguments.n)
    print(
        f"counted {len(training.ids):,} tokens and marks in {time.process_time() - started:.0f} CPU s", file=sys.stderr
    )
    rows = []
    for name in arguments.test:
        marked = marked_ids(prepared([name], config.language), vocabulary)
        targets = len(marked.ids) - len(marked.sentences)
        perplexity = np.exp(sentence_nats(model, marked.ids).sum() / targets)
        rows.append((name, f"{len(marked.sentences):,}", f"{targets:,}", f"{perplexity:.2f}"))
    print_table(("text", "sentences", "predictions", f"{arguments.n}-gram perplexity"), rows)
    names = [f"{number} word" + "s" * (number > 1) for number in range(1, arguments.n + 1)]
    sizes = [(f"{(order.counts > 0).sum():,}", *(f"{d:.3f}" for d in order.discounts[1:])) for order in model.orders]
    head = ("n-grams", "different", "discount of 1", "of 2", "of 3 or more")
    print_table(head, [(name, *size) for name, size in zip(names, sizes, strict=True)])


if __name__ == "__main__":
    main()
