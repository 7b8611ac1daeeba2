"""What texts and names hold never steers the terminal on which a message about them is read."""

import json
import os
import pty
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer, elmo_program

from elmo_cli.errors import DataError, Place, harmless

Elmo = Callable[..., Answer]
ESC = "\x1b]0;owned\x07\x1b[2J"


def test_control_characters_become_escapes() -> None:
    assert harmless("a\x1b[31mb\x07\x7f\x9b\n\u202e") == r"a\x1b[31mb\x07\x7f\x9b\n\u202e"
    assert harmless("a\tb\nc\r", keep="\n\t") == "a\tb\nc\\r"
    assert harmless("é 日本 \u200f👩‍👧 \ud800") == "é 日本 \u200f👩‍👧 \ud800"


def test_an_error_quotes_nothing_that_looks_like_another_line() -> None:
    problem = DataError("a\nelmo: error: b", where=Place("c\nd", 3), fix="e\n  fix: f")
    assert str(problem) == "c\\nd:3: a\\nelmo: error: b\n  fix: e\\n  fix: f"


def steering(text: str) -> list[str]:
    return [
        character for character in text if character != "\n" and (ord(character) < 32 or 127 <= ord(character) < 160)
    ]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


CASES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "name of a text": (f"t{ESC}.txt", "\udcff", ()),
    "key of an object": ("t.jsonl", json.dumps({"\x1b[2J\x9b": 1}, ensure_ascii=False), ("--input", "jsonl")),
    "an ID of CoNLL-U": ("t.conllu", f"{ESC}\ta" + "\t_" * 8, ("--input", "conllu")),
    "a language": ("t.txt", "boat", ("--lang", ESC)),
    "a format": ("t.txt", "boat", ("-f", ESC)),
    "a device": ("t.txt", "boat", ("--device", ESC)),
    "layers": ("t.txt", "boat", ("--layers", ESC)),
    "an output": ("t.txt", "boat", ("-o", f"no{ESC}/x.npy")),
    "a number": ("t.txt", "boat", ("--threads", ESC)),
    "an option": ("t.txt", "boat", (f"--{ESC}",)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_message_about_control_characters_has_none(elmo: Elmo, sound_model: Path, here: Path, case: str) -> None:
    name, text, options = CASES[case]
    (here / name).write_text(text, errors="surrogateescape")
    answer = elmo(
        "embed", name, "-m", sound_model, *(() if "-o" in options or "-f" in options else ("-o", "x.npy")), *options
    )
    assert answer.code in (1, 2), answer.stderr
    assert steering(answer.stderr) == []


def test_an_answer_on_a_terminal_has_no_control_characters_of_a_model(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    config["provenance"] = {"note": ESC, ESC: "x"}
    (model / "config.json").write_text(json.dumps(config))
    ours, theirs = pty.openpty()
    run = subprocess.Popen([elmo_program(), "info", str(model)], stdout=theirs, stderr=theirs)
    os.close(theirs)
    said = b""
    try:
        while chunk := os.read(ours, 1 << 16):
            said += chunk
    except OSError:
        pass  # how the end of a terminal looks on Linux
    assert run.wait(60) == 0
    assert b"owned" in said
    assert steering(said.decode().replace("\r\n", "\n")) == []
