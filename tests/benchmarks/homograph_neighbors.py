"""Do the nearest occurrences of a homograph have its sense? By layer, beside layer 0 and chance.

    python tests/benchmarks/homograph_neighbors.py homographs-train.tsv.xz -m small-en
    python tests/benchmarks/homograph_neighbors.py elmo_cli/neighbors/demo/senses.tsv -m small-en

The file is a table with a header: a word, its sense, a sentence, and perhaps the byte at which the word starts, in a
column `start`; else its first occurrence counts. Each sentence in turn is the query, all others of the word are the
corpus; a figure is the share of the nearest five that have the query's sense, averaged over the queries of a word and
then over words. Chance is the share of the sense among the other sentences. Layer 0 knows no context, so all of a
word's occurrences are equally near (but for capitals): they are taken in random order.
"""

import argparse
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import elmo_cli
from elmo_cli.neighbors.corpus_text import CorpusText, Reading
from elmo_cli.neighbors.index import Index, Work, create_index
from elmo_cli.neighbors.index_info import IndexInfo, mark_model
from elmo_cli.neighbors.search import Candidates, Space, occurrences_of
from elmo_cli.neighbors.selecting import TokenSelection
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.registry import find_model

NEAREST = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", help="table of word, sense, sentence")
    parser.add_argument("-m", "--model", default="small-en")
    parser.add_argument("--words", action="store_true", help="a row a word, too")
    parser.add_argument("--least", type=int, default=5, help="sentences that a sense must have to count")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index, words = index_of(arguments.file, arguments.model, Path(folder) / "index")
        print_tables(index, words, least=arguments.least, each=arguments.words)


def index_of(file: str, model: str, target: Path) -> tuple[Index, list[str]]:
    """Return an index of the words of a table, all layers, and the words."""
    folder = find_model(model)
    config = read_config(folder)
    embedder = elmo_cli.load(model, device="cpu")._embedder
    text = CorpusText([file], Reading(text_col="sentence", language=config.language))
    words = sorted({str(word_of(sentence.fields)) for _, sentence in text.read(None)})
    layers = tuple(range(config.bilm.layer_count))
    info = IndexInfo(mark_model(folder, config), layers, config.bilm.vector_dim, text.reading)
    work = Work(text, None, embedder, TokenSelection(forms=[(word,) for word in words]))
    return create_index(target, info, work, force=True, reporter=SilentReporter()), words


def word_of(fields: Mapping[str, object]) -> object:
    return fields.get("word", fields.get("homograph"))


def senses_of(index: Index, word: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return the rows of a word's labelled occurrences, one a sentence, and their senses."""
    found: dict[int, tuple[int, str]] = {}
    part = index.parts[0]
    for group in occurrences_of(index, [(word,)], ignore_case=True):
        for row in group.rows if group.rows is not None else ():
            number = int(part.rows[row]["sentence"])
            sentence = part.sentence(number)
            fields = sentence.fields
            start, _ = sentence.spans[int(part.rows[row]["token"])]
            at = len(sentence.text[:start].encode())
            if word_of(fields) == word and int(fields.get("start", at)) == at:
                found.setdefault(number, (int(row), str(fields.get("sense", fields.get("wordid")))))
    return np.array([row for row, _ in found.values()], np.int64), [sense for _, sense in found.values()]


def shares(index: Index, rows: NDArray[np.int64], senses: list[str], layer: int, **space: bool) -> float:
    """Return the share of the nearest occurrences that have the query's sense, over all of a word's occurrences."""
    candidates = [Candidates(0, rows)]
    vectors = index.parts[0].vectors(layer, rows)
    units = Space(index, candidates, layer, **space).unit(vectors)
    scores = np.round(units @ units.T, 6)
    np.fill_diagonal(scores, -np.inf)
    ties = np.random.default_rng(1).random(scores.shape)
    order = np.lexsort((ties, -scores), axis=1)[:, : min(NEAREST, len(rows) - 1)]  # the query itself comes last
    labels = np.array(senses)
    return float((labels[order] == labels[:, None]).mean())


def chance_of(senses: list[str]) -> float:
    counts = {sense: senses.count(sense) for sense in senses}
    return float(np.mean([(counts[sense] - 1) / (len(senses) - 1) for sense in senses]))


def measured(index: Index, words: list[str], least: int) -> Iterator[tuple[str, int, list[float]]]:
    """Yield for each word with two senses or more: occurrences, and chance and the shares of each way to compare."""
    for word in words:
        rows, senses = senses_of(index, word)
        keep = [number for number, sense in enumerate(senses) if senses.count(sense) >= least]
        rows, senses = rows[keep], [senses[number] for number in keep]
        if len(set(senses)) < 2:
            continue
        layers = [shares(index, rows, senses, layer) for layer in index.info.layers]
        top = index.info.layers[-1]
        extra = [shares(index, rows, senses, top, center=True), shares(index, rows, senses, top, whiten=True)]
        yield word, len(rows), [chance_of(senses), *layers, *extra]


def print_tables(index: Index, words: list[str], *, least: int, each: bool) -> None:
    found = list(measured(index, words, least))
    layers = [f"layer {layer}" for layer in index.info.layers]
    names = ["chance", *layers, f"{layers[-1]}, centred", f"{layers[-1]}, whitened"]
    print("| word | sentences | " + " | ".join(names) + " |")
    print("| --- " + "| ---: " * (len(names) + 1) + "|")
    for word, count, figures in found if each else ():
        print(f"| {word} | {count} | " + " | ".join(f"{figure:.3f}" for figure in figures) + " |")
    means = np.mean([figures for _, _, figures in found], axis=0)
    total = sum(count for _, count, _ in found)
    print(f"| {len(found)} words | {total:,} | " + " | ".join(f"{figure:.3f}" for figure in means) + " |")


if __name__ == "__main__":
    main()
