"""A wrong command line is told in the form of all errors, with the help to look at; exit code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]
WRONG = {
    ("embed", "--foo"): "no such option: --foo\n  fix: perhaps --force, --format, --pool; see elmo embed -h",
    ("embed", "--layers"): "option '--layers' requires an argument\n  fix: see elmo embed -h",
    ("embed", "--force=x"): "option '--force' does not take a value\n  fix: see elmo embed -h",
    ("--config",): "option '--config' requires an argument\n  fix: see elmo -h",
    ("embed", "--batch-size", "x"): (
        "invalid value for '--batch-size': must be a whole number\n  fix: see elmo embed -h"
    ),
    ("mix", "learn"): "missing argument 'TRAIN'\n  fix: see elmo mix learn -h",
    ("mix", "lern"): "no such command 'lern'\n  fix: perhaps learn; see elmo mix -h",
    ("doctor", "x"): "got unexpected extra argument(s) (x)\n  fix: see elmo doctor -h",
    ("--foo",): "no such option: --foo\n  fix: see elmo -h",
    ("train", "x", "--quiet"): (
        "no such option: --quiet\n  fix: write it before the command: elmo --quiet train; see elmo train -h"
    ),
    ("mix", "learn", "--config", "x"): (
        "no such option: --config\n"
        "  fix: write it before the command: elmo --config FILE mix learn; see elmo mix learn -h"
    ),
    ("mix", "-q", "learn"): "no such option: -q\n  fix: write it before the command: elmo -q mix; see elmo mix -h",
    ("embed", "-no-file"): "no such option: -n\n  fix: see elmo embed -h",
}


@pytest.mark.parametrize("arguments", WRONG, ids=" ".join)
def test_a_wrong_command_line_is_told_in_the_form_of_all_errors(arguments: tuple[str, ...], elmo: Elmo) -> None:
    answer = elmo(*arguments)
    assert (answer.code, answer.stderr) == (2, f"elmo: error: {WRONG[arguments]}\n")
    assert not answer.stdout


def test_a_file_that_looks_like_an_option_is_told_how_to_be_named(elmo: Elmo, here: Path) -> None:
    (here / "-notes.txt").write_text("A line .\n")
    told = (
        "elmo: error: no such option: -n\n  fix: if it is the file -notes.txt, write ./-notes.txt; see elmo embed -h\n"
    )
    assert (answer := elmo("embed", "-notes.txt")).code == 2
    assert answer.stderr == told


@pytest.mark.parametrize("arguments", [(), ("mix",)], ids=["elmo", "elmo mix"])
def test_without_a_command_there_is_help(arguments: tuple[str, ...], elmo: Elmo) -> None:
    answer = elmo(*arguments)
    assert answer.code == 2
    assert "Commands:\n" in answer.stderr
    assert "elmo: error" not in answer.stderr


def test_remarks_on_an_option_stand_in_one_pair_of_brackets(elmo: Elmo) -> None:
    assert "[default: 64; 1 to 1000000]" in " ".join(elmo("embed", "-h").text.split())
