"""Write the lines of a text that trainings on it, ended before their first epoch was, have not read.

    python tests/benchmarks/unread_lines.py train-0?.txt.xz --read 1:11494:4096 --read 2:6764:4096 > unread.txt

Each ``--read`` tells of one training: its seed, its steps, and the tokens of a step in all processes together
(``--batch-tokens`` times processes). The text is read as `elmo train` does by default, a line a sentence. The order of
an epoch is a function of these numbers and of the lengths of the sentences alone.
"""

import argparse
import lzma
import sys
from itertools import chain, islice

import numpy as np
from prepared_texts import prepared

from elmo_cli.config import TrainingSettings
from elmo_cli.training.batches import cut_pieces, epoch_batches


def main() -> None:
    """Write the lines to standard output, and what was read how often to standard error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", help="texts packed by xz, in the order of the trainings")
    parser.add_argument("--read", action="append", required=True, metavar="SEED:STEPS:TOKENS")
    arguments = parser.parse_args()
    corpus = prepared(arguments.corpus, "en")
    sentences = np.arange(corpus.info.sentences)
    pieces = cut_pieces(corpus, sentences, TrainingSettings().max_sentence_tokens)
    if len(pieces) != len(sentences):
        sys.exit("a sentence is empty or is cut: pieces and lines are not the same")
    times = np.zeros(len(pieces), dtype=np.int64)
    for reading in arguments.read:
        seed, steps, step_tokens = map(int, reading.split(":"))
        for numbers in islice(epoch_batches(pieces.lengths, step_tokens, seed=seed, epoch=0), steps):
            times[numbers] += 1
    for count in range(len(arguments.read) + 1):
        print(f"read {count} times: {int(pieces.lengths[times == count].sum()):,} tokens", file=sys.stderr)
    lines = chain.from_iterable(lzma.open(name, "rt", encoding="utf-8", newline="\n") for name in arguments.corpus)
    sys.stdout.writelines(line for line, count in zip(lines, times, strict=True) if not count)


if __name__ == "__main__":
    main()
