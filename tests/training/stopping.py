"""A reporter that stops the training it listens to."""

import signal

from elmo_cli.reporting import SilentProgress, SilentReporter


class Stopping(SilentReporter):
    """Sends SIGINT at a step of a training, and remembers what is said.

    Args:
        step: at which to stop; None for never.
        skip: trainings to let go before, as the finished stages of a run.
    """

    def __init__(self, step: int | None = None, *, skip: int = 0) -> None:
        self.step = step
        self.skip = skip
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        reporter = self
        if title == "training":
            self.skip -= 1

        class _Progress(SilentProgress):
            def update(self, done: float, status: str = "") -> None:
                if title == "training" and reporter.skip < 0 and done == reporter.step:
                    signal.raise_signal(signal.SIGINT)

        return _Progress()
