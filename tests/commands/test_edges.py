"""What a command makes of values and surroundings at the edge: huge numbers, `-`, names of other forms, no memory."""

import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]


@pytest.fixture
def text(here: Path) -> Path:
    path = here / "fine.txt"
    path.write_text("A fine line .\n")
    return path


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("mix", "learn", "x.conll", "-o", "-"), "-o"),
        (("mix", "show", "x.json", "--plot", "-"), "--plot"),
        (("index", "fine.txt", "-o", "-"), "-o"),
        (("senses", "line", "--plot", "-"), "--plot"),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_no_file_is_called_like_standard_output(
    elmo: Elmo, text: Path, arguments: tuple[str, ...], option: str
) -> None:
    answer = elmo(*arguments)
    problem = f"{option} - is standard output, and this is written to a name"
    if option == "--plot" and arguments[0] == "mix":
        problem = "the name - does not tell the format"
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr.startswith(f"elmo: error: {problem}\n")
    assert list(text.parent.iterdir()) == [text]


@pytest.mark.parametrize(
    "arguments",
    [
        ("train", "fine.txt", "-o", "m", "--seed", "4294967296"),
        ("finetune", "fine.txt", "-o", "m", "--seed", "4294967296"),
        ("mix", "learn", "fine.txt", "-o", "m", "--seed", "4294967296"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_a_seed_that_no_generator_takes_is_refused(elmo: Elmo, text: Path, arguments: tuple[str, ...]) -> None:
    answer = elmo(*arguments)
    assert answer.code == 2
    assert answer.stderr.startswith("elmo: error: invalid value for '--seed': must be at most 4294967295\n")


def test_a_time_that_no_number_can_say_is_refused(elmo: Elmo, text: Path) -> None:
    answer = elmo("train", text, "--max-time", "9" * 400 + "h")
    assert answer.code == 2
    assert answer.stderr.endswith("' is longer than centuries\n  fix: leave it out for no limit\n")


@pytest.mark.parametrize(
    "problem",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: can't allocate memory: ..."),
    ],
    ids=["Python's", "torch's"],
)
def test_a_lack_of_memory_is_told(
    elmo: Elmo, model: Path, text: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*arguments: object) -> None:
        raise problem

    monkeypatch.setattr("elmo_cli.storage.model_info.model_info", fail)
    answer = elmo("info", model)
    assert (answer.code, answer.stderr) == (
        1,
        "elmo: error: there is not enough memory\n  fix: close other programs, or ask for less at once\n",
    )


def test_json_has_null_for_what_is_no_number(elmo: Elmo, model: Path, here: Path) -> None:
    copy = here / "lost"
    copy.mkdir()
    for path in model.glob("*.*"):
        (copy / path.name).write_bytes(path.read_bytes())
    config = json.loads((copy / "config.json").read_text())
    config["provenance"]["heldout"]["both"] = float("inf")
    (copy / "config.json").write_text(json.dumps(config))
    answer = elmo("info", "./lost", "--json")
    assert "Infinity" not in answer.text
    assert json.loads(answer.text)["provenance"]["heldout"]["both"] is None


def test_columns_stand_below_each_other_whatever_the_script(capsys: pytest.CaptureFixture[str]) -> None:
    from elmo_cli.commands.console import answer_table

    answer_table([("file", "n"), ("\u6587\u5b57.txt", "1"), ("text.txt", "12")])
    assert capsys.readouterr().out.splitlines() == ["file       n", "\u6587\u5b57.txt   1", "text.txt  12"]


@pytest.mark.parametrize("command", ["train", "finetune"])
def test_a_training_on_a_file_of_another_form_is_warned_of(elmo: Elmo, model: Path, here: Path, command: str) -> None:
    (here / "a.jsonl").write_text('{"text": "A line of text ."}\n' * 30)
    options = ("--max-steps", 1, "-o", "m", *(("--preset", "tiny") if command == "train" else ("-m", model)))
    answer = elmo(command, "a.jsonl", *options)
    warning = "a.jsonl is read as lines of text; if it is what its name says, add --input jsonl"
    assert answer.code == 0
    assert f"elmo: warning: {warning}\n" in answer.stderr


@pytest.mark.parametrize(
    ("name", "form"),
    [("a.jsonl.zst", "jsonl"), ("a.conll.bz2", "conll"), ("a.tok", "tokens"), ("a.ndjson", "jsonl"), ("a.text", None)],
)
def test_the_name_of_a_file_tells_its_form(elmo: Elmo, model: Path, here: Path, name: str, form: str | None) -> None:
    (here / name).write_text("A line\n")
    answer = elmo("perplexity", name, "-m", model)
    assert answer.code == 0
    told = f"elmo: warning: {name} is read as lines of text; if it is what its name says, add --input {form}\n"
    assert answer.stderr == (told if form else "")


def test_a_user_without_a_home_gets_no_folder_called_tilde(monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli import settings

    for name in ("ELMO_CACHE", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as where neither $HOME nor the user is known
    assert settings.cache_folder().is_absolute()
    assert settings.data_folder().is_absolute()


def test_a_conversion_to_a_language_without_tokenizer_is_refused(elmo: Elmo, model: Path, here: Path) -> None:
    assert elmo("convert", model, "--to", "allennlp", "-o", "theirs").code == 0
    answer = elmo("convert", "theirs", "-o", "ours", "--lang", "klingon")
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr.startswith("elmo: error: spaCy has no language 'klingon'\n")
    assert not (here / "models").exists()


def test_a_filter_of_half_a_width_is_no_filter(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "half").mkdir()
    config = json.loads((model / "config.json").read_text())
    config["bilm"]["char_cnn"]["filters"][0] = [1.5, 8]
    (here / "half" / "config.json").write_text(json.dumps(config))
    answer = elmo("info", "./half")
    assert answer.code == 1
    assert "filters are not pairs of whole numbers" in answer.stderr


def test_a_concordance_goes_to_a_terminal_of_another_encoding(monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli.commands.neighbors_answer import show_lines
    from elmo_cli.neighbors.concordance import ConcordanceLine

    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", screen)
    show_lines([ConcordanceLine(" 0.9  ", "Ein ", "Caf\u00e9", " am Flu\u00df", "  \u6587.txt:1")])
    screen.flush()
    assert screen.buffer.getvalue() == b" 0.9  Ein Caf\\xe9 am Flu\\xdf  \\u6587.txt:1\n"


def test_a_terminal_that_is_closed_stops_no_work(here: Path) -> None:
    program = (
        "import os, pty\nfrom elmo_cli.commands.console import ConsoleReporter\n"
        "ours, theirs = pty.openpty()\nos.dup2(theirs, 2)\nos.close(theirs)\n"
        "reporter = ConsoleReporter(quiet=False)\n"
        "with reporter.progress('training', 10, 'steps') as progress:\n"
        "    progress.update(1)\n    os.close(ours)\n    progress.update(2)\n    reporter.note('a note')\n"
        "reporter.note('another')\nprint('done')\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=here, stdout=subprocess.PIPE, start_new_session=True)
    assert (run.returncode, run.stdout) == (0, b"done\n")
