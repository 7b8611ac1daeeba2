"""Perplexity of a model by the sources of a text, beside that of a Kneser-Ney 5-gram on the same tokens.

    python tests/benchmarks/perplexity_by_source.py test.txt.xz --docs test.docs.tsv.xz -m small-en
    python tests/benchmarks/perplexity_by_source.py test.txt.xz --docs test.docs.tsv.xz --kneser-ney train-0?.txt.xz

The text has a sentence a line. ``--docs`` is a table, parted by tabs, with the columns ``first_line`` (from 1),
``lines`` and ``source``; it tells lines, so --input text, which finds sentences by itself, knows none. The full softmax
predicts tokens and ``</S>`` forward, tokens and ``<S>`` backward; both is the geometric mean. Words outside the
vocabulary are predicted as ``<UNK>``, by both models.
"""

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np
import torch
from kneser_ney import learn, sentence_nats
from measuring import print_table
from numpy.typing import NDArray
from prepared_texts import Marked, marked_ids, open_model, prepared, sentences_of

from elmo_cli.evaluation.losses import SentenceLosses, load_predictor
from elmo_cli.evaluation.perplexity import Tally
from elmo_cli.text.sources import read_lines
from elmo_cli.text.vocabulary import Vocabulary

ALL = "all"


def sources_of_lines(docs: str, line_count: int) -> list[str]:
    """Return the source of each line, from a table of documents; lines that it leaves out have none (``-``)."""
    rows = (line.text.split("\t") for line in read_lines(docs))
    head = next(rows)
    first, count, source = (head.index(name) for name in ("first_line", "lines", "source"))
    found = ["-"] * line_count
    for row in rows:
        start = int(row[first]) - 1
        stop = min(start + int(row[count]), line_count)
        found[start:stop] = [row[source]] * (stop - start)
    return found


def tallies(sources: Iterable[str], losses: Iterable[SentenceLosses]) -> dict[str, Tally]:
    """Return the sums of each source and of all, from the source and the losses of each sentence."""
    found: defaultdict[str, Tally] = defaultdict(Tally)
    for source, sentence in zip(sources, losses, strict=True):
        for name in {source, ALL}:
            found[name].add(sentence)
    return dict(found)


def sums(sources: Sequence[str], marked: Marked, nats: NDArray[np.float64]) -> dict[str, float]:
    """Return the nats of each source and of all, from those of each sentence that has tokens."""
    found: defaultdict[str, float] = defaultdict(float)
    for number, sentence in zip(marked.sentences.tolist(), nats.tolist(), strict=True):
        for name in {sources[number], ALL}:
            found[name] += sentence
    return dict(found)


def rows_of(found: dict[str, Tally], ngram: dict[str, float]) -> list[tuple[str, ...]]:
    """Return the rows of the table, the largest source first and all of them last."""
    rows = []
    for name in sorted(found, key=lambda name: (name == ALL, -found[name].tokens)):
        if not found[name].targets:  # nothing but empty lines
            continue
        figures, other = found[name].perplexity(), ()
        if ngram:
            other = (f"{math.exp(ngram[name] / figures.targets):.1f}",)
        row = (f"{figures.sentences:,}", f"{figures.tokens:,}", f"{figures.oov_rate:.1%}")
        rows.append((name, *row, *(f"{x:.1f}" for x in (figures.forward, figures.backward, figures.both)), *other))
    return rows


def ngram_nats(names: Sequence[str], language: str, vocabulary: Vocabulary, marked: Marked) -> NDArray[np.float64]:
    """Return the nats of each sentence of a text under a 5-gram of training texts."""
    model = learn(marked_ids(prepared(names, language), vocabulary).ids, len(vocabulary))
    return sentence_nats(model, marked.ids)


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text")
    parser.add_argument("--docs", help="which lines are of which source")
    parser.add_argument("--input", default="lines", choices=("lines", "text", "tokens"), help="as elmo's --input")
    parser.add_argument("-m", "--model", default="small-en")
    parser.add_argument("--kneser-ney", nargs="+", metavar="TRAIN", default=[], help="training texts of the 5-gram")
    parser.add_argument("--max-sentences", type=int, help="measure so many at most, evenly spaced")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.docs and arguments.input == "text":
        parser.error("--docs counts lines, and with --input text a line is no sentence")
    torch.set_num_threads(arguments.threads)
    folder, config, vocabulary = open_model(arguments.model)
    corpus = prepared([arguments.text], config.language, arguments.input)
    count = len(corpus.sentence_ends)
    sources = sources_of_lines(arguments.docs, count) if arguments.docs else [ALL] * count
    step = math.ceil(count / arguments.max_sentences) if arguments.max_sentences else 1
    ngram: dict[str, float] = {}
    if arguments.kneser_ney:
        marked = marked_ids(corpus, vocabulary)
        nats = ngram_nats(arguments.kneser_ney, config.language, vocabulary, marked)
        kept = marked.sentences % step == 0
        ngram = sums(sources, Marked(marked.ids, marked.sentences[kept]), nats[kept])
    predictor = load_predictor(folder, config, torch.device("cpu"))
    losses = predictor.losses(islice(sentences_of(corpus), 0, None, step))
    rows = rows_of(tallies(sources[::step], losses), ngram)
    head = ("source", "sentences", "tokens", "<UNK>", "forward", "backward", "both")
    print_table((*head, "5-gram, forward") if ngram else head, rows)


if __name__ == "__main__":
    main()
