"""Several processes, on one machine or many, that train one model: each computes a share of every step.

`torch.nn.parallel.DistributedDataParallel` is not used. It averages gradients of equal shares that all parameters
have; here a share may be empty at the end of an epoch, the softmax's gradient holds only the rows that were used, and
the sum over all processes, divided by the number of all targets, is exactly the gradient of the whole step. That sum
is one call on one flat tensor.

Every process holds all weights and makes the same updates. One of them, the writer, measures, reports and writes.
"""

import json
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.nn import Module

from elmo_cli.errors import ElmoError
from elmo_cli.storage.checkpoints import Checkpoint

_PATIENCE = timedelta(days=2)  # others wait while one prepares a large text; the launcher ends them if it fails
_CPU = torch.device("cpu")


@dataclass(frozen=True, slots=True)
class Team:
    """The processes of a run, as one of them sees them.

    Attributes:
        rank: number of this process, from 0; the first one writes.
        size: number of processes.
        local_rank: number of this process on its machine.
        device: where tensors lie while they are exchanged.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    device: torch.device = _CPU

    @property
    def is_writer(self) -> bool:
        """Whether this is the process that measures, reports and writes files."""
        return self.rank == 0

    def add_up(self, dense: Sequence[Tensor], sparse: Sequence[Tensor], loss: Tensor) -> Tensor:
        """Replace each gradient by its sum over all processes, and return the sum of their losses.

        Dense gradients go as one tensor; of a sparse one the rows go, and rows that several have used are added up in
        the order of the processes, so that all get the same bits.

        Args:
            dense: parameters; those that take no gradient are left out.
            sparse: parameters whose gradient holds only the rows that were used.
            loss: of this process's share.
        """
        if self.size == 1:
            return loss
        dense = [parameter for parameter in dense if parameter.requires_grad]
        parts = [torch.zeros_like(p) if p.grad is None else p.grad for p in dense]
        flat = torch.cat([part.flatten() for part in parts] + [loss.detach().to(self.device).reshape(1)])
        self._call(dist.all_reduce, flat)
        pieces = flat[:-1].split([part.numel() for part in parts])
        for parameter, part, piece in zip(dense, parts, pieces, strict=True):
            parameter.grad = piece.view_as(part)
        for parameter in sparse:
            if parameter.requires_grad:
                parameter.grad = self._add_up_rows(parameter)
        return flat[-1]

    def agree(self, signal_number: int | None, seconds: float) -> tuple[int | None, float]:
        """Return a signal that any process was sent, the largest number, and the clock of the first process.

        So that all of them stop at the same step, and go by the same time.
        """
        if self.size == 1:
            return signal_number, seconds
        said = torch.tensor([float(signal_number or 0), seconds if self.is_writer else -math.inf], dtype=torch.float64)
        said = said.to(self.device)
        self._call(dist.all_reduce, said, op=dist.ReduceOp.MAX)
        number, clock = said.tolist()
        return int(number) or None, clock

    def agree_on_text(self, names: Sequence[str]) -> None:
        """Make sure that all processes have prepared the same texts.

        Raises:
            ElmoError: they have not.
        """
        if self.tell(list(names)) != list(names):
            raise ElmoError(
                f"process {self.rank} has read another text than the first one",
                fix="give all machines the same files, with the same content",
            )

    def tell(self, value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
        """Return the first process's value."""
        return value if self.size == 1 else self._shared_json(value)

    def share(self, checkpoint: Checkpoint | None) -> Checkpoint | None:
        """Return the first process's checkpoint, which alone has to reach the run's folder."""
        if self.size == 1:
            return checkpoint
        tensors = {} if checkpoint is None else checkpoint.tensors
        shapes = {name: [str(t.dtype).removeprefix("torch."), list(t.shape)] for name, t in tensors.items()}
        head = self._shared_json(None if checkpoint is None else {"values": checkpoint.values, "shapes": shapes})
        if head is None:
            return None
        received: dict[str, Tensor] = {}
        for name, (dtype, shape) in head["shapes"].items():
            empty = torch.empty(shape, dtype=getattr(torch, dtype), device=self.device)
            received[name] = tensors[name].to(self.device) if self.is_writer else empty
            self._call(dist.broadcast, received[name], src=0)
        return Checkpoint(received, head["values"])

    def share_weights(self, module: Module) -> None:
        """Give a module the first process's weights."""
        shared = self.share(Checkpoint(module.state_dict(), {}))
        if self.size > 1 and shared is not None:
            module.load_state_dict(shared.tensors)

    def wait(self) -> None:
        """Wait until all processes have come here."""
        if self.size > 1:
            self._call(dist.all_reduce, torch.zeros(1, device=self.device))

    def _add_up_rows(self, parameter: Tensor) -> Tensor:
        """Return the sum of all processes' sparse gradients."""
        own_rows = torch.zeros(0, dtype=torch.int64, device=self.device)
        own_values = parameter.detach().new_zeros(0, parameter.shape[1])
        if parameter.grad is not None:
            own = parameter.grad.coalesce()
            own_rows, own_values = own.indices()[0], own.values()
        counts = torch.zeros(self.size, dtype=torch.int64, device=self.device)
        counts[self.rank] = len(own_rows)
        self._call(dist.all_reduce, counts)
        rows = self._gathered(own_rows, counts.tolist())
        values = self._gathered(own_values, counts.tolist())
        return torch.sparse_coo_tensor(rows[None], values, parameter.shape, check_invariants=False).coalesce()

    def _gathered(self, own: Tensor, counts: Sequence[int]) -> Tensor:
        """Return the entries of all processes, in their order; each has as many as ``counts`` says."""
        padded = own.new_zeros(max(counts), *own.shape[1:])
        padded[: len(own)] = own
        found = [torch.empty_like(padded) for _ in counts]
        self._call(dist.all_gather, found, padded)
        return torch.cat([part[:count] for part, count in zip(found, counts, strict=True)])

    def _shared_json(self, value: Any) -> Any:  # noqa: ANN401 (whatever JSON holds)
        """Return the first process's value."""
        text = json.dumps(value).encode()
        length = torch.tensor([len(text)], dtype=torch.int64, device=self.device)
        self._call(dist.broadcast, length, src=0)
        if not self.is_writer:
            text = bytes(int(length))
        content = torch.frombuffer(bytearray(text), dtype=torch.uint8).to(self.device)
        self._call(dist.broadcast, content, src=0)
        return json.loads(bytes(content.tolist()))

    def _call(self, exchange: Any, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 (functions of torch)
        try:
            exchange(*arguments, **options)
        except RuntimeError as error:
            raise ElmoError(
                f"process {self.rank} of {self.size} has lost the others: {str(error).splitlines()[0]}",
                fix="see what they say, then go on with --resume",
            ) from error


ALONE = Team()


def join_team(launched: tuple[int, int, int] | None, device: torch.device) -> tuple[Team, torch.device]:
    """Meet the processes of a run, if ``torchrun`` has launched several, and return this one's device.

    Args:
        launched: rank, number of processes and rank on this machine, as the launcher says; None without one.
        device: chosen; of several GPUs each process of a machine takes its own.

    Raises:
        ElmoError: they cannot be met.
    """
    if launched is None or launched[1] == 1:
        return ALONE, device
    rank, size, local_rank = launched
    if str(device) == "cuda":
        device = torch.device("cuda", local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
    exchanged_on = device if device.type == "cuda" else torch.device("cpu")
    try:
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=_PATIENCE)
    except (ValueError, RuntimeError) as error:
        raise ElmoError(
            f"process {rank} of {size} cannot meet the others: {str(error).splitlines()[0]}",
            fix="launch all of them by torchrun, or unset RANK, WORLD_SIZE and LOCAL_RANK",
        ) from error
    return Team(rank, size, local_rank, exchanged_on), device


def leave_team(team: Team) -> None:
    """Part from the others; after `Team.wait`, if all has gone well, so that nobody is missed."""
    if team.size > 1:
        dist.destroy_process_group()


def end_member(team: Team) -> None:
    """End a process of a team, at once and well, after `leave_team`; do nothing without a team.

    On a busy machine gloo's threads now and then outlive the interpreter, which then aborts (torch 2.13: "terminate
    called without an active exception"), and the launcher takes the whole run for failed. All is done by then.
    """
    if team.size > 1:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
