"""What a run works with."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from elmo_cli.reporting import Reporter
from elmo_cli.text.corpus import Corpus
from elmo_cli.training.distributed import ALONE, Team


@dataclass(frozen=True, slots=True)
class Workplace:
    """What a run works with that does not change its result, but for rounding.

    Attributes:
        device: to train on.
        cache: folder of prepared corpora.
        workers: processes that tokenize.
        reporter: told about progress.
        tensorboard: whether metrics are written as TensorBoard's events too.
        team: processes that train together.
    """

    device: torch.device
    cache: Path
    workers: int
    reporter: Reporter
    tensorboard: bool = False
    team: Team = ALONE

    def prepared_together(self, prepare: Callable[[], Sequence[Corpus | None]]) -> Sequence[Corpus | None]:
        """Let the first process of each machine prepare the texts, and then the others, who find them prepared.

        Raises:
            ElmoError: machines have read different texts.
        """
        if self.team.local_rank:
            self.team.wait()
        corpora = prepare()
        if not self.team.local_rank:
            self.team.wait()
        self.team.agree_on_text(["" if corpus is None else corpus.folder.name for corpus in corpora])
        return corpora
