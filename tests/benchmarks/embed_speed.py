"""How fast tokens become vectors, and how far apart the vectors are: this package beside AllenNLP on the same weights.

    python tests/benchmarks/embed_speed.py MODEL... --text FILE --allennlp-python PYTHON
    python tests/benchmarks/embed_speed.py --preset elmo-small

Every contender is a process that loads its model once. They run in turn, one after the other, several rounds; a ratio
is the median over the rounds. Tokens per CPU-second count the time of all threads of the process.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import made_up
import measuring
import numpy as np
from measuring import HERE, Contender, Round
from numpy.typing import NDArray

from elmo_cli.bilm.products import has_bfloat16
from elmo_cli.config import PRESETS
from elmo_cli.storage.convert import export_model

_OURS, _THEIRS = "elmo", "AllenNLP"
_BERT = "BERT-base"
_ONE_BY_ONE = ", a sentence at a time"

Commands = dict[str, tuple[Sequence[object], int]]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path, metavar="MODEL", help="folders of models")
    parser.add_argument(
        "--preset", action="append", default=[], choices=list(PRESETS), help="a model of random weights"
    )
    parser.add_argument("--text", type=Path, help="a sentence a line, tokens parted by spaces [default: random words]")
    parser.add_argument("--tokens", type=int, default=20_000, help="of the text, a round [default: %(default)s]")
    parser.add_argument("--rounds", type=int, default=3, help="[default: %(default)s]")
    parser.add_argument("--batch", type=int, default=64, help="sentences at once in AllenNLP [default: %(default)s]")
    parser.add_argument("--one-by-one", type=int, default=1000, metavar="TOKENS", help="[default: %(default)s; 0: not]")
    parser.add_argument("--compare", type=int, default=2000, metavar="TOKENS", help="[default: %(default)s]")
    parser.add_argument("--allennlp-python", metavar="PYTHON", help="of an environment with allennlp 2.10.1")
    parser.add_argument("--bert", action="store_true", help="also a BERT-base encoder, if that environment has one")
    options = parser.parse_args()
    if not options.models and not options.preset:
        parser.error("name a model or a --preset")
    if options.bert and not options.allennlp_python:
        parser.error("--bert needs --allennlp-python")
    return options


def commands_for(model: Path, exported: Path, text: Path, options: argparse.Namespace) -> Commands:
    """Return the command and the number of threads of each contender."""
    sized = ("--tokens", options.tokens)
    own = (sys.executable, HERE / "own_side.py", model, text, *sized)
    commands: Commands = {}
    if options.allennlp_python:
        theirs = (options.allennlp_python, "-W", "ignore", HERE / "peer_side.py")
        commands[_THEIRS] = ((*theirs, "allennlp", exported, text, *sized), 1)
        if options.bert:
            commands[_BERT] = ((*theirs, "bert", exported, text, *sized), 1)
    commands[_OURS] = (own, 1)
    commands["elmo, 2 threads"] = ((*own, "--threads", 2), 2)
    commands["elmo, int8"] = ((*own, "--precision", "int8"), 1)
    if has_bfloat16():
        commands["elmo, bfloat16"] = ((*own, "--precision", "bfloat16"), 1)
    return commands


def runs_of(side: dict[str, Contender], options: argparse.Namespace) -> dict[str, Callable[[], Round]]:
    """Return what is measured, by the name of its row; a contender's own rows stand together."""
    runs: dict[str, Callable[[], Round]] = {}
    for name, contender in side.items():
        if name == _BERT:
            runs[f"{name}, batch 32"] = partial(contender.run, "batches", size=32)
        elif name == _THEIRS:
            runs[name] = partial(contender.run, "batches", size=options.batch)
        else:
            runs[name] = partial(_afresh, contender, "batches")
    if options.one_by_one:
        for name in (_THEIRS, _OURS, "elmo, int8"):
            if name in side:
                run = side[name].run if name == _THEIRS else partial(_afresh, side[name])
                runs[name + _ONE_BY_ONE] = partial(run, "one_by_one", tokens=options.one_by_one)
    return runs


def _afresh(contender: Contender, task: str, **arguments: object) -> Round:
    """Run a task with an embedder that knows no word yet: in an earlier round it has seen them all."""
    contender.run("forget")
    return contender.run(task, **arguments)


def print_speeds(results: dict[str, list[Round]], options: argparse.Namespace) -> None:
    rows = []
    for name, rounds in results.items():
        cells = [
            name,
            measuring.spread([r.per_cpu_s for r in rounds]),
            measuring.spread([r.per_wall_s for r in rounds]),
        ]
        baseline = results.get(_THEIRS + _ONE_BY_ONE if name.endswith(_ONE_BY_ONE) else _THEIRS)
        for speed in (lambda r: r.per_cpu_s), (lambda r: r.per_wall_s):
            cells.append(measuring.ratio(rounds, baseline, speed) if baseline else "")
        cores = measuring.spread([r.cpu_s / r.wall_s for r in rounds], ".1f")
        rows.append([*cells, cores, f"{max(r.peak_mb for r in rounds):,.0f}"])
    head = ["contender (one thread, float32 unless said)", "tokens/CPU-s", "tokens/s", "x (CPU)", "x (clock)"]
    measuring.print_table([*head, "cores", "peak MB"], rows)
    compared = f"; x: times AllenNLP, batch {options.batch}, input order" if _THEIRS in results else ""
    print(f"Median (least-largest) of {options.rounds} rounds{compared}.")
    print("Cores: CPU seconds a second. Where they are fewer than the threads, the clock measured other work as well.")
    if not has_bfloat16():
        print("bfloat16: this processor has no instructions for it, not run.")
    print()


def print_deviations(side: dict[str, Contender], folder: Path, tokens: int) -> None:
    """Print, by layer, how far vectors are from AllenNLP's and from ours in float32."""
    found: dict[str, NDArray[np.float64]] = {}
    for name, contender in side.items():
        if name != _BERT:
            path = folder / f"{len(found)}.npy"
            contender.run("save", path=str(path), tokens=tokens)
            found[name] = np.load(path).astype(np.float64)
    pairs = [(name, _THEIRS) for name in found if name != _THEIRS and _THEIRS in found and "," not in name]
    pairs += [(name, _OURS) for name in found if name not in (_OURS, _THEIRS)]
    rows = []
    for ours, theirs in pairs:
        for layer in range(found[ours].shape[1]):
            a, b = found[ours][:, layer], found[theirs][:, layer]
            difference = np.abs(a - b)
            cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
            values = (
                f"{difference.max():.1e}",
                f"{difference.mean():.1e}",
                f"{cosines.mean():.6f}",
                f"{cosines.min():.6f}",
            )
            rows.append([f"{ours} - {theirs}", str(layer), f"{np.abs(b).max():.2f}", *values])
    head = ["difference", "layer", "largest value", "largest", "mean", "mean cosine", "least cosine"]
    measuring.print_table(head, rows)


def compare(name: str, model: Path, text: Path, folder: Path, options: argparse.Namespace) -> None:
    exported = folder / "exported"
    if options.allennlp_python:
        export_model(model, exported, replace=True)
    print(f"## {name}, {options.tokens:,} tokens of {options.text.name if options.text else 'random words'}\n")
    with measuring.contenders(commands_for(model, exported, text, options)) as side:
        print_speeds(measuring.taking_turns(runs_of(side, options), options.rounds), options)
        if options.compare:
            print_deviations(side, folder, options.compare)


def main() -> None:
    options = parse_options()
    measuring.print_machine()
    with tempfile.TemporaryDirectory(prefix="elmo-benchmark-") as name:
        folder = Path(name)
        text = options.text or made_up.make_text(folder / "text.txt", options.tokens)
        for model in options.models:
            compare(model.resolve().name, model, text, folder, options)
        for preset in options.preset:
            compare(
                f"{preset}, random weights", made_up.make_model(folder / preset, PRESETS[preset]), text, folder, options
            )


if __name__ == "__main__":
    main()
