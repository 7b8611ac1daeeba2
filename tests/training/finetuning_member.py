"""One of several processes that fine-tune together: a program for a test, to be launched by torchrun."""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from finetuning import SETTINGS, finetune, place_of
from stopping import Stopping

from elmo_cli import settings
from elmo_cli.config import FinetuneSettings, Limits, TrainingSettings
from elmo_cli.errors import Interrupted
from elmo_cli.training.distributed import end_member, join_team, leave_team
from elmo_cli.training.finetune import resume_finetuning

TOGETHER = replace(SETTINGS, processes=2, batch_tokens=40, warmup_steps=4, sampled_above=10, negatives=30)
ALONE = replace(TOGETHER, processes=1, accumulate=2)
# Of each run: the base it starts from, and what is added, frozen and drawn back.
CASES: dict[str, tuple[str, TrainingSettings, FinetuneSettings]] = {
    "extended": ("general", TOGETHER, FinetuneSettings(freeze="encoder", l2sp=2.0, extend_vocab=5)),
    "two-stages": ("bare", TOGETHER, FinetuneSettings()),
}
STOPPED = {"in-stage-1": 0, "in-stage-2": 1}  # trainings to let go before the one that is stopped


def main() -> None:
    folder = Path(sys.argv[1])
    team, _ = join_team(settings.launched(), torch.device("cpu"))
    for name, (base, wanted, adaptation) in CASES.items():
        finetune(folder / name, folder / base, wanted, adaptation, team=team)
    for name, skip in STOPPED.items():
        # The second process alone is told to stop.
        reporter = Stopping(2, skip=skip) if team.rank == 1 else None
        try:
            finetune(folder / name, folder / "bare", TOGETHER, reporter=reporter, team=team)
        except Interrupted:
            team.wait()  # until the first process has let go of the run
            resume_finetuning(folder / name, replace(place_of(folder / name), team=team), Limits())
    team.wait()
    leave_team(team)
    end_member(team)


if __name__ == "__main__":
    main()
