"""What a command does in odd surroundings: outputs that are inputs, empty names, closed streams, full disks, Ctrl-C."""

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from command_line import Answer, elmo_program

Elmo = Callable[..., Answer]
Shell = Callable[..., Answer]


def error(problem: str, fix: str | None = None) -> str:
    return f"elmo: error: {problem}\n" + ("" if fix is None else f"  fix: {fix}\n")


@pytest.fixture
def text(here: Path) -> Path:
    path = here / "fine.txt"
    path.write_text("A fine line .\n")
    return path


@pytest.mark.parametrize(
    "options",
    [
        ("embed", "fine.txt", "-o", "fine.txt", "-f", "npy"),
        ("embed", "fine.txt", "-o", "./linked.txt", "-f", "npy"),
        ("embed", "fine.txt", "-o", "x.npy", "--tokens-out", "fine.txt"),
        ("surprisal", "fine.txt", "-o", "fine.txt"),
    ],
    ids=" ".join,
)
def test_a_text_is_never_written_over_not_even_by_force(
    elmo: Elmo, model: Path, text: Path, options: tuple[str, ...]
) -> None:
    (text.parent / "linked.txt").hardlink_to(text)
    answer = elmo(*options, "-m", model, "--force")
    assert (answer.code, answer.stdout) == (2, b"")
    problem = ": the input would be written over by what is made of it"
    assert answer.stderr.endswith(error("fine.txt" + problem, "write to another file").partition("fine.txt")[2])
    assert text.read_text() == "A fine line .\n"
    assert not (text.parent / "x.npy").exists()


def test_a_redirect_into_the_text_itself_is_refused(shell: Shell, model: Path, here: Path) -> None:
    (here / "x.jsonl").write_text('{"text": "A line."}\n')
    answer = shell("elmo embed x.jsonl --input jsonl -f jsonl -m $1 >> x.jsonl", model, folder=here)
    assert (answer.code, answer.stderr[:29]) == (2, "elmo: error: standard output:")
    assert (here / "x.jsonl").read_text() == '{"text": "A line."}\n'


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("embed", "x", "--batch-size", "many"), "'--batch-size': must be a whole number"),
        (("embed", "x", "--batch-size", "1.5"), "'--batch-size': must be a whole number"),
        (("train", "x", "--epochs", "0"), "'--epochs': must be at least 1"),
        (("train", "x", "--dropout", "half"), "'--dropout': must be a number"),
        (("mix", "learn", "x", "-o", "y", "--rate", "2"), "'--rate': must be at most 1"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_value_of_the_wrong_kind_is_told_in_plain_words(elmo: Elmo, arguments: tuple[str, ...], problem: str) -> None:
    answer = elmo(*arguments)
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr.startswith(f"elmo: error: invalid value for {problem}\n  fix: see elmo {arguments[0]} ")


def test_a_text_that_is_none_leaves_no_header_of_a_table(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "program").write_bytes(b"\x7fELF\x02\x01\x01\x00\x00")
    answer = elmo("surprisal", "program", "-m", model)
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == error("program: is binary, not text (a program)", "name plain text files")


@pytest.mark.parametrize("command", ["perplexity", "surprisal"])
def test_a_column_without_columns_is_refused(elmo: Elmo, model: Path, text: Path, command: str) -> None:
    answer = elmo(command, text, "-m", model, "--column", "3")
    assert (answer.code, answer.stdout) == (2, b"")
    problem = "--column 3 says nothing of --input lines"
    assert answer.stderr == error(problem, "leave it out, or add --input conll")


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (("train", "fine.txt", "-o", ""), "--output: the"),
        (("train", "--resume", ""), "--resume: the"),
        (("finetune", "fine.txt", "-o", ""), "--output: the"),
        (("convert", "fine.txt", "-o", ""), "--output: the"),
        (("convert", "fine.txt", "--to", "allennlp", "--output="), "--output: the"),
        (("embed", "fine.txt", "-m", "", "-o", "x.npy"), "--model: the"),
        (("embed", "fine.txt", "--out-dir", ""), "--out-dir: the"),
        (("surprisal", "fine.txt", "-o", ""), "--output: the"),
        (("index", "fine.txt", "--force", "-o", ""), "--output: the"),
        (("neighbors", "fine", "--batch", ""), "--batch: the"),
        (("neighbors", "fine", "--corpus", "fine.txt", "--index", ""), "--index: the"),
        (("senses", "fine", "--plot", ""), "--plot: the"),
        (("mix", "show", "x.json", ""), "FILE: the"),
        (("mix", "predict", "fine.txt", "--mix="), "--mix: the"),
        (("runs", ""), "DIR: the"),
        (("info", ""), "a model's"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_an_empty_name_is_told_and_does_nothing(
    elmo: Elmo, text: Path, arguments: tuple[str, ...], name: str, monkeypatch: pytest.MonkeyPatch, model: Path
) -> None:
    monkeypatch.setenv("ELMO_MODEL", str(model))
    answer = elmo(*arguments)
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr == error(f"{name} name is empty", "check the quotes or the shell variable it comes from")
    assert list(text.parent.iterdir()) == [text]


@pytest.mark.parametrize("time_text", ["0", "0s", "0h0m"])
def test_no_time_at_all_is_no_time_limit(elmo: Elmo, text: Path, time_text: str) -> None:
    answer = elmo("train", text, "--max-time", time_text)
    problem = f"'{time_text}' leaves no time at all"
    assert (answer.code, answer.stderr) == (2, error(problem, "write it like 90m, 1h30m or 45s"))


def test_a_folder_of_the_working_folder_that_is_no_model_is_told_as_a_folder(elmo: Elmo, here: Path) -> None:
    (here / "photos").mkdir()
    problem = "photos: the folder holds no model (no config.json)"
    answer = elmo("info", "photos")
    assert (answer.code, answer.stderr) == (1, error(problem, "choose a folder that holds config.json"))


def test_runs_tells_a_file_from_a_folder_that_is_not_there(elmo: Elmo, text: Path) -> None:
    fix = "name a model's folder, or one of models"
    assert elmo("runs", "fine.txt").stderr == error("fine.txt: is a file, no folder", fix)
    assert elmo("runs", "nothing").stderr == error("nothing: no such folder", fix)


@pytest.mark.parametrize("target", [".", "models", "models/harbour"])
def test_a_conversion_never_replaces_what_it_is_made_of(elmo: Elmo, model: Path, here: Path, target: str) -> None:
    folder = here / "models" / "harbour"
    folder.mkdir(parents=True)
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (folder / name).write_bytes((model / name).read_bytes())
    answer = elmo("convert", "harbour", "--to", "allennlp", "-o", target, "--force")
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr == error(f"{target}: the new model would replace what it is made of", "choose another -o")
    assert sorted(path.name for path in folder.iterdir()) == ["config.json", "model.safetensors", "vocab.txt"]


def test_a_conversion_never_replaces_a_folder_of_other_files(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "photos").mkdir()
    (here / "photos" / "cat.jpg").touch()
    answer = elmo("convert", model, "--to", "allennlp", "-o", "photos", "--force")
    problem = "photos: the folder holds no model, but other files"
    assert (answer.code, answer.stderr) == (1, error(problem, "choose another -o"))
    assert (here / "photos" / "cat.jpg").exists()


def test_a_model_of_ours_as_a_source_is_told_the_way_out(elmo: Elmo, model: Path, here: Path) -> None:
    answer = elmo("convert", model, "-o", "new")
    fix = "it is a model of elmo already; to convert it for AllenNLP, add --to allennlp"
    assert (answer.code, answer.stderr.splitlines()[-1]) == (1, f"  fix: {fix}")


@pytest.mark.parametrize("command", ["elmo info $1", "elmo --version", "elmo perplexity fine.txt -m $1 --input tokens"])
def test_a_full_disk_behind_any_answer_is_told_with_what_to_do(
    shell: Shell, model: Path, text: Path, command: str
) -> None:
    answer = shell(f"{command} > /dev/full", model, folder=text.parent)
    problem = "cannot write standard output: No space left on device"
    assert answer.code == 1
    assert answer.stderr == error(problem, "make room on that disk, or name a file on another one")


@pytest.mark.parametrize("command", ["elmo --help", "elmo embed --help"])
def test_help_that_cannot_be_written_is_no_traceback(shell: Shell, here: Path, command: str) -> None:
    answer = shell(f"{command} > /dev/full", folder=here)
    assert (answer.code, answer.stderr) == (1, error("No space left on device"))


def test_a_closed_standard_output_is_told(shell: Shell, model: Path, here: Path) -> None:
    answer = shell("elmo info $1 >&-", model, folder=here)
    assert (answer.code, answer.stderr) == (1, error("cannot write standard output: Bad file descriptor"))


def test_a_closed_standard_input_is_told(shell: Shell, model: Path, here: Path) -> None:
    answer = shell("elmo perplexity -m $1 --input tokens <&-", model, folder=here)
    assert (answer.code, answer.stderr) == (1, error("<stdin>: bad file descriptor"))


def test_a_closed_standard_error_keeps_the_answer_and_the_exit_code(shell: Shell, model: Path, here: Path) -> None:
    answer = shell("elmo info $1 --json 2>&- | tail -c 2; elmo info nothing 2>&-", model, folder=here)
    assert (answer.code, answer.stdout) == (1, b"}\n")


def test_an_interrupt_while_the_program_loads_is_no_traceback(here: Path) -> None:
    program = (
        "import os, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'elmo_cli.commands.app':\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "from elmo_cli.__main__ import main\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=here, capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (-signal.SIGINT, "", "")
    [script] = entry_points(group="console_scripts", name="elmo")
    assert script.value == "elmo_cli.__main__:main"


def test_a_narrow_terminal_keeps_the_count_and_the_time_left_of_a_training(model: Path, here: Path) -> None:
    from io import StringIO

    from rich.console import Console
    from rich.progress import Progress

    from elmo_cli.commands.console import BarProgress, ConsoleReporter

    bar = BarProgress(ConsoleReporter(quiet=False), "training", 8000, "steps")
    bar.update(1200, "loss 5.64, held-out perplexity 407.3, 2,060 tokens/s")
    drawn = bar._bar
    assert isinstance(drawn, Progress)
    screen = Console(file=StringIO(), width=60, force_terminal=True, color_system=None)
    with screen.capture() as capture:
        screen.print(drawn.get_renderable())
    line = capture.get().splitlines()
    assert len(line) == 1
    assert "1,200/8,000 steps" in line[0]
    assert "training" in line[0]
    assert line[0].rstrip().endswith("…")


def test_facts_are_wrapped_on_a_terminal_and_whole_in_a_pipe(elmo: Elmo, model: Path, here: Path) -> None:
    whole = elmo("info", model).text.splitlines()
    assert any(len(line) > 60 for line in whole)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": "60"}
    run = subprocess.run([elmo_program(), "info", str(model)], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    told = b""
    try:
        while part := os.read(ours, 1 << 16):
            told += part
    except OSError:  # the end, on Linux
        pass
    os.close(ours)
    wrapped = told.decode().splitlines()
    assert run.returncode == 0
    assert max(len(line) for line in wrapped if str(model) not in line) <= 60
    assert " ".join(" ".join(wrapped).split()) == " ".join(" ".join(whole).split())
