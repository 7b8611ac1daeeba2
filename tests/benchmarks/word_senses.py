"""How well the nearest sense tells the senses of words, by each layer of a model and by static vectors.

    python tests/benchmarks/word_senses.py --train semcor-train.tsv --test semcor-test.tsv \
        --inventory wordnet30-inventory.tsv -m small-en --static vectors.txt

As in Peters et al. (2018), section 5.3 and Table 5: a sense is the mean of the vectors of its occurrences in training,
and a test word takes the sense of its lemma and part of speech whose mean has the largest cosine; where training has
none for the lemma, the first one of WordNet. Everything is answered, so that F1 is the share of right answers, in
percent; of several right senses any is right.

SemCor's multiwords (``water_down``) are split at ``_``, as the model has never read such words; the mean of the vectors
of their words stands for them. The quotation marks of the Penn Treebank become ``"``. *Names* are words tagged NNP,
whose senses are mostly person, group and location, so that they tell little; they are counted among *all* and not among
nouns.

WordNet orders senses by how often they stand in SemCor, the test part included. So its first sense does better here
than on other texts; the most frequent sense in training is the fair figure to beat.
"""

import argparse
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from labelled_layers import Labelled, blocks_of_rows, labels_of, model_layers, read_static
from measuring import print_table
from numpy.typing import NDArray

from elmo_cli.text.sources import read_lines

_QUOTES = {"``": '"', "''": '"'}
_PARTS_OF_SPEECH = {"1": "n", "2": "v", "3": "a", "4": "r", "5": "a"}  # first number of a sense key: 5 is a satellite
_COLUMNS = {"all": "nvarp", "nouns": "n", "verbs": "v", "adjectives": "a", "adverbs": "r", "names": "p"}

Word = tuple[str, str]  # lemma and part of speech, among whose senses one is chosen


@dataclass(frozen=True)
class Target:
    """A word to tell the sense of.

    Attributes:
        word: lemma, and part of speech as in WordNet.
        senses: the right sense keys, mostly one.
        is_name: whether it is tagged as a proper noun.
    """

    word: Word
    senses: tuple[str, ...]
    is_name: bool

    @property
    def kind(self) -> str:
        """Part of speech, with names apart."""
        return "p" if self.is_name else self.word[1]


def read_semcor(source: str) -> list[Labelled[Target]]:
    """Return the sentences of a table of token, lemma, part of speech and sense key, with the words that have one."""
    sentences = []
    for rows in blocks_of_rows(source):
        tokens: list[str] = []
        spans, labels = [], []
        for token, _, tag, senses in rows:
            start = len(tokens)
            tokens += [_QUOTES.get(part, part) for part in re.split("_+", token) if part] or ["_"]
            if senses != "_":
                spans.append((start, len(tokens)))
                labels.append(_target(senses, tag))
        sentences.append(Labelled(tokens, spans, labels))
    return sentences


def _target(senses: str, tag: str) -> Target:
    """Read a sense key; further right ones follow behind semicolons, without their lemma."""
    lemma, _, numbers = senses.partition("%")
    keys = tuple(f"{lemma}%{number.rpartition('%')[2]}" for number in numbers.split(";"))
    return Target((lemma.lower(), _PARTS_OF_SPEECH[numbers[0]]), keys, tag.startswith("NNP"))


def first_senses(source: str) -> dict[Word, str]:
    """Return WordNet's first sense of each word, from a table that says which number each sense has."""
    rows = (line.text.split("\t") for line in read_lines(source))
    head = next(rows)
    lemma, part, number, key = (head.index(name) for name in ("lemma", "pos", "sense_number", "sense_key"))
    return {(row[lemma].lower(), row[part]): row[key] for row in rows if row[number] == "1"}


class SenseMeans:
    """Senses as means of vectors.

    Args:
        targets: of the training text.
        vectors: [targets, dim].
    """

    def __init__(self, targets: Sequence[Target], vectors: NDArray[np.float32]) -> None:
        members: defaultdict[tuple[Word, str], list[int]] = defaultdict(list)
        for number, target in enumerate(targets):
            for sense in target.senses:
                members[target.word, sense].append(number)
        senses: defaultdict[Word, list[str]] = defaultdict(list)
        means: defaultdict[Word, list[NDArray[np.float32]]] = defaultdict(list)
        for (word, sense), numbers in members.items():
            senses[word].append(sense)
            means[word].append(_unit(vectors[numbers].mean(axis=0)))
        self._senses = dict(senses)
        self._means = {word: np.stack(rows) for word, rows in means.items()}

    def nearest(self, word: Word, vector: NDArray[np.float32]) -> str | None:
        """Return the sense of a word with the largest cosine, the first seen of equals; None for a new word."""
        if word not in self._senses:
            return None
        return self._senses[word][int((self._means[word] @ vector).argmax())]


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    length = np.linalg.norm(vector)
    return vector / length if length else vector


def most_frequent(targets: Iterable[Target]) -> dict[Word, str]:
    """Return the sense that each word most often has in training."""
    counts: defaultdict[Word, Counter[str]] = defaultdict(Counter)
    for target in targets:
        counts[target.word].update(target.senses)
    return {word: found.most_common(1)[0][0] for word, found in counts.items()}


def scores(targets: Sequence[Target], answers: Sequence[str | None]) -> list[str]:
    """Return the share of right answers, in percent, for each column of the table."""
    right = np.array([answer in target.senses for target, answer in zip(targets, answers, strict=True)])
    kinds = np.array([target.kind for target in targets])
    found = []
    for kind in _COLUMNS.values():
        chosen = right[np.isin(kinds, list(kind))]
        found.append(f"{100 * chosen.mean():.1f}" if len(chosen) else "-")
    return found


@dataclass(frozen=True)
class Task:
    """Targets of training and test, and what stands in for a word that training lacks."""

    train: list[Target]
    test: list[Target]
    first: dict[Word, str]

    def nearest_row(self, name: str, train: NDArray[np.float32], test: NDArray[np.float32]) -> tuple[str, ...]:
        """Return the row of the nearest sense under some vectors, [targets, dim]."""
        means = SenseMeans(self.train, train)
        pairs = zip(self.test, test, strict=True)
        answers = [means.nearest(target.word, vector) or self.first.get(target.word) for target, vector in pairs]
        return (name, *scores(self.test, answers))

    def baseline_rows(self) -> list[tuple[str, ...]]:
        """Return the rows that need no vectors, and how many targets there are."""
        usual = most_frequent(self.train)
        first = [self.first.get(target.word) for target in self.test]
        frequent = [usual.get(target.word) or self.first.get(target.word) for target in self.test]
        seen = [target.senses[0] if target.word in usual else None for target in self.test]
        kinds = Counter(target.kind for target in self.test)
        return [
            ("words to tell", *(f"{sum(kinds[kind] for kind in column):,}" for column in _COLUMNS.values())),
            ("% of them with a lemma of training", *scores(self.test, seen)),
            ("first sense of WordNet", *scores(self.test, first)),
            ("most frequent sense in training", *scores(self.test, frequent)),
        ]


def main() -> None:
    """Compute the vectors, and print a row for each way to tell senses."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--inventory", required=True, help="WordNet's senses and their numbers")
    parser.add_argument("-m", "--model", default="small-en")
    parser.add_argument("--static", help="vectors in word2vec's text format")
    parser.add_argument("--max-sentences", type=int, help="of each file, from its start")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--scratch", type=Path, help="folder with room for all layers, some GB; default: a temporary one"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    train, test = (read_semcor(source)[: arguments.max_sentences] for source in (arguments.train, arguments.test))
    task = Task(labels_of(train), labels_of(test), first_senses(arguments.inventory))
    rows = task.baseline_rows()
    if arguments.static:
        static = read_static(arguments.static)
        name = f"static vectors ({static.coverage(test):.1%} of words)"
        rows.append(task.nearest_row(name, static.layers(train)[0], static.layers(test)[0]))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        before, now = (
            model_layers(arguments.model, part, Path(folder) / name)
            for name, part in {"train.npy": train, "test.npy": test}.items()
        )
        for number in range(len(now)):
            rows.append(task.nearest_row(f"layer {number}", before[number], now[number]))
        rows.append(task.nearest_row("average of the layers", before.mean(axis=0), now.mean(axis=0)))
    print_table(("F1", *_COLUMNS), rows)


if __name__ == "__main__":
    main()
