"""How long it takes from nothing to the first vector of one line: the installed `elmo`, and the stages of its time.

    python tests/benchmarks/start_up.py
    python tests/benchmarks/start_up.py MODEL --allennlp-python PYTHON

Processes are started in turn, so that files are in the system's cache after the first ones, which are not counted.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import made_up
import measuring
from measuring import HERE

from elmo_cli.config import PRESETS
from elmo_cli.storage.convert import export_model
from elmo_cli.storage.registry import find_model

_LINE = "She signed to do a Broadway play for Garson ."

Times = dict[str, list[tuple[float, float]]]  # wall and CPU seconds of each run, by stage


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="small-en", help="name or folder [default: %(default)s]")
    parser.add_argument("--preset", choices=list(PRESETS), help="random weights of this shape instead of MODEL")
    parser.add_argument("--runs", type=int, default=5, help="[default: %(default)s]")
    parser.add_argument("--allennlp-python", metavar="PYTHON", help="of an environment with allennlp 2.10.1")
    parser.add_argument("--bert", action="store_true", help="also a BERT-base encoder, by the same environment")
    options = parser.parse_args()
    if options.bert and not options.allennlp_python:
        parser.error("--bert needs --allennlp-python")
    return options


def run(command: Sequence[object]) -> tuple[bytes, float, float]:
    """Return what a command printed, and the wall and CPU seconds that it and its processes took."""
    start = time.perf_counter()
    with subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as child:
        printed = child.stdout.read() if child.stdout is not None else b""
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"exit code {child.returncode}: {command}")
    return printed, time.perf_counter() - start, usage.ru_utime + usage.ru_stime


def add_whole(times: Times, name: str, command: Sequence[object]) -> None:
    _, wall, cpu = run(command)
    times.setdefault(name, []).append((wall, cpu))


def add_stages(times: Times, python: str, script: str, *arguments: object) -> None:
    """Run a script that tells its stages, and add them and the time of the whole process."""
    printed, wall, cpu = run((python, "-W", "ignore", HERE / script, time.time(), *arguments))
    stages = json.loads(printed.splitlines()[-1])["stages"]
    for name, seconds in stages.items():
        times.setdefault(name, []).append(tuple(seconds))
    ended = [sum(part) for part in zip(*stages.values(), strict=True)]
    times.setdefault("exit", []).append((wall - ended[0], cpu - ended[1]))
    times.setdefault("whole process", []).append((wall, cpu))


def print_times(title: str, times: Times) -> None:
    rows = []
    for name, pairs in times.items():
        walls, cpus = zip(*pairs, strict=True)
        rows.append([name, *(f"{value:.2f}" for value in (min(cpus), median(cpus), min(walls), median(walls)))])
    measuring.print_table([title, "least CPU s", "median CPU s", "least s", "median s"], rows)


def main() -> None:
    options = parse_options()
    measuring.print_machine()
    commands: Times = {}
    ours: Times = {}
    theirs: Times = {}
    bert: Times = {}
    with tempfile.TemporaryDirectory(prefix="elmo-benchmark-") as name:
        folder = Path(name)
        model = (
            made_up.make_model(folder / "m", PRESETS[options.preset]) if options.preset else find_model(options.model)
        )
        line = folder / "line.txt"
        line.write_text(_LINE + "\n", encoding="utf-8")
        if options.allennlp_python:
            export_model(model, folder / "exported", replace=True)
        if options.bert:
            run((options.allennlp_python, HERE / "bert_first_vector.py", time.time(), folder / "bert"))
        embed = (measuring.elmo_program(), "-q", "embed", line, "-m", model)
        for number in range(options.runs + 1):
            if number == 1:
                for times in (commands, ours, theirs, bert):
                    times.clear()
            add_whole(commands, "python -c pass", (sys.executable, "-c", "pass"))
            add_whole(commands, "elmo --help", (measuring.elmo_program(), "--help"))
            add_whole(commands, "elmo embed --input tokens", (*embed, "--input", "tokens"))
            add_whole(commands, "elmo embed", embed)
            add_stages(ours, sys.executable, "own_first_vector.py", model, _LINE)
            if options.allennlp_python:
                add_stages(theirs, options.allennlp_python, "peer_first_vector.py", folder / "exported", _LINE)
            if options.bert:
                add_stages(bert, options.allennlp_python, "bert_first_vector.py", folder / "bert", _LINE)
    print(f"Model {options.preset or model.name}, {len(_LINE.split())} tokens, {options.runs} runs\n")
    print_times("command", commands)
    print_times("elmo, one stage after the other", ours)
    if theirs:
        print_times("AllenNLP", theirs)
    if bert:
        print_times("BERT-base", bert)


if __name__ == "__main__":
    main()
