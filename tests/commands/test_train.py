"""`elmo train`: what it writes, what it says and where, and how it stops."""

import gzip
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import DATA, Answer, Trained, elmo_program

Elmo = Callable[..., Answer]
QUICK = ("--preset", "tiny", "--input", "tokens", "--max-steps", "2")
MODEL_FILES = {"README.md", "config.json", "model.safetensors", "run", "vocab.txt"}


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def metrics_of(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]


def test_only_the_path_of_the_model_goes_to_stdout(trained: Trained) -> None:
    assert trained.answer.code == 0
    assert trained.answer.text == f"{trained.folder}\n"


def test_the_plan_and_the_result_go_to_stderr(trained: Trained) -> None:
    first, *_, last = trained.answer.stderr.splitlines()
    assert first == "text        5,269 tokens in 312 sentences, 1,320 types"
    assert last.startswith("held-out perplexity ")


def test_a_model_is_a_folder_of_five_things(model: Path) -> None:
    assert names(model) == MODEL_FILES


def test_metrics_are_json_lines_from_the_untrained_model_to_the_last_step(model: Path) -> None:
    steps = [line["step"] for line in metrics_of(model)]
    assert (steps[0], steps[-1]) == (0, 30)
    assert steps == sorted(steps)  # type: ignore[type-var]


def test_the_config_tells_where_the_model_comes_from(model: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    assert config["tokenizer"]["name"] == "spacy"
    provenance = config["provenance"]
    assert [source["name"] for source in provenance["corpora"]] == ["harbour.txt"]
    assert provenance["settings"]["seed"] == 1
    assert provenance["heldout"]["tokens"] == 292


def test_an_existing_model_is_not_replaced_without_force(elmo: Elmo, model: Path) -> None:
    before = (model / "config.json").read_bytes()
    answer = elmo("train", DATA / "twenty.txt", *QUICK, "-o", model)
    assert answer.code == 2
    assert answer.stderr == (
        f"elmo: error: {model}: there is a model or a run already\n"
        f"  fix: go on with --resume {model}, replace it with --force, or choose another -o\n"
    )
    assert (model / "config.json").read_bytes() == before


def test_force_replaces_an_existing_model(elmo: Elmo, here: Path) -> None:
    for _ in range(2):
        assert elmo("train", DATA / "twenty.txt", *QUICK, "-o", "m", "--force").text == "models/m\n"
    assert [line["step"] for line in metrics_of(here / "models" / "m")].count(0) == 1


@pytest.mark.parametrize(
    "text", ["hello world\n", "hello world", "one\n" * 20], ids=["line", "no line end", "20 lines"]
)
def test_very_small_texts_make_a_model(elmo: Elmo, here: Path, text: str) -> None:
    (here / "small.txt").write_text(text)
    answer = elmo("train", "small.txt", *QUICK)
    assert (answer.code, answer.text) == (0, "models/small\n")
    assert names(here / "models" / "small") == MODEL_FILES


def test_a_text_too_small_to_spare_any_says_so(elmo: Elmo, here: Path) -> None:
    (here / "small.txt").write_text("hello world\n")
    answer = elmo("train", "small.txt", *QUICK)
    note = "held out    nothing: the text is too small, so the figures below are of the training text itself"
    assert note in answer.stderr.splitlines()


@pytest.mark.parametrize("name", ["news.txt", "news.tok", "news.text.gz", "news"])
def test_a_model_is_named_after_its_text(elmo: Elmo, here: Path, name: str) -> None:
    (here / name).write_text("hello world\n")  # compression is known by content, so a plain text will do
    assert elmo("train", name, *QUICK).text == "models/news\n"


def test_a_model_of_a_folder_of_texts_does_not_go_into_it(elmo: Elmo, here: Path) -> None:
    (here / "corpus").mkdir()
    (here / "corpus" / "a.txt").write_text("hello world\n")
    assert elmo("train", "corpus", *QUICK).text == "models/corpus\n"
    assert names(here / "corpus") == {"a.txt"}


def test_the_name_of_a_text_need_not_be_utf_8(elmo: Elmo, here: Path) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    (here / name).write_text("hello world\n")
    assert elmo("train", name, *QUICK, "-o", "cafe").text == "models/cafe\n"
    assert elmo("train", "--resume", "cafe").code == 0
    config = json.loads((here / "models" / "cafe" / "config.json").read_text())
    assert config["provenance"]["corpora"][0]["name"] == name


def test_the_name_of_a_model_is_utf_8_as_its_weights_could_not_be_read_else(elmo: Elmo, here: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    (here / f"{name}.txt").write_text("hello world\n")
    answer = elmo("train", f"{name}.txt", *QUICK)
    assert answer.code == 2
    message = r"elmo: error: models/caf\udce9: the model's name is not UTF-8"
    assert answer.stderr == f"{message}\n  fix: choose another -o\n"
    assert names(here) == {f"{name}.txt"}


def test_the_card_names_the_text_of_this_run_not_of_an_earlier_one_with_the_same_content(
    elmo: Elmo, here: Path
) -> None:
    for name in ("first", "second"):
        (here / f"{name}.txt").write_text("hello world\n")
        elmo("train", f"{name}.txt", *QUICK)
    assert "| second.txt | 12 |" in (here / "models" / "second" / "README.md").read_text()
    elmo("train", "--resume", "second")
    assert "| second.txt | 12 |" in (here / "models" / "second" / "README.md").read_text()


def test_standard_input_is_a_text(elmo: Elmo, here: Path) -> None:
    answer = elmo("train", "-", *QUICK, "-o", "piped", stdin=b"hello world\n")
    assert answer.text == "models/piped\n"
    config = json.loads((here / "models" / "piped" / "config.json").read_text())
    assert config["provenance"]["corpora"][0]["name"] == "<stdin>"


def test_a_heldout_text_is_measured_on(elmo: Elmo, here: Path) -> None:
    (here / "heldout.txt").write_text("hello world\n\nhow are you\n")
    elmo("train", DATA / "twenty.txt", *QUICK, "--heldout", "heldout.txt", "-o", "m")
    heldout = json.loads((here / "models" / "m" / "config.json").read_text())["provenance"]["heldout"]
    assert (heldout["tokens"], heldout["targets"], heldout["is_training_text"]) == (5, 7, False)


def test_quiet_leaves_only_the_answer(elmo: Elmo, here: Path) -> None:
    (here / "small.txt").write_text("hello world\n")
    answer = elmo("-q", "train", "small.txt", *QUICK)
    assert (answer.text, answer.stderr) == ("models/small\n", "")


def test_the_recipe_of_bilm_tf_and_its_streams_are_options(elmo: Elmo, here: Path) -> None:
    options = ("--recipe", "bilm-tf", "--stream", "--batch-tokens", "60", "-o", "m")
    assert elmo("train", DATA / "twenty.txt", *QUICK, *options).code == 0
    settings = json.loads((here / "models" / "m" / "config.json").read_text())["provenance"]["settings"]
    assert (settings["recipe"], settings["stream"], settings["batch_tokens"]) == ("bilm-tf", True, 60)
    assert (settings["learning_rate"], settings["negatives"]) == (0.2, 8192)
    assert metrics_of(here / "models" / "m")[-2]["learning_rate"] == 0.2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--recipe", "sgd"), "--recipe 'sgd' is not known\n  fix: choose adam or bilm-tf"),
        (("--precision", "int8"), "--precision 'int8' is not known\n  fix: choose float32, bfloat16 or float16"),
        (("--stream", "--accumulate", "2"), "streams are read by one process, a whole step at once"),
    ],
)
def test_a_recipe_that_makes_no_sense_is_refused(
    elmo: Elmo, here: Path, options: tuple[str, ...], message: str
) -> None:
    answer = elmo("train", DATA / "twenty.txt", *QUICK, *options)
    assert (answer.code, answer.stderr) == (2, f"elmo: error: {message}\n")


def test_training_that_diverges_exits_with_3(elmo: Elmo, here: Path) -> None:
    answer = elmo("-q", "train", DATA / "twenty.txt", *QUICK, "-o", "m", "--learning-rate", "1e30")
    assert answer.code == 3
    *warnings, error, fix = answer.stderr.splitlines()
    assert [line[:29] for line in warnings] == ["elmo: warning: the loss is na"] * 3
    assert error.startswith("elmo: error: the loss is ")
    assert error.endswith("; no model is kept yet")
    assert fix == "  fix: train again with a lower --learning-rate"
    assert answer.text == ""


@pytest.fixture
def under_way(here: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """A training in a process of its own, past its first steps; it would go on for minutes."""
    command = [elmo_program(), "train", str(DATA / "harbour.txt"), "--preset", "tiny", "--epochs", "1000", "-o", "m"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        metrics = here / "models" / "m" / "run" / "metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.read_bytes().count(b"\n") > 1):
            time.sleep(0.05)
        yield process
        process.kill()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_saves_and_resume_finishes(
    elmo: Elmo,
    here: Path,
    trained: Trained,  # has put the prepared text into the cache
    under_way: "subprocess.Popen[bytes]",
    number: int,
    code: int,
) -> None:
    under_way.send_signal(number)
    stdout, stderr = under_way.communicate(timeout=300)
    assert (under_way.returncode, stdout) == (code, b"")
    assert stderr.decode().endswith("; everything is saved\n  fix: go on with: elmo train --resume models/m\n")
    checkpoint = max((here / "models" / "m" / "run").glob("checkpoint-*"))
    step = json.loads((checkpoint / "values.json").read_text())["step"]
    answer = elmo("train", "--resume", "models/m", "--max-steps", step + 2)
    assert (answer.code, answer.text) == (0, "models/m\n")
    assert f"going on from step {step:,}" in answer.stderr.splitlines()
    assert metrics_of(here / "models" / "m")[-1]["step"] == step + 2
    assert names(here / "models" / "m") == MODEL_FILES


def test_a_training_that_is_lost_is_told(elmo: Elmo, here: Path) -> None:
    lost = ("train", DATA / "twenty.txt", "--preset", "tiny", "--max-steps", 3, "--input", "tokens", "-o", "m")
    answer = elmo(*lost, "--learning-rate", 30)
    assert answer.code == 0
    assert "far worse than word frequency alone: train again at a lower --learning-rate" in answer.stderr
    worse = elmo(*lost, "--learning-rate", 1000, "--force")
    assert worse.code == 3
    assert "fix: train again with a lower --learning-rate" in worse.stderr


@pytest.mark.parametrize("name", ["x.jsonl", "x.conllu", "x.conll.gz"])
def test_a_text_whose_name_tells_another_form_is_read_as_lines_with_a_warning(
    elmo: Elmo, here: Path, model: Path, name: str
) -> None:
    content = b'{"text": "hello world"}\n'
    (here / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    form = name.split(".")[1]
    said = f"elmo: warning: {name} is read as lines of text; if it is what its name says, add --input {form}\n"
    for command in (("embed", name, "-m", model, "-o", "x.npy", "--force"), ("perplexity", name, "-m", model)):
        assert said in elmo(*command).stderr
        assert said not in elmo(*command, "--input", "lines").stderr
