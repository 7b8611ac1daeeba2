"""Commands run to their end, and what time and memory they and all their processes took."""

import os
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Event, Thread

import measuring


@dataclass(frozen=True)
class Run:
    """What a command took.

    Attributes:
        wall_s: from start to end.
        cpu_s: of all its processes.
        peak_mb: most resident memory of its largest process, as the system itself keeps count.
        sum_mb: largest sum of resident memory over its processes, looked at every 20 ms; pages they share are counted
            twice.
        own_mb: largest resident memory of its first process without the pages of files, which the system may take
            back; 0 where the system does not tell.
        bytes: written.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    sum_mb: float
    own_mb: float
    bytes: int


def run(command: Sequence[str], output: Path | None = None, log: Path | None = None) -> Run:
    """Run a command; its standard output is dropped, and its standard error kept only in ``log``.

    Args:
        command: program and arguments.
        output: the file it writes, whose size is told.
        log: takes its standard error; None to let that through.
    """
    start = time.perf_counter()
    with (
        nullcontext() if log is None else log.open("wb") as errors,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors) as child,
    ):
        with _watching(child.pid) as seen:
            _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"exit code {child.returncode}: {' '.join(command)}")
    wall = time.perf_counter() - start
    size = output.stat().st_size if output is not None else 0
    sums, own, peaks = zip(*seen, strict=True) if seen else ((0.0,), (0.0,), (0.0,))
    cpu = usage.ru_utime + usage.ru_stime
    # On Linux the usage begins with the memory of the process that started the command: of this one.
    return Run(wall, cpu, max(peaks) or measuring.max_rss_mb(usage), max(sums), max(own), size)


@contextmanager
def _watching(pid: int) -> Iterator[list[tuple[float, float, float]]]:
    """Collect resident memory in MB, where the system tells (Linux).

    Of a process and all below it together; of the process alone without the pages of files; the most that one of them
    has had so far.
    """
    seen: list[tuple[float, float, float]] = []
    over = Event()

    def watch() -> None:
        while True:
            family = _family(pid)
            resident = [_resident_mb(member) for member in family]
            most = max(measuring.peak_mb(member) or 0.0 for member in family)
            seen.append((sum(whole for whole, _ in resident), resident[0][1], most))
            if over.wait(0.02):
                return

    thread = Thread(target=watch)
    thread.start()
    try:
        yield seen
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


def _resident_mb(pid: int) -> tuple[float, float]:
    """Return all resident memory, and that without the pages of files."""
    try:
        _, resident, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
    except (OSError, ValueError):
        return 0.0, 0.0
    page = os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    return resident * page, (resident - shared) * page
