"""Launches a program of these tests as two processes that train together."""

import os
import subprocess
import sys
from pathlib import Path


def launch_two(member: str, folder: Path) -> None:
    """Run a program beside this file under torchrun, with a folder as its argument, and see that it goes well."""
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    program = Path(__file__).parent / member
    run = subprocess.run([*launch, str(program), str(folder)], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr
