"""How well a linear probe reads parts of speech from each layer of a model, and from static vectors.

    python tests/benchmarks/pos_probe.py --train train.conllu --dev dev.conllu --test test.conllu \
        -m small-en --static vectors.txt

Universal parts of speech of CoNLL-U files (column 4), a label a syntactic word; the model reads the words as they are
written in column 2. The probe is logistic regression on features brought to mean 0 and variance 1, by L-BFGS on all of
the training words at once, from weights of zero, so that nothing is drawn by chance. Every ten iterations, or fewer
where these take twelve evaluations of the loss, the development words are tagged; the weights that did best are kept,
and three times without a better result end it, or the loss standing still. Static vectors come from
`static_vectors.py`, of the same width and the same text.
"""

import argparse
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from labelled_layers import Labelled, blocks_of_rows, labels_of, model_layers, read_static
from measuring import print_table
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import cross_entropy

_ROUNDS, _ITERATIONS, _PATIENCE = 50, 10, 3
_EVALUATIONS = 12  # a round
_DECAY = 1e-6  # of the squared weights; keeps the weights of features that are one and the same finite

Vectors = dict[str, NDArray[np.float32]]  # [words, dim] of "train", "dev" and "test"


def read_conllu(source: str) -> list[Labelled[str]]:
    """Return the words of each sentence with their universal parts of speech."""
    sentences = []
    for rows in blocks_of_rows(source):
        words = [row for row in rows if row[0].isdigit()]  # neither multiword tokens (1-2) nor empty nodes (1.1)
        spans = [(number, number + 1) for number in range(len(words))]
        sentences.append(Labelled([row[1] for row in words], spans, [row[3] for row in words]))
    return sentences


@dataclass(frozen=True)
class Probe:
    """A linear classifier of vectors.

    Attributes:
        weight: [dim, classes].
        bias: [classes].
        iterations: of L-BFGS until these weights.
        dev_accuracy: that they reached.
    """

    weight: Tensor
    bias: Tensor
    iterations: int
    dev_accuracy: float

    def classes(self, vectors: Tensor) -> Tensor:
        """Return the most probable class of each vector."""
        return (vectors @ self.weight + self.bias).argmax(dim=1)


def learn_probe(train: tuple[Tensor, Tensor], dev: tuple[Tensor, Tensor], class_count: int) -> Probe:
    """Learn from vectors and their classes, and stop by others."""
    vectors, classes = train
    weight = torch.zeros(vectors.shape[1], class_count, requires_grad=True)
    bias = torch.zeros(class_count, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [weight, bias],
        max_iter=_ITERATIONS,
        max_eval=_EVALUATIONS,
        history_size=20,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        found = cross_entropy(vectors @ weight + bias, classes) + _DECAY * weight.square().sum()
        found.backward()
        return found

    best = Probe(weight.detach().clone(), bias.detach().clone(), 0, 0.0)
    last_loss, waited = float("inf"), 0
    for _ in range(_ROUNDS):
        before = float(optimizer.step(loss).detach())  # the loss at the start of these iterations
        accuracy = _accuracy(Probe(weight.detach(), bias.detach(), 0, 0.0).classes(dev[0]), dev[1])
        waited += 1
        if accuracy > best.dev_accuracy:
            done = optimizer.state[weight]["n_iter"]
            best = Probe(weight.detach().clone(), bias.detach().clone(), done, accuracy)
            waited = 0
        if waited == _PATIENCE or last_loss - before < 1e-6:
            break
        last_loss = before
    return best


def _accuracy(found: Tensor, right: Tensor) -> float:
    return float((found == right).double().mean())


@dataclass(frozen=True)
class Task:
    """The classes of the words of each part, and which test words never stand in training."""

    classes: dict[str, Tensor]
    class_count: int
    is_new: Tensor

    def row(self, name: str, vectors: Vectors) -> tuple[str, ...]:
        """Learn a probe of some vectors and return its row of the table."""
        mean, deviation = vectors["train"].mean(axis=0), vectors["train"].std(axis=0)
        scaled = {part: torch.from_numpy((x - mean) / np.maximum(deviation, 1e-6)) for part, x in vectors.items()}
        probe = learn_probe(*((scaled[part], self.classes[part]) for part in ("train", "dev")), self.class_count)
        dim = str(vectors["train"].shape[1])
        found = probe.classes(scaled["test"])
        return (name, dim, str(probe.iterations), f"{probe.dev_accuracy:.2%}", *self.accuracies(found))

    def accuracies(self, found: Tensor) -> tuple[str, str]:
        """Return the accuracy on all test words and on new ones."""
        right = self.classes["test"]
        return f"{_accuracy(found, right):.2%}", f"{_accuracy(found[self.is_new], right[self.is_new]):.2%}"


def make_task(data: dict[str, list[Labelled[str]]]) -> tuple[Task, dict[str, int]]:
    """Return the task, and the number of each class."""
    numbers = {
        tag: number for number, tag in enumerate(sorted({tag for part in data.values() for tag in labels_of(part)}))
    }
    classes = {name: torch.tensor([numbers[tag] for tag in labels_of(part)]) for name, part in data.items()}
    known = set(_words(data["train"]))
    is_new = torch.tensor([word not in known for word in _words(data["test"])], dtype=torch.bool)
    return Task(classes, len(numbers), is_new), numbers


def most_frequent(train: Sequence[Labelled[str]], words: Sequence[str]) -> list[str]:
    """Return the tag that each word most often has in training; for new words, the tag of most word types there."""
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for word, tag in zip(_words(train), labels_of(train), strict=True):
        counts[word][tag] += 1
    tags = {word: found.most_common(1)[0][0] for word, found in counts.items()}
    usual = Counter(tags.values()).most_common(1)[0][0]
    return [tags.get(word, usual) for word in words]


def _words(sentences: Sequence[Labelled[str]]) -> list[str]:
    return [token for sentence in sentences for token in sentence.tokens]


def main() -> None:
    """Compute the vectors, learn a probe of each layer and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for part in ("train", "dev", "test"):
        parser.add_argument(f"--{part}", required=True)
    parser.add_argument("-m", "--model", default="small-en")
    parser.add_argument("--static", help="vectors in word2vec's text format")
    parser.add_argument("--max-sentences", type=int, help="of each file, from its start")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument(
        "--scratch", type=Path, help="folder with room for all layers, some GB; default: a temporary one"
    )
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    data = {part: read_conllu(vars(arguments)[part])[: arguments.max_sentences] for part in ("train", "dev", "test")}
    task, numbers = make_task(data)
    found = [numbers[tag] for tag in most_frequent(data["train"], _words(data["test"]))]
    rows = [("the word's most frequent tag", "", "", "", *task.accuracies(torch.tensor(found)))]
    if arguments.static:
        static = read_static(arguments.static)
        name = f"static vectors ({static.coverage(data['test']):.1%} of test words)"
        rows.append(task.row(name, {part: static.layers(sentences)[0] for part, sentences in data.items()}))
    with tempfile.TemporaryDirectory(dir=arguments.scratch) as folder:
        layers = {
            part: model_layers(arguments.model, sentences, Path(folder) / f"{part}.npy")
            for part, sentences in data.items()
        }
        choices: dict[str, Callable[[NDArray[np.float32]], NDArray[np.float32]]] = {
            f"layer {number}": lambda x, number=number: np.array(x[number]) for number in range(len(layers["test"]))
        }
        choices["average of the layers"] = lambda x: x.mean(axis=0)
        for name, choose in choices.items():
            rows.append(task.row(name, {part: choose(found) for part, found in layers.items()}))
    print_table(("features of the probe", "dim", "iterations", "dev", "test", "test, new words"), rows)


if __name__ == "__main__":
    main()
