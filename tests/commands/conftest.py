"""The command line, in this process and in one of its own, and one tiny model for all of its tests.

Nothing of `elmo_cli` is imported outside the fixtures, as in the conftest above.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer, Trained, elmo_program, run_process


@pytest.fixture(scope="session")
def elmo() -> Callable[..., Answer]:
    """Run a command in this process."""
    from typer.testing import CliRunner

    from elmo_cli.commands.app import app

    def run(*arguments: object, stdin: bytes | None = None) -> Answer:
        result = CliRunner().invoke(app, [str(each) for each in arguments], input=stdin, prog_name="elmo")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout_bytes, result.stderr)

    return run


@pytest.fixture(scope="session")
def shell() -> Callable[..., Answer]:
    """Run a line of bash in which ``elmo`` is the installed command; each loads torch anew, for seconds."""

    def run(line: str, *arguments: object, folder: Path) -> Answer:
        script = f'elmo() {{ "{elmo_program()}" "$@"; }}\n{line}'
        return run_process("bash", "-c", script, "bash", *arguments, folder=folder)

    return run


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """A model of the tiny preset after 30 steps on harbour.txt."""
    folder = tmp_path_factory.mktemp("trained") / "harbour"
    options = ("--preset", "tiny", "--max-steps", 30, "-o", folder)
    return Trained(folder, run_process(elmo_program(), "train", DATA / "harbour.txt", *options))


@pytest.fixture(scope="session")
def model(trained: Trained) -> Path:
    assert trained.answer.code == 0, trained.answer.stderr
    return trained.folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder
