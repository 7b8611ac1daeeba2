"""`elmo embed --out-dir`: an output for each text, whole or not there, and a run that can go on."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Answer

Elmo = Callable[..., Answer]


@pytest.fixture
def corpus(here: Path) -> Path:
    """Three texts in a folder with a folder in it; the second has no line."""
    folder = here / "corpus"
    (folder / "old").mkdir(parents=True)
    (folder / "a.txt").write_text("The ferry left .\nNobody waved .\n")
    (folder / "old" / "b.txt").write_text("")
    (folder / "old" / "c.txt").write_text("Tom slept .\n")
    return folder


@pytest.fixture
def embed(elmo: Elmo, model: Path) -> Callable[..., Answer]:
    def run(*arguments: object) -> Answer:
        return elmo("embed", *arguments, "-m", model, "--input", "tokens", "--out-dir", "out")

    return run


def files_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_folder_keeps_its_structure(embed: Elmo, elmo: Elmo, model: Path, corpus: Path, here: Path) -> None:
    answer = embed("corpus")
    assert (answer.code, answer.stdout) == (0, b"")
    assert answer.stderr == "3 files in out: 10 x 64 float32 from 3 sentences, 10 tokens (model harbour)\n"
    assert files_in(here / "out") == ["a.txt.npy", "old/b.txt.npy", "old/c.txt.npy"]
    assert np.load("out/old/b.txt.npy").shape == (0, 64)
    for name in ("a.txt", "old/c.txt"):
        assert elmo("embed", corpus / name, "-m", model, "--input", "tokens", "-o", "alone.npy", "--force").code == 0
        np.testing.assert_allclose(np.load(f"out/{name}.npy"), np.load("alone.npy"), atol=1e-6)


def test_files_named_one_by_one_lie_side_by_side_with_their_tables(embed: Elmo, corpus: Path, here: Path) -> None:
    options = ("-f", "jsonl", "--tokens-out", "tables")
    assert embed("corpus/a.txt", "corpus/old/c.txt", *options).code == 0
    assert files_in(here / "out") == ["a.txt.jsonl", "c.txt.jsonl"]
    assert files_in(here / "tables") == ["a.txt.tsv", "c.txt.tsv"]
    assert (here / "tables" / "c.txt.tsv").read_text().splitlines()[1] == "1\t1\t1\t0\t3\tTom"


def test_a_run_goes_on_where_it_stopped(embed: Elmo, corpus: Path, here: Path) -> None:
    (corpus / "old" / "c.txt").write_bytes(b"caf\xe9\n")
    answer = embed("corpus")
    assert answer.code == 1
    assert answer.stderr.startswith(
        "2 of 3 outputs are written; --skip-existing goes on from there\n"
        "elmo: error: corpus/old/c.txt:1: byte 0xe9 at offset 3 is not UTF-8\n"
    )
    assert files_in(here / "out") == ["a.txt.npy", "old/b.txt.npy"]
    (here / "out" / "a.txt.npy").write_bytes(b"kept as it is")
    (corpus / "old" / "c.txt").write_text("Tom slept .\n")
    answer = embed("corpus", "--skip-existing")
    assert answer.stderr == "1 file in out: 3 x 64 float32 from 1 sentence, 3 tokens (model harbour)\n"
    assert (here / "out" / "a.txt.npy").read_bytes() == b"kept as it is"
    assert embed("corpus", "--skip-existing").stderr == "all outputs are in out: nothing to do\n"


def test_a_text_whose_table_is_missing_is_not_done(embed: Elmo, corpus: Path, here: Path) -> None:
    embed("corpus/a.txt")
    assert embed("corpus/a.txt", "--tokens-out", "tables", "--skip-existing").code == 0
    assert files_in(here / "tables") == ["a.txt.tsv"]


@pytest.mark.parametrize(
    ("arguments", "problem", "fix"),
    [
        (
            ("corpus/a.txt", "corpus/../corpus/a.txt"),
            "the vectors of corpus/a.txt and of corpus/../corpus/a.txt would both go to out/a.txt.npy",
            "name the folder above them, or run the command twice",
        ),
        (
            ("corpus/a.txt", "-"),
            "--out-dir names outputs after files, and standard input has no name",
            "name files or folders, or write one output with -o FILE",
        ),
        (
            (),
            "--out-dir names outputs after files, and standard input has no name",
            "name files or folders, or write one output with -o FILE",
        ),
        (("corpus", "-o", "x.npy"), "-o names one output, --out-dir a folder of them", "give one of the two"),
        (
            ("corpus", "--force", "--skip-existing"),
            "--skip-existing keeps what is there, --force replaces it",
            "give one of the two",
        ),
        (
            ("corpus", "--carry-state"),
            "--carry-state makes texts depend on each other",
            "write one output: -o FILE",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_told_before_work_starts(
    embed: Elmo, corpus: Path, here: Path, arguments: tuple[str, ...], problem: str, fix: str
) -> None:
    answer = embed(*arguments)
    assert (answer.code, answer.stderr) == (2, f"elmo: error: {problem}\n  fix: {fix}\n")
    assert not (here / "out").exists()


def test_outputs_that_are_there_are_not_replaced_without_force(embed: Elmo, corpus: Path, here: Path) -> None:
    embed("corpus")
    answer = embed("corpus")
    assert answer.code == 2
    assert answer.stderr == (
        "elmo: error: out/a.txt.npy: the file exists, and so do 2 more\n"
        "  fix: keep what is there with --skip-existing, or replace it with --force\n"
    )
    assert embed("corpus", "--force").code == 0


def test_skip_existing_needs_a_folder(elmo: Elmo, corpus: Path) -> None:
    answer = elmo("embed", "corpus", "--skip-existing")
    problem = "--skip-existing is for the outputs in --out-dir\n  fix: add --out-dir DIR\n"
    assert (answer.code, answer.stderr) == (2, f"elmo: error: {problem}")


def test_a_file_in_the_place_of_the_folder_is_told(embed: Elmo, corpus: Path, here: Path) -> None:
    (here / "out").write_text("mine")
    answer = embed("corpus")
    assert answer.code == 1
    assert "cannot make the folder out: there is a file\n  fix: name another folder\n" in answer.stderr
    assert (here / "out").read_text() == "mine"


def test_outputs_that_would_be_texts_the_next_time_are_refused(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "in").mkdir()
    (here / "in" / "a.jsonl").write_text('{"tokens": ["a"]}\n')
    options = ("-m", model, "--input", "jsonl", "-f", "jsonl")
    answer = elmo("embed", "in", *options, "--out-dir", "in/out")
    assert answer.code == 2
    assert "outputs in in/out would be taken for texts of in the next time" in answer.stderr
    assert elmo("embed", "in", *options, "--out-dir", "out").code == 0
