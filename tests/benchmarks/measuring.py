"""What all benchmarks share: contenders that take turns, tables, and the machine's name.

Standard library only, as the Python of another tool imports it too.
"""

import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent

Task = Callable[..., int]  # does the work and returns how many tokens it was


@dataclass(frozen=True)
class Round:
    """One run of one task.

    Attributes:
        tokens: that went through.
        wall_s: seconds by the clock.
        cpu_s: seconds of all threads of the process.
        peak_mb: most memory resident during the run, the model's among it.
    """

    tokens: int
    wall_s: float
    cpu_s: float
    peak_mb: float

    @property
    def per_cpu_s(self) -> float:
        return self.tokens / self.cpu_s

    @property
    def per_wall_s(self) -> float:
        return self.tokens / self.wall_s


def serve(tasks: Mapping[str, Task]) -> None:
    """Be a child that has loaded all it needs: do the tasks that come by standard input, one after the other.

    A request is a line of JSON, ``{"task": NAME, ...}`` with the task's arguments; the answer is a `Round` as JSON.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a library prints must not be taken for an answer
    print(json.dumps({"ready": True}), file=answers)
    for line in sys.stdin:
        request = json.loads(line)
        task = tasks[request.pop("task")]
        print(json.dumps(asdict(timed(task, **request))), file=answers)


def timed(task: Task, **arguments: object) -> Round:
    """Do a task in this process and measure it."""
    _forget_peak()
    wall, cpu = time.perf_counter(), time.process_time()
    tokens = task(**arguments)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return Round(tokens, wall, cpu, peak_mb() or max_rss_mb(resource.getrusage(resource.RUSAGE_SELF)))


def _forget_peak() -> None:
    """Start the peak of this process's memory anew, where Linux allows it."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_mb(process: int | str = "self") -> float | None:
    """Return the most memory that a process has had resident; None where the system does not tell (all but Linux)."""
    with suppress(OSError):
        for line in Path(f"/proc/{process}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
    return None


def max_rss_mb(usage: resource.struct_rusage) -> float:
    """Return the largest resident memory of what was used, which macOS counts in bytes and Linux in KB."""
    return usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)


class Contender:
    """A child process that loads once and works when it is told to.

    Args:
        command: that ends in `serve`.
        threads: of arithmetic; told to the child by the environment too, for libraries that ask there.
    """

    def __init__(self, command: Sequence[object], threads: int) -> None:
        # Waiting threads sleep: on a busy machine they would otherwise spin, and be counted as work.
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE", "OMP_NUM_THREADS": str(threads)}
        environment |= {"TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error"}
        self._command = [str(part) for part in command]
        self._child = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def wait_until_ready(self) -> None:
        """Return when everything is loaded."""
        self._answer()

    def run(self, task: str, **arguments: object) -> Round:
        """Let the child do a task, and wait for its end."""
        if self._child.stdin is None:
            raise RuntimeError("the child was started without a pipe")
        print(json.dumps({"task": task, **arguments}), file=self._child.stdin, flush=True)
        return Round(**self._answer())

    def close(self) -> None:
        """End the child, which has nothing to save."""
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            if pipe is not None:
                pipe.close()

    def _answer(self) -> dict[str, Any]:
        line = self._child.stdout.readline() if self._child.stdout is not None else ""
        if not line:
            raise SystemExit(f"ended without an answer (exit code {self._child.wait()}): {' '.join(self._command)}")
        answer: dict[str, Any] = json.loads(line)
        return answer


@contextmanager
def contenders(commands: Mapping[str, tuple[Sequence[object], int]]) -> Iterator[dict[str, Contender]]:
    """Start contenders by name, one after the other, and end them with the context."""
    with ExitStack() as stack:
        found = {}
        for name, (command, threads) in commands.items():
            found[name] = Contender(command, threads)
            stack.callback(found[name].close)
            found[name].wait_until_ready()
        yield found


def taking_turns(rows: Mapping[str, Callable[[], Round]], rounds: int) -> dict[str, list[Round]]:
    """Run all rows once a round, so that a busy minute of the machine falls on all of them alike."""
    results: dict[str, list[Round]] = {name: [] for name in rows}
    for number in range(rounds):
        for name, run in rows.items():
            results[name].append(run())
            print(f"  round {number + 1}: {name}: {results[name][-1].per_cpu_s:,.0f} tokens/CPU-s", file=sys.stderr)
    return results


def spread(values: Sequence[float], form: str = ",.0f") -> str:
    """Return the median, and the least and the largest in brackets."""
    middle = f"{statistics.median(values):{form}}"
    return middle if len(values) == 1 else f"{middle} ({min(values):{form}}-{max(values):{form}})"


def ratio(ours: Sequence[Round], theirs: Sequence[Round], speed: Callable[[Round], float]) -> str:
    """Return how many times faster the first are: the median over rounds, in which both ran one after the other."""
    return f"{statistics.median(speed(a) / speed(b) for a, b in zip(ours, theirs, strict=True)):.2f}"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a Markdown table, text to the left and numbers to the right."""
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        first, *others = zip(cells, widths, strict=True)
        return "| " + " | ".join([first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]) + " |"

    print(line(head))
    print("| " + " | ".join(["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]) + " |")
    for row in rows:
        print(line(row))
    print(flush=True)


def print_machine() -> None:
    """Print the date, the processor and the load, which figures mean nothing without."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    print(f"{date.today().isoformat()}, {name}, {os.cpu_count()} processors{load}, Python {platform.python_version()}")
    print(flush=True)


def read_sentences(path: Path, tokens: int | None = None) -> list[list[str]]:
    """Return sentences from a text of one a line, tokens parted by spaces, until there are ``tokens``."""
    with path.open(encoding="utf-8") as lines:
        sentences = [sentence for line in lines if (sentence := line.split())]
    if not sentences:
        raise SystemExit(f"{path}: no tokens")
    return sentences if tokens is None else first_sentences(sentences, tokens)


def first_sentences(sentences: Sequence[list[str]], tokens: int) -> list[list[str]]:
    """Return as many sentences from the start as hold at least ``tokens``."""
    found: list[list[str]] = []
    count = 0
    for sentence in sentences:
        if count >= tokens:
            break
        found.append(sentence)
        count += len(sentence)
    return found


def elmo_program() -> str:
    """Return the installed command, which stands beside the Python that runs the benchmark."""
    return str(Path(sys.executable).parent / "elmo")


class Stages:
    """Wall and CPU seconds of the stages of a process, from its start on.

    Args:
        started: `time.time` just before the process was started.
    """

    def __init__(self, started: float) -> None:
        self.seconds = {"interpreter": (time.time() - started, time.process_time())}
        self._last = (time.perf_counter(), time.process_time())

    def done(self, name: str) -> None:
        """End a stage, and start the next."""
        now = (time.perf_counter(), time.process_time())
        self.seconds[name] = (now[0] - self._last[0], now[1] - self._last[1])
        self._last = now
