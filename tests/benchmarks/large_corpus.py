"""What it takes to begin training on a large text: time and memory to prepare it, and to the first step once prepared.

    python tests/benchmarks/large_corpus.py --tokens 200000000 --types 3000000

Runs the installed `elmo train --max-steps 1` twice on made-up text, of which the n-th most frequent word type stands
about 1/n as often as the first: once with an empty cache, once with the text prepared. ``peak`` is the largest
process's memory as the system says, the mapped pages of the corpus among it; ``own`` is without those.
"""

import argparse
import os
import sys
import tempfile
from pathlib import Path

import measuring
import numpy as np
from processes import run

_LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
_AT_ONCE = 1_000_000  # tokens written
_MEAN = 24  # tokens a sentence


def main() -> None:
    """Make the text, run the commands, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=20_000_000)
    parser.add_argument("--types", type=int, default=3_000_000)
    parser.add_argument("--input", choices=("tokens", "lines"), default="tokens", help="[default: %(default)s]")
    parser.add_argument("--workers", type=int, default=2, help="processes that tokenize [default: %(default)s]")
    parser.add_argument("--folder", type=Path, help="for text and cache [default: the system's temporary folder]")
    options = parser.parse_args()
    measuring.print_machine()
    rows = []
    with tempfile.TemporaryDirectory(prefix="elmo-benchmark-", dir=options.folder) as name:
        folder = Path(name)
        os.environ["ELMO_CACHE"] = str(folder / "cache")
        write_text(folder / "text.txt", options.tokens, options.types, seed=1)
        write_text(folder / "heldout.txt", 2_000, options.types, seed=2)
        command = [measuring.elmo_program(), "train", str(folder / "text.txt"), "--input", options.input, "--force"]
        command += ["--heldout", str(folder / "heldout.txt"), "-o", str(folder / "model"), "--max-steps", "1"]
        command += ["--workers", str(options.workers), "--threads", "1"]
        for what in ("to the first step", "the same, prepared before"):
            took = run(command, log=folder / "log")
            print((folder / "log").read_text(encoding="utf-8"), file=sys.stderr)
            figures = (f"{took.wall_s:.0f}", f"{took.cpu_s:.0f}", f"{options.tokens / took.wall_s:,.0f}")
            rows.append([what, *figures, f"{took.peak_mb:,.0f}", f"{took.own_mb:,.0f}", f"{took.sum_mb:,.0f}"])
    measuring.print_table(["elmo train", "wall s", "CPU s", "tokens/s", "peak MB", "own MB", "all MB"], rows)


def write_text(path: Path, tokens: int, types: int, seed: int) -> None:
    """Write made-up sentences, one a line, as many tokens of as many word types as asked, at most."""
    random = np.random.default_rng(seed)
    words = np.array([_spelled(number) for number in range(types)], dtype=object)
    rising = np.cumsum(1 / np.arange(1, types + 1))
    with path.open("w", encoding="ascii") as file:
        for start in range(0, tokens, _AT_ONCE):
            count = min(_AT_ONCE, tokens - start)
            drawn = words[np.searchsorted(rising, random.random(count) * rising[-1])]
            ends = np.cumsum(random.poisson(_MEAN - 1, size=2 * count // _MEAN + 1) + 1)
            first = 0
            for end in [*ends[ends < count].tolist(), count]:
                file.write(" ".join(drawn[first:end]) + "\n")
                first = end


def _spelled(number: int) -> str:
    """Return the word of a rank, short ones first."""
    word, left = "", number + 1
    while left:
        left, letter = divmod(left - 1, len(_LETTERS))
        word += _LETTERS[letter]
    return word


if __name__ == "__main__":
    main()
