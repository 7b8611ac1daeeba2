"""A training run that is killed again and again at random moments, and goes on each time: a program for a test.

Each life is a child of this process, which has loaded torch once. It kills itself, with SIGKILL, before one of the
calls that bring files to the disk or when a step ends.
"""

import json
import os
import random
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import ModelError
from elmo_cli.reporting import SilentProgress, SilentReporter
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.storage.weights import load_language_model
from elmo_cli.text.reader import TextOptions
from elmo_cli.training.run import resume_training, start_training
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace

TWENTY = Path(__file__).parent.parent / "data" / "twenty.txt"
STEPS = 12
# A checkpoint after each step; 5 steps an epoch, so that kills fall into the middle of one.
SETTINGS = TrainingSettings(
    preset="tiny", max_steps=STEPS, batch_tokens=36, warmup_steps=5, checkpoint_s=0.0, sampled_above=10, negatives=30
)
OTHER = TrainingSettings(preset="tiny", max_steps=1, batch_tokens=36, vocab_size=50, seed=2)


class Doom(SilentReporter):
    """Kills this process at the n-th of the moments that could matter."""

    def __init__(self, moments: int) -> None:
        self.left = moments

    def come_nearer(self) -> None:
        self.left -= 1
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def before(self, owner: object, name: str) -> None:
        """Count the calls of a function."""
        function: Callable[..., object] = getattr(owner, name)

        def counted(*arguments: object, **options: object) -> object:
            self.come_nearer()
            return function(*arguments, **options)

        setattr(owner, name, counted)

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        doom = self

        class _Progress(SilentProgress):
            def update(self, done: float, status: str = "") -> None:
                doom.come_nearer()

        return _Progress()


def place_of(folder: Path, reporter: SilentReporter) -> Workplace:
    return Workplace(torch.device("cpu"), folder.parent / "cache", 1, reporter)


def start(folder: Path, settings: TrainingSettings, reporter: SilentReporter) -> None:
    sources = TextSources((str(TWENTY),), (), TextOptions(mode="tokens"))
    start_training(folder, sources, settings, place_of(folder, reporter), overwrite=True)


def live(folder: Path, moments: int) -> None:
    """Start the run or go on with it, until the end or the kill."""
    doom = Doom(moments)
    for owner, name in [(os, "fsync"), (Path, "rename"), (Path, "replace"), (shutil, "rmtree")]:
        doom.before(owner, name)
    try:
        RunDir(folder).settings()
        resume_training(folder, place_of(folder, doom), Limits())
    except ModelError as problem:
        if not problem.message.startswith("holds no run"):
            raise
        start(folder, SETTINGS, doom)


def outlived(folder: Path, moments: int) -> bool:
    """Return whether a life has come to the end of the run."""
    child = os.fork()
    if not child:
        try:
            live(folder, moments)
            os._exit(0)
        except BaseException as problem:
            sys.stderr.write(f"{type(problem).__name__}: {problem}\n")
            os._exit(1)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        sys.exit("a life has failed")
    return True


def is_mixed(folder: Path) -> bool:
    """Return whether the folder says that its files are of two models; what it does not say must fit together."""
    try:
        config = read_config(folder)
    except ModelError as problem:
        if "is of another model than" not in problem.message:
            raise
        return True
    load_language_model(folder, config)
    return False


def main() -> None:
    folder, seed = Path(sys.argv[1]), int(sys.argv[2])
    torch.set_num_threads(1)  # threads do not live on in children
    start(folder, OTHER, SilentReporter())
    shutil.rmtree(folder / "run")  # of the old model nothing is to be gone on with
    moments = random.Random(seed)
    kills = mixed = 0
    while not outlived(folder, moments.randint(1, 40)):
        kills += 1
        mixed += is_mixed(folder)
    sys.stdout.write(json.dumps({"kills": kills, "mixed": mixed}))


if __name__ == "__main__":
    main()
