"""One of several processes that train together: a program for a test, to be launched by torchrun."""

import signal
import sys
from dataclasses import replace
from pathlib import Path

import torch

from elmo_cli import settings
from elmo_cli.bilm.bilm import BiLM
from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import Interrupted
from elmo_cli.reporting import SilentProgress, SilentReporter
from elmo_cli.text.reader import TextOptions
from elmo_cli.training.distributed import ALONE, Team, end_member, join_team, leave_team
from elmo_cli.training.run import resume_training, start_training
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace

TWENTY = Path(__file__).parent.parent / "data" / "twenty.txt"
STEPS = 8
STOP = 4
TOGETHER = TrainingSettings(
    preset="tiny", max_steps=STEPS, batch_tokens=40, processes=2, warmup_steps=5, dropout=0.0, checkpoint_s=0.0
)
SAMPLED = replace(TOGETHER, sampled_above=10, negatives=30, dropout=0.3)
ADAGRAD = replace(SAMPLED, recipe="bilm-tf", learning_rate=0.2, clip_norm=10.0)
CASES = {"full": TOGETHER, "sampled": SAMPLED, "adagrad": ADAGRAD, "stopped": SAMPLED}


class Stopping(SilentReporter):
    """Sends a signal to its own process at a step of the training."""

    def __init__(self, step: int) -> None:
        self.step = step

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        reporter = self

        class _Progress(SilentProgress):
            def update(self, done: float, status: str = "") -> None:
                if title == "training" and done == reporter.step:
                    signal.raise_signal(signal.SIGTERM)

        return _Progress()


def place_of(folder: Path, team: Team = ALONE, reporter: SilentReporter | None = None) -> Workplace:
    reporter = reporter or SilentReporter()
    return Workplace(torch.device("cpu"), folder.parent / "cache", 1, reporter, team=team)


def start(folder: Path, wanted: TrainingSettings, place: Workplace) -> None:
    start_training(folder, TextSources((str(TWENTY),), (), TextOptions(mode="tokens")), wanted, place)


def draw_other_weights() -> None:
    """Begin with weights that are not the first process's, as a processor of another kind draws them."""
    initialise = BiLM.initialise
    BiLM.initialise = lambda bilm, generator: initialise(bilm, torch.Generator().manual_seed(99))  # type: ignore[method-assign]


def main() -> None:
    folder = Path(sys.argv[1])
    team, _ = join_team(settings.launched(), torch.device("cpu"))
    if team.rank:
        draw_other_weights()
    for name, wanted in CASES.items():
        # The second process alone is told to stop.
        reporter = Stopping(STOP) if name == "stopped" and team.rank == 1 else None
        try:
            start(folder / name, wanted, place_of(folder / name, team, reporter))
        except Interrupted as stop:
            (folder / f"stopped-{team.rank}").write_text(stop.message)
    # A run that one process has begun.
    resume_training(folder / "grown", place_of(folder / "grown", team), Limits())
    team.wait()
    leave_team(team)
    end_member(team)


if __name__ == "__main__":
    main()
