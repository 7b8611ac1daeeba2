"""`elmo finetune`: what it is called with, what it says and where, and what it leaves behind."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer, Trained, elmo_program, run_process

Elmo = Callable[..., Answer]
QUICK = ("--input", "tokens", "--max-steps", "2")


@pytest.fixture(scope="session")
def tuned(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Trained:
    """The tiny model after an epoch on letters.txt, made by the installed command in a folder of its own."""
    here = tmp_path_factory.mktemp("tuned")
    options = ("-m", model, "--heldout", DATA / "letters.txt", "--general", DATA / "twenty.txt", "--extend-vocab", 20)
    answer = run_process(elmo_program(), "finetune", DATA / "letters.txt", *options, "--l2sp", 1, folder=here)
    return Trained(here / "models" / "harbour-letters", answer)


def table_of(card: str) -> list[list[str]]:
    """Return the cells of the table under the heading of fine-tuning."""
    lines = card.split("## Fine-tuning")[1].split("## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows]


def test_the_model_is_named_after_its_base_and_its_text(tuned: Trained) -> None:
    assert tuned.answer.code == 0, tuned.answer.stderr
    assert tuned.answer.text == "models/harbour-letters\n"
    assert {path.name for path in tuned.folder.iterdir()} == {
        "README.md",
        "config.json",
        "model.safetensors",
        "run",
        "vocab.txt",
    }


def test_both_perplexities_and_the_words_outside_are_told_before_and_after(tuned: Trained) -> None:
    found = json.loads((tuned.folder / "config.json").read_text())["provenance"]["finetuning"]["perplexity"]
    domain, general = found["domain"], found["general"]
    first, second = [line for line in tuned.answer.stderr.splitlines() if " after, on " in line]
    perplexities = [f"{domain[name]['both']:,.2f}" for name in ("base", "start", "after")]
    outside = [f"{domain[name]['oov_rate']:.2%}" for name in ("base", "after")]
    tokens = f"{domain['base']['tokens']:,} tokens"
    assert first == (
        f"held-out perplexity {perplexities[0]} before ({perplexities[1]} once its words are added), {perplexities[2]} "
        f"after, on {tokens}; outside the vocabulary: {outside[0]} before, {outside[1]} after"
    )
    assert second.startswith(f"general perplexity {general['base']['both']:,.2f} before ")
    assert domain["after"]["both"] < domain["start"]["both"]
    assert domain["after"]["oov_rate"] < domain["base"]["oov_rate"]


def test_the_plan_says_how_many_words_are_added(tuned: Trained) -> None:
    (line,) = [line for line in tuned.answer.stderr.splitlines() if line.startswith("vocabulary")]
    assert "types (of harbour, 20 added); outside it: " in line


def test_the_card_has_a_table_of_the_perplexities(tuned: Trained) -> None:
    found = json.loads((tuned.folder / "config.json").read_text())["provenance"]["finetuning"]["perplexity"]
    header, domain, general = table_of((tuned.folder / "README.md").read_text())
    assert header == ["text", "before", "before, with this model's softmax", "after"]
    for row, name in ((domain, "domain"), (general, "general")):
        figures = [found[name][column] for column in ("base", "start", "after")]
        assert row[1:] == [f"{figure['both']:,.2f} ({figure['oov_rate']:.2%})" for figure in figures]


def test_info_names_the_parent(elmo: Elmo, tuned: Trained, model: Path) -> None:
    parent = json.loads(elmo("info", tuned.folder, "--json").text)["provenance"]["parent"]
    assert parent["name"] == model.name
    assert (
        f"parent          name {parent['name']}, sha256 {parent['sha256'][:12]}"
        in elmo("info", tuned.folder).text.splitlines()
    )


def test_the_result_is_a_model_like_any_other(elmo: Elmo, tuned: Trained) -> None:
    after = json.loads((tuned.folder / "config.json").read_text())["provenance"]["finetuning"]["perplexity"]["general"]
    answer = elmo("perplexity", DATA / "twenty.txt", "-m", tuned.folder, "--json")
    assert json.loads(answer.text)["both"] == pytest.approx(after["after"]["both"], rel=1e-5)  # float32, other batches
    assert elmo("embed", DATA / "twenty.txt", "-m", tuned.folder, "-f", "jsonl").code == 0


def test_an_existing_model_is_not_replaced_without_force(elmo: Elmo, tuned: Trained, model: Path) -> None:
    answer = elmo("finetune", DATA / "twenty.txt", *QUICK, "-m", model, "-o", tuned.folder)
    assert answer.code == 2
    assert answer.stderr.startswith(f"elmo: error: {tuned.folder}: there is a model or a run already\n")


def test_resume_takes_the_limits_and_nothing_else(elmo: Elmo, here: Path, model: Path) -> None:
    assert elmo("finetune", DATA / "letters.txt", *QUICK, "-m", model, "-o", "m").code == 0
    assert elmo("finetune", "--resume", "m", "--max-steps", 3).text == "models/m\n"
    assert json.loads((here / "models" / "m" / "config.json").read_text())["provenance"]["training"]["steps"] == 3
    for settled in (
        ("--general", DATA / "twenty.txt"),
        ("--learning-rate", 5),
        ("--precision", "bfloat16"),
        ("--force",),
    ):
        answer = elmo("finetune", "--resume", "m", *settled)
        assert answer.code == 2
        assert f"\n  fix: leave out {settled[0]}; limits may change" in answer.stderr


def test_a_base_that_no_step_improves_is_kept_and_that_is_said(elmo: Elmo, here: Path, model: Path) -> None:
    answer = elmo("-q", "finetune", DATA / "letters.txt", *QUICK, "-m", model, "-o", "m", "--learning-rate", 5)
    assert answer.code == 0
    assert answer.stderr == (
        "elmo: warning: no step predicted the held-out text better than the base: the model holds the base's weights\n"
    )
    assert (here / "models" / "m" / "model.safetensors").read_bytes() == (model / "model.safetensors").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--freeze", "head"), "--freeze 'head' is no part of the model"),
        (("--freeze", "encoder,lstm,softmax"), "with all parts frozen there is nothing to train"),
        (("--l2sp", -1), "--l2sp is -1.0; it must be at least 0 and finite"),
        (("--learning-rate", 0), "--learning-rate is 0.0; it must be more than 0 and finite"),
    ],
)
def test_a_setting_that_makes_no_sense_exits_with_2(
    elmo: Elmo, here: Path, model: Path, options: tuple[object, ...], message: str
) -> None:
    answer = elmo("finetune", DATA / "twenty.txt", *QUICK, "-m", model, "-o", "m", *options)
    assert answer.code == 2
    assert answer.stderr.splitlines()[0] == f"elmo: error: {message}"
    assert not (here / "models").exists()
