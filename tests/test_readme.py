"""What the README says exists: commands, options, files, and the two lines a newcomer pastes."""

import re
import shlex
from pathlib import Path

import pytest
import typer.main

from elmo_cli.commands.app import app

PROJECT = Path(__file__).parent.parent
README = (PROJECT / "README.md").read_text(encoding="utf-8")
SHELL_LINES = [
    line
    for block in re.findall(r"^```sh\n(.*?)^```", README, flags=re.DOTALL | re.MULTILINE)
    for line in block.splitlines()
    if line and not line.startswith("#")
]


def elmo_calls() -> list[list[str]]:
    """Return the words of every call of elmo in the README's shell lines."""
    calls = []
    for line in SHELL_LINES:
        words = shlex.split(line, comments=True)
        while "elmo" in words:
            words = words[words.index("elmo") + 1 :]
            ends = [words.index(end) for end in ("|", "&&", ">") if end in words]
            calls.append(words[: min(ends, default=len(words))])
    return calls


@pytest.mark.parametrize("call", elmo_calls(), ids=" ".join)
def test_every_command_and_option_in_the_readme_exists(call: list[str]) -> None:
    root = typer.main.get_command(app)
    command = root
    while hasattr(command, "commands"):  # a command in a group, such as `elmo mix learn`
        command, call = command.commands[call[0]], call[1:]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in call if re.match(r"-{1,2}[a-z]", word)} <= options


def test_every_command_stands_in_the_readme() -> None:
    root = typer.main.get_command(app)
    assert {f"`elmo {name}`" for name in root.commands} <= set(re.findall(r"`elmo \w+`", README))  # type: ignore[attr-defined]


def test_the_two_commands_of_a_newcomer_are_each_one_line() -> None:
    assert SHELL_LINES[0] == "pip install . && elmo embed README.md > vectors.npy"
    assert SHELL_LINES[1] == 'pip install ".[test]" && python -m pytest -q'


@pytest.mark.parametrize("path", sorted(set(re.findall(r"`((?:bilm|training|embedding|tests)/\w+\.py)`", README))))
def test_the_files_to_read_exist(path: str) -> None:
    assert (PROJECT / path).is_file() or (PROJECT / "elmo_cli" / path).is_file()
