"""How much memory `elmo embed` takes, and how fast it is, as its input grows: in tokens, and in one single line.

    python tests/benchmarks/memory.py
    python tests/benchmarks/memory.py --lengths 1000 100000 10000000 --long-lines 10000 100000 1000000

Runs the installed command on made-up text and, by default, on a model so small that reading and writing are most of
the work: its memory is the program's own. ``peak`` is of the largest process (the system's own figure), ``all`` the sum
over the command and its processes, looked at every 20 ms.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import made_up
import measuring

from elmo_cli.config import PRESETS, BiLMConfig, CharCNNConfig, LSTMConfig

SMALLEST = BiLMConfig(CharCNNConfig(4, ((1, 4), (2, 4))), LSTMConfig(cell_dim=8, projection_dim=4))
_OUTPUTS = {"npy to a file": "v.npy", "npy to /dev/null": None, "jsonl to a file": "v.jsonl"}


@dataclass(frozen=True)
class Run:
    """What a command took.

    Attributes:
        wall_s: from start to end.
        cpu_s: of all its processes.
        peak_mb: resident memory of its largest process.
        sum_mb: largest sum of resident memory over its processes; pages they share are counted twice.
        bytes: written.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    sum_mb: float
    bytes: int


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
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        with _watching(child.pid) as sums:
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"exit code {child.returncode}: {' '.join(command)}")
    wall = time.perf_counter() - start
    size = output.stat().st_size if output is not None else 0
    cpu = usage.ru_utime + usage.ru_stime
    return Run(wall, cpu, measuring.max_rss_mb(usage), max(sums, default=0.0), size)


@contextmanager
def _watching(pid: int) -> Iterator[list[float]]:
    """Collect the sum of resident memory, in MB, of a process and all below it, where the system tells (Linux)."""
    sums: list[float] = []
    over = Event()

    def watch() -> None:
        while not over.wait(0.02):
            sums.append(sum(map(_resident_mb, _family(pid))))

    thread = Thread(target=watch)
    thread.start()
    try:
        yield sums
    finally:
        over.set()
        thread.join()


def _family(pid: int) -> list[int]:
    """Return a process and all processes that descend from it; those that end meanwhile may be missing."""
    try:
        children = [
            int(child)
            for task in Path(f"/proc/{pid}/task").iterdir()
            for child in (task / "children").read_text().split()
        ]
    except OSError:
        return [pid]
    return [pid, *(member for child in children for member in _family(child))]


def _resident_mb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    except OSError:
        return 0.0


def row_of(name: str, tokens: int, run: Run) -> list[str]:
    sizes = (f"{run.peak_mb:,.0f}", f"{run.sum_mb:,.0f}", f"{run.bytes / 1e6:,.1f}" if run.bytes else "")
    return [name, f"{tokens:,}", *sizes, f"{run.cpu_s:.1f}", f"{run.wall_s:.1f}", f"{tokens / run.cpu_s:,.0f}"]


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
                run = run_embed(model, text, options.input, None if output is None else folder / output)
                rows.append(row_of(f"{kind}, {what}", tokens, run))
                print("  " + " ".join(rows[-1]), file=sys.stderr)
                if output is not None:
                    (folder / output).unlink()
    print(f"elmo embed --input {options.input}, model {options.model or options.preset or 'of 8 numbers a vector'}\n")
    head = ["input, output", "tokens", "peak MB", "all MB", "written MB", "CPU s", "s", "tokens/CPU-s"]
    measuring.print_table(head, rows)


if __name__ == "__main__":
    main()
