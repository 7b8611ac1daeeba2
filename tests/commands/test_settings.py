"""Settings: flag before variable before file before default, each shown with its origin, each mistake with its line."""

import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer

Elmo = Callable[..., Answer]
FILE = """\
device = "cpu"
threads = 1

[embed]
layers = "top"
batch-size = 12
skip_punct = true

[train]
heldout = ["a.txt", "b.txt"]
"""


@pytest.fixture
def file(here: Path) -> Path:
    (here / "f.toml").write_text(FILE)
    (here / "line.txt").write_text("A line .\n")
    return Path("f.toml")


def shown(answer: Answer) -> dict[str, str]:
    """Return the line of each setting."""
    assert (answer.code, answer.stderr) == (0, "")
    lines = [line for line in answer.text.splitlines() if line and not line.startswith("[")]
    return {line.removeprefix("# ").split()[0].rstrip(":"): line for line in lines}


def test_a_flag_goes_before_a_variable_before_the_file_before_the_default(
    elmo: Elmo, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def device(*arguments: object) -> str:
        line = shown(elmo("--config", file, "--show-settings", "embed", *arguments))["device"]
        return " ".join(line.split())

    assert device() == 'device = "cpu" # f.toml:1'
    monkeypatch.setenv("ELMO_DEVICE", "cuda")
    assert device() == 'device = "cuda" # variable ELMO_DEVICE'
    assert device("--device", "mps") == 'device = "mps" # flag'
    file.write_text("")
    monkeypatch.delenv("ELMO_DEVICE")
    assert device() == 'device = "auto" # default'


def test_shown_settings_name_what_a_command_chooses_by_itself(elmo: Elmo, file: Path) -> None:
    lines = shown(elmo("--show-settings", "train"))
    assert lines["learning-rate"].rstrip() == "# learning-rate: 0.004; bilm-tf 0.2   # default"


def test_shown_settings_are_a_file_that_gives_the_same_settings(elmo: Elmo, file: Path) -> None:
    first = elmo("--config", file, "--show-settings", "train", "--max-time", "5m").text
    Path("g.toml").write_text(first)
    again = elmo("--config", "g.toml", "--show-settings", "train").text
    assert tomllib.loads(again) == tomllib.loads(first)
    assert tomllib.loads(first)["train"]["heldout"] == ["a.txt", "b.txt"]


def test_showing_settings_does_no_work(elmo: Elmo, file: Path) -> None:
    shown(elmo("--show-settings", "embed", "no such file", "-o", "x.npy"))
    assert not Path("x.npy").exists()


def test_showing_settings_asks_for_no_input(elmo: Elmo, file: Path) -> None:
    lines = shown(elmo("--show-settings", "mix", "learn", "--seed", 9))
    assert lines["seed"].split() == "seed = 9 # flag".split()
    assert lines["output"].split() == "# output: # default".split()


def test_a_variable_names_the_file_too(elmo: Elmo, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELMO_CONFIG", str(file))
    assert "# f.toml:5" in shown(elmo("--show-settings", "embed"))["layers"]
    assert shown(elmo("--show-settings", "embed"))["skip-punct"].split() == "skip-punct = true # f.toml:7".split()


def test_the_file_changes_what_a_command_does(elmo: Elmo, file: Path, model: Path) -> None:
    import numpy as np

    assert elmo("embed", "line.txt", "-m", model, "--layers", "top", "-o", "flag.npy").code == 0
    assert elmo("--config", file, "embed", "line.txt", "-m", model, "-o", "file.npy").code == 0
    flag, from_file = np.load("flag.npy"), np.load("file.npy")
    np.testing.assert_allclose(from_file, flag[:2], atol=1e-6)  # without the full stop, by skip_punct
    assert elmo("embed", "line.txt", "-m", model, "-o", "default.npy").code == 0
    assert not np.allclose(np.load("default.npy"), flag)


@pytest.mark.parametrize(("key", "command"), [("index", "neighbors"), ("mix", "embed")])
def test_a_key_that_is_a_commands_name_too_may_stand_at_the_top(elmo: Elmo, file: Path, key: str, command: str) -> None:
    file.write_text(f'{key} = "x.y"\n')
    lines = shown(elmo("--config", file, "--show-settings", command))
    assert lines[key].split() == f'{key} = "x.y" # f.toml:1'.split()


def test_quiet_may_stand_in_the_file(elmo: Elmo, file: Path, model: Path) -> None:
    file.write_text("quiet = true\n")
    answer = elmo("--config", file, "embed", "line.txt", "-m", model, "-o", "x.npy")
    assert (answer.code, answer.stderr) == (0, "")


MISTAKES = [
    ("[embed]\nlayer = 'top'\n", 2, "elmo embed has no setting 'layer'", "did you mean layers?"),
    ("[embde]\n", 1, "elmo has no command 'embde'", "did you mean embed?"),
    ("\nthread = 2\n", 2, "elmo has no setting 'thread'", "did you mean threads?"),
    ("[embed]\nxyzzy = 2\n", 2, "elmo embed has no setting 'xyzzy'", "`elmo embed --help` names what there is"),
    ("[embed]\nfiles = 'a'\n", 2, "elmo embed has no setting 'files'", None),
    ("[embed.foo]\n", 1, "elmo embed has no setting 'foo'", None),
    ("[mix.lern]\n", 1, "elmo mix has no command 'lern'", "did you mean learn?"),
    ("embed = 3\n", 1, "embed is a command, not a setting", "write a table [embed]"),
    ("[[embed]]\n", 1, "embed is a command, not a setting", "write a table [embed]"),
    ("[embed.layers]\n", 1, "layers is a table", "write text or a number"),
    ("config = 'x'\n", 1, "elmo has no setting 'config'", None),
    ("[embed]\nlayers = true\n", 2, "layers is true", "write text or a number"),
    ("[embed]\nlayers = ['top']\n", 2, "layers is ['top']", "write text or a number"),
    ("[embed]\nforce = 1\n", 2, "force is 1", "write true or false"),
    ("[embed]\nforce = 'yes'\n", 2, "force is 'yes'", "write true or false"),
    ("[train]\nheldout = [true]\n", 2, "heldout is true", "write text, a number, or a list of them"),
    ("\n\n[embed]\nlayers = 'x'\n", 4, "--layers 'x' is not understood", "choose average, top, all, or numbers"),
    ("precision = 'x'\n", 1, "--precision 'x' is not known", "choose float32, bfloat16, float16 or int8"),
]


@pytest.mark.parametrize(("text", "line", "problem", "fix"), MISTAKES, ids=[mistake[2] for mistake in MISTAKES])
def test_a_mistake_in_the_file_is_told_with_its_line(
    elmo: Elmo, model: Path, file: Path, text: str, line: int, problem: str, fix: str | None
) -> None:
    file.write_text(text)
    answer = elmo("--config", file, "embed", "line.txt", "-m", model, "-o", "x.npy")
    assert (answer.code, answer.stdout) == (2, b"")
    first, second = answer.stderr.splitlines()
    assert first == f"elmo: error: f.toml:{line}: {problem}"
    assert fix is None or second.startswith(f"  fix: {fix}")


@pytest.mark.parametrize("value", ["0", '"x"', "1.5"])
def test_a_wrong_number_is_refused_as_the_option_refuses_it(elmo: Elmo, file: Path, value: str) -> None:
    typed = elmo("embed", "line.txt", "--batch-size", value.strip('"'))
    file.write_text(f"[embed]\nbatch-size = {value}\n")
    answer = elmo("--config", file, "embed", "line.txt")
    reason = typed.stderr.splitlines()[0].rpartition("'--batch-size': ")[2]
    assert (typed.code, answer.code) == (2, 2)
    assert answer.stderr == f"elmo: error: f.toml:2: invalid value for '--batch-size': {reason}\n"


def test_a_model_that_is_not_there_is_told_with_the_line_that_names_it(elmo: Elmo, file: Path) -> None:
    file.write_text('model = "nowhere"\n')
    answer = elmo("--config", file, "embed", "line.txt", "-o", "x.npy")
    assert answer.code == 1
    assert answer.stderr.startswith("elmo: error: f.toml:1: no model 'nowhere'; there are: ")


def test_a_mistake_on_the_command_line_is_not_laid_on_the_file(elmo: Elmo, file: Path, model: Path) -> None:
    answer = elmo("--config", file, "embed", "line.txt", "-m", model, "--layers", "7", "-o", "x.npy")
    assert answer.code == 2
    assert answer.stderr.startswith("elmo: error: --layers '7': the model has no layer 7")


def test_a_table_inside_a_group_goes_before_the_group_and_the_top(elmo: Elmo, file: Path) -> None:
    file.write_text("seed = 1\n[mix]\nseed = 2\nepochs = 9\n[mix.learn]\nseed = 3\n")
    lines = shown(elmo("--config", file, "--show-settings", "mix", "learn", "x", "-o", "y"))
    assert lines["seed"].split() == "seed = 3 # f.toml:6".split()
    assert lines["epochs"].split() == "epochs = 9 # f.toml:4".split()


def test_a_run_is_repeated_from_its_own_settings(elmo: Elmo, file: Path) -> None:
    corpus = DATA / "harbour.txt"
    options = ("--preset", "tiny", "--max-steps", 6, "--seed", 5, "--dropout", 0.2, "--dtype", "float16")
    assert elmo("train", corpus, "-o", "first", *options, "--threads", 1).code == 0
    settings = Path("models/first/run/settings.toml")
    answer = elmo("--config", settings, "train", corpus, "-o", "second", "--threads", 1)
    assert answer.code == 0
    assert "warning" not in answer.stderr
    weights = [Path("models", name, "model.safetensors").read_bytes() for name in ("first", "second")]
    assert weights[0] == weights[1]
    texts = [Path("models", name, "run/settings.toml").read_text() for name in ("first", "second")]
    assert texts[0] == texts[1]


RUN = """\
[training]
recipe = "adam"
max_steps = 7
clip_norm = 5.0
weights_dtype = "float16"

[text]
corpora = ["a.txt"]
heldout = []
mode = "tokens"

[made_by]
tool = "elmo 0.1.0"
"""


def test_what_no_option_sets_is_told_where_it_would_make_a_difference(elmo: Elmo, file: Path) -> None:
    file.write_text(RUN)
    answer = elmo("--config", file, "--show-settings", "train")
    assert answer.stderr == "elmo: warning: f.toml:4: clip_norm is no option of a run: 1.0, not 5.0\n"
    settings = tomllib.loads(answer.text)["train"]
    assert (settings["input"], settings["dtype"], settings["max-steps"]) == ("tokens", "float16", 7)
    assert "# f.toml:10" in answer.text  # mode, which is --input


def test_the_settings_of_a_fine_tuning_are_those_of_finetune(elmo: Elmo, file: Path) -> None:
    file.write_text(RUN.replace("5.0", "1.0") + '[finetune]\nbase = "models/x"\nbase_sha256 = "0"\nl2sp = 2.0\n')
    answer = elmo("--config", file, "--show-settings", "finetune")
    assert answer.stderr == ""
    settings = tomllib.loads(answer.text)["finetune"]
    assert (settings["model"], settings["l2sp"], settings["max-steps"]) == ("models/x", 2.0, 7)


def test_the_settings_of_a_run_are_not_those_of_another_command(elmo: Elmo, file: Path) -> None:
    file.write_text(RUN)
    answer = elmo("--config", file, "--show-settings", "embed")
    assert answer.stderr == "elmo: warning: f.toml is of a run of elmo train: it says nothing to elmo embed\n"
    assert "f.toml" not in answer.text
