"""Completion: what the TAB key offers, in real shells where they are installed, without loading anything heavy."""

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import elmo_program

HEAVY = ("torch", "spacy", "numpy")
# A terminal's answer, or the loaded machine's time for it.
PATIENCE_S = 90.0


def offered(words: str, *, folder: Path | None = None, **variables: str) -> list[str]:
    """Return what bash is offered for the last of some words."""
    words_and_count = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    environment = {**os.environ, "_ELMO_COMPLETE": "complete_bash", **words_and_count, **variables}
    run = subprocess.run([elmo_program()], env=environment, cwd=folder, capture_output=True, text=True, check=True)
    assert run.stderr == ""
    return run.stdout.split()


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("elmo emb", ["embed"]),
        ("elmo embed -m small", ["small-en"]),
        ("elmo info sm", ["small-en"]),
        ("elmo train --preset ti", ["tiny"]),
        ("elmo embed -f j", ["jsonl"]),
        ("elmo embed --input co", ["conll", "conllu"]),
        ("elmo embed --layers ", ["average", "top", "all"]),
        ("elmo embed --tokens", ["--tokens-out"]),
        ("elmo --config x.toml surprisal --unit ", ["bits", "nats"]),
        ("elmo neighbors play -f ", ["text", "tsv", "jsonl"]),
        ("elmo index x --input con", ["conll", "conllu"]),
        ("elmo senses play --map ", ["pca", "umap"]),
        ("elmo mix learn x --head bi", ["bilstm"]),
        ("elmo mix learn x --input ", ["conll", "conllu", "tsv", "jsonl"]),
        ("elmo embed -o ", []),  # the shell offers files
    ],
)
def test_the_last_word_is_completed(words: str, wanted: list[str]) -> None:
    assert offered(words) == wanted


def test_models_are_those_of_here_of_the_search_path_and_of_the_user(tmp_path: Path) -> None:
    folders = {name: tmp_path / name for name in ("models", "path", "data/elmo/models")}
    for number, folder in enumerate(folders.values()):
        (folder / f"mine{number}").mkdir(parents=True)
        (folder / f"mine{number}" / "config.json").write_text("{}")
    found = offered(
        "elmo embed -m mi",
        folder=tmp_path,
        ELMO_MODELS=str(folders["path"]),
        XDG_DATA_HOME=str(tmp_path / "data"),
    )
    assert found == ["mine0", "mine1", "mine2"]


def test_a_name_that_would_steer_the_terminal_is_not_offered(tmp_path: Path) -> None:
    for name in ("mine", "mine\x1b[2J", "mine\nmine2"):
        (tmp_path / "models" / name).mkdir(parents=True)
        (tmp_path / "models" / name / "config.json").write_text("{}")
    assert offered("elmo embed -m mi", folder=tmp_path) == ["mine"]


def test_help_of_a_command_has_no_apostrophe_that_a_shell_drops() -> None:
    variables = {"_ELMO_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "elmo inf"}
    run = subprocess.run([elmo_program()], env={**os.environ, **variables}, capture_output=True, text=True, check=True)
    assert "Show a model\u2019s shape" in run.stdout


@pytest.mark.parametrize("words", ["elmo embed -m sm", "elmo train --preset ", "elmo embed -f ", "elmo embed --"])
def test_completion_loads_nothing_heavy(words: str) -> None:
    environment = {**os.environ, "_ELMO_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": "3"}
    script = (
        "import sys\nsys.argv[0] = 'elmo'\nfrom elmo_cli.commands.app import app\n"
        "try:\n    app(prog_name='elmo')\n"
        f"finally:\n    print(sorted(set(sys.modules) & set({HEAVY!r})), file=sys.stderr)"
    )
    run = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert run.stderr.splitlines()[-1] == "[]"


def test_a_broken_file_of_settings_does_not_disturb_completion(tmp_path: Path) -> None:
    assert offered("elmo embed -m small", ELMO_CONFIG=str(tmp_path / "none.toml")) == ["small-en"]


def press_tab(shell: list[str], setup: str, typed: str, wanted: str) -> str:
    """Return what a terminal shows after a word has been typed in a shell and TAB pressed."""
    path = f"{Path(elmo_program()).parent}{os.pathsep}{os.environ['PATH']}"
    terminal, inside = pty.openpty()
    child = subprocess.Popen(
        shell,
        stdin=inside,
        stdout=inside,
        stderr=inside,
        start_new_session=True,
        env={**os.environ, "PATH": path, "TERM": "dumb"},
    )
    os.close(inside)
    shown, typed_at = "", ""
    try:
        os.write(terminal, f"{setup}\necho rea''dy\n".encode())
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end and wanted not in typed_at:
            if select.select([terminal], [], [], 0.2)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
            if not typed_at and "ready" in shown:
                os.write(terminal, f"{typed}\t".encode())
                shown = ""
                typed_at = " "
            elif typed_at:
                typed_at = shown or " "
    finally:
        child.kill()
        child.wait()
        os.close(terminal)
    return typed_at


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(_ELMO_COMPLETE=source_bash elmo)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -U compinit && compinit -u -D && eval "$(_ELMO_COMPLETE=source_zsh elmo)"',
    ),
}


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("typed", "wanted"), [("elmo embed -m sm", "small-en"), ("elmo embed --toke", "--tokens-out")])
def test_tab_completes_in_a_real_shell(shell: str, typed: str, wanted: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert wanted in press_tab(*SHELLS[shell], typed, wanted)


def test_fish_completes_one_word_a_line() -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed")
    path = f"{Path(elmo_program()).parent}{os.pathsep}{os.environ['PATH']}"
    asked = '_ELMO_COMPLETE=source_fish elmo | source; complete -C "elmo embed -m sm"; complete -C "elmo embed --pre"'
    run = subprocess.run(
        ["fish", "--no-config", "-c", asked], env={**os.environ, "PATH": path}, capture_output=True, text=True
    )
    assert [line.split("\t")[0] for line in run.stdout.splitlines()] == ["small-en", "--precision"]
