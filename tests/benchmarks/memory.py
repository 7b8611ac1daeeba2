"""How much memory `elmo embed` takes, and how fast it is, as its input grows: in tokens, and in one single line.

    python tests/benchmarks/memory.py
    python tests/benchmarks/memory.py --lengths 1000 100000 10000000 --long-lines 10000 100000 1000000

Runs the installed command on made-up text and, by default, on a model so small that reading and writing are most of
the work: its memory is the program's own. ``peak`` and ``all`` are told of in `processes.Run`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import made_up
import measuring
from processes import Run, run

from elmo_cli.config import PRESETS, BiLMConfig, CharCNNConfig, LSTMConfig

SMALLEST = BiLMConfig(CharCNNConfig(4, ((1, 4), (2, 4))), LSTMConfig(cell_dim=8, projection_dim=4))
_OUTPUTS = {"npy to a file": "v.npy", "npy to /dev/null": None, "jsonl to a file": "v.jsonl"}


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="name or folder [default: random weights, vectors of 8 numbers]")
    parser.add_argument("--preset", choices=list(PRESETS), help="random weights of this shape")
    parser.add_argument("--input", choices=("tokens", "lines", "text"), default="tokens", help="[default: %(default)s]")
    parser.add_argument("--lengths", type=int, nargs="*", default=[1000, 100_000], metavar="TOKENS")
    parser.add_argument("--long-lines", type=int, nargs="*", default=[10_000, 100_000], metavar="TOKENS")
    parser.add_argument("--outputs", nargs="*", choices=list(_OUTPUTS), default=list(_OUTPUTS), help="[default: all]")
    parser.add_argument("--folder", type=Path, help="for texts and vectors [default: the system's temporary folder]")
    return parser.parse_args()


def run_embed(model: str, text: Path, mode: str, output: Path | None) -> Run:
    """Run the command once; ``output`` None sends npy to /dev/null."""
    command = [measuring.elmo_program(), "-q", "embed", str(text), "-m", model, "--input", mode]
    if output is not None:
        command += ["-o", str(output), "--force"]
    return run(command, output)


def row_of(name: str, tokens: int, took: Run) -> list[str]:
    sizes = (f"{took.peak_mb:,.0f}", f"{took.sum_mb:,.0f}", f"{took.bytes / 1e6:,.1f}" if took.bytes else "")
    return [name, f"{tokens:,}", *sizes, f"{took.cpu_s:.1f}", f"{took.wall_s:.1f}", f"{tokens / took.cpu_s:,.0f}"]


def main() -> None:
    options = parse_options()
    measuring.print_machine()
    rows = []
    with tempfile.TemporaryDirectory(prefix="elmo-benchmark-", dir=options.folder) as name:
        folder = Path(name)
        config = PRESETS[options.preset] if options.preset else SMALLEST
        model = options.model or str(made_up.make_model(folder / "model", config))
        inputs: list[tuple[str, int, int | None]] = [("lines of 20", tokens, 20) for tokens in options.lengths]
        inputs += [("one line", tokens, None) for tokens in options.long_lines]
        for kind, tokens, sentence_tokens in inputs:
            text = made_up.make_text(folder / "text.txt", tokens, sentence_tokens)
            for what in options.outputs:
                output = _OUTPUTS[what]
                took = run_embed(model, text, options.input, None if output is None else folder / output)
                rows.append(row_of(f"{kind}, {what}", tokens, took))
                print("  " + " ".join(rows[-1]), file=sys.stderr)
                if output is not None:
                    (folder / output).unlink()
    print(f"elmo embed --input {options.input}, model {options.model or options.preset or 'of 8 numbers a vector'}\n")
    head = ["input, output", "tokens", "peak MB", "all MB", "written MB", "CPU s", "s", "tokens/CPU-s"]
    measuring.print_table(head, rows)


if __name__ == "__main__":
    main()
