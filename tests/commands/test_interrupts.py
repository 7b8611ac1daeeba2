"""Signals that ask to stop, at the moments at which libraries lose the exception that they become."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

BEGIN = """
import os, signal, sys, time
from elmo_cli.commands.interrupts import interrupts
interrupts.install()
def send(number=signal.SIGINT):
    os.kill(os.getpid(), number)
    time.sleep(0.01)
"""
STOPPING = pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, -2), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)


def lines_of(program: str, folder: Path) -> tuple[list[str], int]:
    """Run a program behind `BEGIN` and return what it prints and its exit code."""
    run = subprocess.run([sys.executable, "-c", BEGIN + program], cwd=folder, capture_output=True, text=True)
    return run.stdout.split(), run.returncode


@STOPPING
def test_during_an_import_it_waits_for_the_next_one(here: Path, number: int, code: int) -> None:
    # C++ that is being imported aborts the process when the exception comes through it.
    (here / "imported.py").write_text(
        "import __main__\n__main__.send(__main__.sent)\nprint('whole')\nimport colorsys\n"
    )
    program = f"sent = {number}\ntry:\n    import imported\nfinally:\n    print('left')\n"
    assert lines_of(program, here) == (["whole", "left"], code)


def test_during_the_last_import_it_waits_for_its_end(here: Path) -> None:
    (here / "imported.py").write_text("import __main__\n__main__.send()\nprint('whole')\n")
    program = (
        "import imported\ntry:\n    time.sleep(5)\n    print('late')\nexcept KeyboardInterrupt:\n    print('came')\n"
    )
    assert lines_of(program, here) == (["whole", "came"], 0)


def test_an_import_that_swallows_it_meets_it_again(here: Path) -> None:
    (here / "swallows.py").write_text(
        "import __main__\n__main__.send()\ntry:\n    import colorsys\nexcept BaseException:\n    print('swallowed')\n"
    )
    program = (
        "import swallows\ntry:\n    import turtledemo\nexcept KeyboardInterrupt:\n    print('again')\n"
        "interrupts.forget()\nimport turtledemo\nprint('done')\n"
    )
    assert lines_of(program, here) == (["swallowed", "again", "done"], 0)


def test_what_code_in_c_drops_comes_again(here: Path) -> None:
    program = (
        "class Dropping:\n    def __del__(self):\n        send()\n"  # an exception in it is told and goes nowhere
        "Dropping()\nprint('dropped')\n"
        "try:\n    time.sleep(5)\n    print('late')\nexcept KeyboardInterrupt:\n    print('came')\n"
    )
    assert lines_of(program, here) == (["dropped", "came"], 0)


def test_an_error_made_of_it_is_known_for_what_it_is(here: Path) -> None:
    program = (
        "try:\n    with interrupts.unmistaken():\n        try:\n            send(signal.SIGTERM)\n"
        "        except SystemExit:\n            raise ValueError('no shape') from None\n"
        "except SystemExit as end:\n    print(end.code)\n"
        "interrupts.forget()\n"
        "try:\n    with interrupts.unmistaken():\n        raise ValueError\nexcept ValueError:\n    print('error')\n"
    )
    assert lines_of(program, here) == (["143", "error"], 0)


@STOPPING
def test_a_second_signal_does_not_disturb_what_is_removed_on_the_way_out(here: Path, number: int, code: int) -> None:
    program = (
        f"try:\n    send({number})\nfinally:\n    print('begun')\n    send()\n    send({number})\n"
        "    import colorsys\n    time.sleep(0.5)\n    print('removed')\n"
    )
    answer, left = lines_of(program, here)
    assert (answer, left) == (["begun", "removed"], code)


def test_what_the_shell_has_set_aside_stays_so(here: Path) -> None:
    program = f"import signal\nsignal.signal(signal.SIGHUP, signal.SIG_IGN)\n{BEGIN}send(signal.SIGHUP)\nprint('on')\n"
    run = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True)
    assert (run.stdout, run.returncode) == ("on\n", 0)
