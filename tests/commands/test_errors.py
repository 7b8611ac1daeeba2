"""What the user reads when a command cannot do what was asked: the fact, the place, the remedy, and the exit code."""

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Answer

Elmo = Callable[..., Answer]
LAYERS_FIX = "choose average, top, all, or numbers such as 0,2"


def message(problem: str, fix: str | None = None) -> str:
    return f"elmo: error: {problem}\n" + ("" if fix is None else f"  fix: {fix}\n")


@pytest.fixture
def inputs(here: Path) -> Path:
    """The folder to work in, with one fine text and several things that are none."""
    (here / "fine.txt").write_text("A fine line.\n")
    (here / "empty").mkdir()
    (here / "empty" / "notes.md").write_text("not taken\n")
    (here / "latin.txt").write_bytes(b"fine\ncaf\xe9\n")
    (here / "wide.txt").write_bytes("A line.\n".encode("utf-16"))
    (here / "cut.txt.gz").write_bytes(b"\x1f\x8b\x08\x00\x00\x00\x00\x00")
    np.save(here / "array.npy", np.arange(100.0))
    return here


BAD_INPUTS = [
    pytest.param("xyz", "xyz: no such file or folder", "check the name", id="missing"),
    pytest.param("fin.txt", "fin.txt: no such file or folder", "did you mean fine.txt?", id="misspelled"),
    pytest.param(
        "no/fine.txt",
        "no/fine.txt: no such file or folder",
        "check the path: there is no folder no either",
        id="missing folder",
    ),
    pytest.param(
        "empty",
        "empty: the folder holds no file whose name ends in .txt or .text",
        "name the files themselves",
        id="folder without text",
    ),
    pytest.param(
        "latin.txt",
        "latin.txt:2: byte 0xe9 at offset 8 is not UTF-8",
        "convert it (iconv -f LATIN1 -t UTF-8, if it is Latin-1), or pass --encoding-errors replace",
        id="bad byte",
    ),
    pytest.param(
        "wide.txt", "wide.txt: is UTF-16, not UTF-8", "convert it with: iconv -f UTF-16 -t UTF-8", id="UTF-16"
    ),
    pytest.param("array.npy", "array.npy: is binary, not text (a NumPy array)", "name plain text files", id="binary"),
    pytest.param(
        "cut.txt.gz", "cut.txt.gz: the gzip stream ends early", "copy or download the file again", id="cut gzip"
    ),
]


@pytest.mark.parametrize(("name", "problem", "fix"), BAD_INPUTS)
def test_an_input_that_cannot_be_used_leaves_no_output(
    elmo: Elmo, model: Path, inputs: Path, name: str, problem: str, fix: str
) -> None:
    before = sorted(inputs.iterdir())
    answer = elmo("embed", "fine.txt", name, "-m", model, "-o", "x.npy", "--tokens-out", "x.tsv")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == message(problem, fix)
    assert sorted(inputs.iterdir()) == before


@pytest.mark.parametrize(("name", "problem", "fix"), BAD_INPUTS)
def test_an_input_that_cannot_be_used_leaves_no_model(
    elmo: Elmo, inputs: Path, name: str, problem: str, fix: str
) -> None:
    answer = elmo("train", "fine.txt", name, "-o", "m")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == message(problem, fix)
    assert not (inputs / "models").exists()


def test_an_unknown_model_is_told_with_the_names_there_are(
    elmo: Elmo, model: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_MODELS", str(model.parent))
    monkeypatch.setattr("elmo_cli.settings._shipped_folders", list)
    answer = elmo("embed", "fine.txt", "-m", "harbor", "-o", "x.npy")
    assert answer.code == 1
    assert answer.stderr == message("no model 'harbor'; there are: harbour", "did you mean harbour?")
    assert not (inputs / "x.npy").exists()


def test_a_folder_that_is_no_model_is_told(elmo: Elmo, inputs: Path) -> None:
    answer = elmo("embed", "fine.txt", "-m", "./empty")
    problem = "./empty: the folder holds no model (no config.json)"
    assert (answer.code, answer.stderr) == (1, message(problem, "name the folder that holds config.json"))


@pytest.mark.parametrize(
    ("options", "problem", "fix"),
    [
        (("--layers", "7"), "--layers '7': the model has no layer 7, but layers 0 to 2", LAYERS_FIX),
        (("--layers", "-1"), "--layers '-1': the model has no layer -1, but layers 0 to 2", LAYERS_FIX),
        (("--layers", "best"), "--layers 'best' is not understood", LAYERS_FIX),
        (("--pool", "sum"), "--pool 'sum' is not known", "choose none, mean, max, first, last or mean-max"),
        (("--dtype", "float64"), "--dtype 'float64' is not known", "choose float32 or float16"),
        (("--input", "json"), "--input 'json' is not known", "choose lines, text, tokens, jsonl, conll or conllu"),
        (("--encoding-errors", "x"), "--encoding-errors 'x' is not known", "choose strict or replace"),
        (("--lang", "english"), "spaCy has no language 'english'", "did you mean en?"),
        (("--tokens-out", "x.npy"), "vectors and table would both go to x.npy", "choose another --tokens-out"),
    ],
    ids=lambda value: "" if isinstance(value, str) else " ".join(value),
)
def test_an_option_that_makes_no_sense_exits_with_2(
    elmo: Elmo, model: Path, inputs: Path, options: tuple[str, ...], problem: str, fix: str
) -> None:
    before = sorted(inputs.iterdir())
    answer = elmo("embed", "fine.txt", "-m", model, "-o", "x.npy", *options)
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr == message(problem, fix)
    assert sorted(inputs.iterdir()) == before


def test_an_unknown_device_is_told_with_those_there_are(elmo: Elmo, model: Path, inputs: Path) -> None:
    answer = elmo("embed", "fine.txt", "-m", model, "--device", "abacus")
    assert answer.code == 2
    assert answer.stderr.startswith("elmo: error: device 'abacus' is not known")
    assert re.search(r"\n  fix: choose auto(, cpu)*(, cuda)? or (cpu|cuda|mps)\n$", answer.stderr)


@pytest.mark.parametrize("option", ["-o", "--tokens-out"])
def test_an_existing_output_is_not_replaced_without_force(elmo: Elmo, model: Path, inputs: Path, option: str) -> None:
    answer = elmo("embed", "fine.txt", "-m", model, option, "latin.txt", "-f", "npy")
    problem = "latin.txt: the file exists"
    assert answer.code == 2
    assert answer.stderr == message(problem, "replace it with --force, or choose another -o")
    assert (inputs / "latin.txt").read_bytes() == b"fine\ncaf\xe9\n"


def test_a_name_that_does_not_tell_the_format_is_refused(elmo: Elmo, model: Path, inputs: Path) -> None:
    answer = elmo("embed", "fine.txt", "-m", model, "-o", "x.csv")
    assert answer.code == 2
    assert answer.stderr.startswith("elmo: error: the name x.csv does not tell the format\n  fix: end it in .npy or ")
    assert not (inputs / "x.csv").exists()


@pytest.mark.parametrize(
    ("output", "problem", "fix"),
    [
        ("no/x.npy", "cannot write no/x.npy: No such file or directory", "mkdir -p no"),
        (
            "fine.txt/x.npy",
            "cannot write fine.txt/x.npy: Not a directory",
            "fine.txt is not a folder: name another one",
        ),
        ("empty", "cannot write empty: Is a directory", "name a file in it, such as empty/FILE"),
        (
            "/dev/full",
            "cannot write /dev/full: No space left on device",
            "make room on that disk, or name a file on another one",
        ),
    ],
)
def test_an_output_that_cannot_be_written_is_told(
    elmo: Elmo, model: Path, inputs: Path, output: str, problem: str, fix: str
) -> None:
    before = sorted(inputs.rglob("*"))
    answer = elmo("embed", "fine.txt", "-m", model, "-o", output)
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == message(problem, fix)
    assert sorted(inputs.rglob("*")) == before


def test_a_vector_too_large_for_float16_leaves_no_file(elmo: Elmo, model: Path, inputs: Path) -> None:
    from safetensors.numpy import load_file, save_file

    broken = inputs / "broken"
    broken.mkdir()
    for name in ("config.json", "vocab.txt"):
        (broken / name).write_bytes((model / name).read_bytes())
    tensors = load_file(model / "model.safetensors")
    tensors["token_encoder.projection.bias"][:] = 1e6
    save_file(tensors, broken / "model.safetensors")
    answer = elmo("embed", "fine.txt", "-m", "./broken", "--layers", "0", "--dtype", "float16", "-o", "x.npy")
    assert answer.code == 1
    assert answer.stderr.endswith(" does not fit into float16\n  fix: write float32: --dtype float32\n")
    assert [path.name for path in inputs.iterdir() if "x.npy" in path.name] == []


@pytest.mark.parametrize(
    ("arguments", "problem", "fix"),
    [
        ((), "there is no text to train on", "name files or folders, or - for standard input"),
        (
            ("fine.txt", "--preset", "huge"),
            "no preset 'huge'",
            "choose one of tiny, small, elmo-small, elmo-medium, elmo-original",
        ),
        (
            ("fine.txt", "--input", "json"),
            "--input 'json' is not known",
            "choose lines, text, tokens, jsonl, conll or conllu",
        ),
        (("fine.txt", "--max-time", "soon"), "'soon' is no duration", "write it like 90m, 1h30m or 45s"),
        (("fine.txt", "--learning-rate", "0"), "--learning-rate is 0.0; it must be more than 0 and finite", None),
        (("fine.txt", "--learning-rate", "inf"), "--learning-rate is inf; it must be more than 0 and finite", None),
        (("fine.txt", "--dropout", "1"), "--dropout is 1.0; it must be at least 0 and less than 1", None),
        (("fine.txt", "--dtype", "int8"), "--dtype 'int8' is not known", "choose float32 or float16"),
        (("-",), "the text does not tell a name for the model", "give one with -o NAME"),
        (("-", "-", "-o", "m"), "standard input (-) is named twice", "name - once"),
        (
            ("fine.txt", "--resume", "m"),
            "--resume takes texts, settings and place from the run",
            "leave out CORPUS; limits may change: --epochs, --max-steps, --max-time",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_training_that_makes_no_sense_exits_with_2(
    elmo: Elmo, inputs: Path, arguments: tuple[str, ...], problem: str, fix: str | None
) -> None:
    answer = elmo("train", *arguments)
    assert (answer.code, answer.stdout) == (2, b"")
    assert answer.stderr == message(problem, fix)
    assert not (inputs / "models").exists()


def test_a_run_that_is_not_there_cannot_go_on(elmo: Elmo, inputs: Path) -> None:
    answer = elmo("train", "--resume", "no-run")
    problem = "no-run: there is no run to go on with"
    assert (answer.code, answer.stderr) == (1, message(problem, "name the folder of a model in training"))


def test_a_text_without_a_word_trains_nothing(elmo: Elmo, inputs: Path) -> None:
    (inputs / "blank.txt").write_text("\n \n")
    answer = elmo("train", "blank.txt")
    assert (answer.code, answer.stderr) == (
        1,
        message("blank.txt: there is no token in the text", "name a text of at least one word"),
    )
    assert not (inputs / "models").exists()


def test_no_word_frequent_enough_is_told_with_the_remedy(elmo: Elmo, inputs: Path) -> None:
    answer = elmo("train", "fine.txt", "--min-count", "2")
    problem = "fine.txt: no word occurs 2 times in the text"
    assert (answer.code, answer.stderr) == (1, message(problem, "lower --min-count"))


def test_a_model_that_cannot_be_written_is_told_before_training(elmo: Elmo, inputs: Path) -> None:
    answer = elmo("-q", "train", "fine.txt", "--preset", "tiny", "--max-steps", "1", "-o", "fine.txt/m")
    assert answer.code == 1
    assert answer.stderr.startswith("elmo: error: cannot write fine.txt/m/run: Not a directory\n")


@pytest.mark.parametrize("arguments", [("--nonsense",), ("embed", "--nonsense"), ("nonsense",)])
def test_what_typer_does_not_know_exits_with_2(elmo: Elmo, arguments: tuple[str, ...]) -> None:
    answer = elmo(*arguments)
    assert (answer.code, answer.stdout) == (2, b"")
    assert "nonsense" in answer.stderr
