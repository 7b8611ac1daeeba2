"""Names that others have chosen: of texts, of sentences, of models. Nothing is written but what the user has named."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]

ESCAPES = ["../x", "/etc/x", "..", "a/../../x", "\x1b[2J", "a\nb", "\0", "-o", "x" * 5000]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, deep enough that ways out of it can be seen."""
    folder = tmp_path / "a" / "b" / "here"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    return folder


def everything(here: Path) -> set[Path]:
    return {path for path in here.parents[2].rglob("*") if "model" not in path.parts}


def test_the_ids_of_sentences_name_no_files(elmo: Elmo, sound_model: Path, here: Path) -> None:
    lines = [json.dumps({"id": escape, "tokens": [escape], escape: escape}) for escape in ESCAPES]
    (here / "t.jsonl").write_text("\n".join(lines))
    (here / "t.conllu").write_text("# sent_id = ../../x\n1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
    before = everything(here)
    for text, ending in [("t.jsonl", "jsonl"), ("t.jsonl", "hdf5"), ("t.jsonl", "npz"), ("t.conllu", "jsonl")]:
        mode = text.rpartition(".")[2]
        options = ("--input", mode, "-o", f"out.{ending}", "--tokens-out", "rows.tsv", "--force")
        answer = elmo("embed", text, "-m", sound_model, *options)
        assert answer.code == 0, answer.stderr
        assert everything(here) - before == {here / f"out.{ending}", here / "rows.tsv"}
        (here / f"out.{ending}").unlink()


def test_a_row_of_the_table_stays_a_row_whatever_its_token_holds(elmo: Elmo, sound_model: Path, here: Path) -> None:
    (here / "t.jsonl").write_text(json.dumps({"tokens": ["a\tb", "c\nd", "e\r\nf", "\\t", "\x1b[31m", "\0"]}))
    options = ("--input", "jsonl", "-o", "out.npy", "--tokens-out", "rows.tsv")
    assert elmo("embed", "t.jsonl", "-m", sound_model, *options).code == 0
    rows = (here / "rows.tsv").read_text().split("\n")
    assert len(rows) == 8
    assert {row.count("\t") for row in rows[:-1]} == {5}


def test_links_in_a_folder_of_texts_lead_no_output_astray(elmo: Elmo, sound_model: Path, here: Path) -> None:
    outside = here.parent / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "deep" / "t.txt").write_text("boat\n")
    texts = here / "texts"
    texts.mkdir()
    (texts / "linked.txt").symlink_to(outside / "deep" / "t.txt")
    (texts / "folder").symlink_to(outside)
    (texts / "round").symlink_to(".")
    (texts / "a\nb.txt").write_text("boat\n")
    (texts / "\x1b[2J.txt").write_text("boat\n")
    (texts / "-o.txt").write_text("boat\n")
    before = everything(here)
    answer = elmo("embed", texts, "-m", sound_model, "--input", "tokens", "--out-dir", "out", "--tokens-out", "rows")
    assert answer.code == 0, answer.stderr
    new = everything(here) - before
    assert {
        path for path in new if here / "out" not in (path, *path.parents) and here / "rows" not in (path, *path.parents)
    } == set()
    assert sorted(path.name for path in (here / "out").iterdir()) == [
        "\x1b[2J.txt.npy",
        "-o.txt.npy",
        "a\nb.txt.npy",
        "linked.txt.npy",
    ]


NAMES = {
    "NUL": ("a\0b", {1, 2}),
    "very long": ("x" * 5000, {1}),
    "very long path": ("x/" * 3000, {1}),
    "empty": ("", {1, 2}),
    "newline": ("a\nb", {0, 1, 2}),
    "escape": ("\x1b[2J", {0, 1, 2}),
    "leading dash": ("-x", {0, 1, 2}),
    "not UTF-8": ("\udcff", {0, 1, 2}),
}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("option", ["-o", "--out-dir", "--tokens-out", "-m", "FILE", "--mix"])
def test_odd_names_of_files_are_files_or_refused(
    elmo: Elmo, sound_model: Path, here: Path, option: str, name: str
) -> None:
    value, codes = NAMES[name]
    (here / "t.txt").write_text("boat\n")
    before = everything(here)
    arguments = ["t.txt"] if option != "FILE" else ["--", value]
    named = [f"{option}{value}" if option in ("-o", "-m") else f"{option}={value}"] if option != "FILE" else []
    answer = elmo(
        "embed", "--input", "tokens", "-f", "npy", *(["-m", sound_model] if option != "-m" else []), *named, *arguments
    )
    assert answer.code in codes, answer.stderr
    assert "Traceback" not in answer.stderr
    assert not any(ord(character) < 32 and character not in "\n\t" for character in answer.stderr)
    if answer.code:
        assert everything(here) == before
    else:
        assert all(path.is_relative_to(here) for path in everything(here) - before)


@pytest.mark.parametrize("name", NAMES)
def test_odd_names_of_new_models_are_models_or_refused(elmo: Elmo, sound_model: Path, here: Path, name: str) -> None:
    value, codes = NAMES[name]
    before = everything(here)
    answer = elmo("convert", sound_model, f"-o{value}")  # which is no model of another tool
    assert answer.code in codes - {0}, answer.stderr
    assert "Traceback" not in answer.stderr
    answer = elmo("convert", sound_model, "--to", "allennlp", f"-o{value}")
    assert answer.code in codes, answer.stderr
    new = everything(here) - before
    assert all(path.is_relative_to(here) for path in new)
    assert bool(new) == (answer.code == 0)


def test_the_provenance_of_a_model_names_no_files(elmo: Elmo, model: Path, here: Path) -> None:
    config = json.loads((model / "config.json").read_text())
    config["provenance"] = {
        "parent": "../../x",
        "corpora": [{"name": "/etc/passwd", "sha256": "\x1b[2J"}],
        "../x": "a\nb",
    }
    config["tokenizer"]["language"] = "../../x"
    (model / "config.json").write_text(json.dumps(config))
    before = everything(here)
    assert elmo("info", model).code == 0
    assert elmo("convert", model, "--to", "allennlp", "-o", "theirs").code == 0
    assert elmo("embed", "-m", model, "-o", "x.npy", stdin=b"boat\n").code == 2  # no such language
    assert {path.relative_to(here).parts[0] for path in everything(here) - before} == {"theirs"}
