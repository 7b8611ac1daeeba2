"""Processes that try something out, so that whatever breaks there breaks nothing here."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

_PATIENCE_S: Final = 120.0  # for one probe; torch takes seconds to load, on a busy machine tens of them


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe brought back.

    Attributes:
        facts: what was found; nothing if it failed.
        failure: why there is nothing, in a line; None if all went well.
        started: whether there was a process at all.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    failure: str | None = None
    started: bool = True


class Probe:
    """A probe of `elmo_cli.storage.probes` under way; used as a context manager, which stops it at the end.

    Args:
        name: of the probe.
        arguments: for it.
    """

    def __init__(self, name: str, arguments: Sequence[str] = ()) -> None:
        # -P: a torch.py in the working folder is not taken for torch.
        command = [sys.executable, "-P", "-m", "elmo_cli.storage.probes", name, *arguments]
        self._refusal: str | None = None
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # Ctrl-C reaches this process alone, which then ends the other
            )
        except OSError as error:
            self._refusal = error.strerror or str(error)

    def __enter__(self) -> "Probe":
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.communicate()

    def result(self) -> Probed:
        """Wait for the answer."""
        if self._process is None:
            return Probed(failure=self._refusal, started=False)
        try:
            answer, errors = self._process.communicate(timeout=_PATIENCE_S)
        except subprocess.TimeoutExpired:
            return Probed(failure=f"no answer within {_PATIENCE_S:.0f} seconds")
        if self._process.returncode:
            return Probed(failure=_why(self._process.returncode, errors))
        try:
            # The last line: libraries may print on their way in.
            return Probed(json.loads(answer.decode("utf-8").strip().rpartition("\n")[2]))
        except ValueError:
            return Probed(failure="the answer is not understood")


def _why(code: int, errors: bytes) -> str:
    """Return the end of what a process said that went wrong, or the signal that ended it."""
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    lines = errors.decode("utf-8", errors="replace").strip().splitlines()
    return lines[-1] if lines else f"ended with exit code {code}"
