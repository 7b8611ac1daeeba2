"""`elmo senses`: the occurrences of a word in groups, printed and drawn."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]

pytest.importorskip("sklearn", reason="scikit-learn, an extra, is not installed")


@pytest.fixture
def ask(elmo: Elmo, model: Path, here: Path) -> Elmo:
    lines = [f"{1990 + n}\tThe kids play with ball {n} ." for n in range(12)]
    lines += [f"{2002 + n}\tHe wrote play number {n} about Rome !" for n in range(9)]
    (here / "years.tsv").write_text("year\ttext\n" + "\n".join(lines) + "\n")
    options = ("--corpus", "years.tsv", "-m", model, "--workers", 0)
    return lambda *arguments: elmo("senses", *arguments, *options)


def test_every_occurrence_has_its_group(ask: Elmo) -> None:
    answer = ask("play", "--groups", 2)
    header, *rows = [line.split("\t") for line in answer.text.splitlines()]
    assert header == ["group", "typicality", "word", "file", "line", "token", "text"]
    assert sorted(int(row[4]) for row in rows) == list(range(2, 23))
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert ask("play", "--groups", 2).stdout == answer.stdout


def test_json_tells_the_groups_and_their_lines(ask: Elmo) -> None:
    found = json.loads(ask("play", "--json", "-k", 2).stdout)
    assert list(found) == ["word", "model", "layer", "occurrences", "silhouette", "groups"]
    assert sum(group["size"] for group in found["groups"]) == found["occurrences"] == 21
    assert all(len(group["lines"]) <= 2 for group in found["groups"])
    assert set(found["groups"][0]["lines"][0]["fields"]) == {"year"}


def test_a_word_that_occurs_seldom_is_one_group(ask: Elmo) -> None:
    answer = ask("7", "-f", "text")
    assert answer.text.startswith("group 1: 2 of 2 (100%)\n")
    assert "'7' occurs 2 times, too seldom to group: one group" in answer.stderr


def test_the_same_line_again_and_again_is_one_group(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "same.txt").write_text("The kids play outside .\n" * 5)
    options = ("--corpus", "same.txt", "-m", model, "--workers", 0, "-f", "text")
    answer = elmo("senses", "play", *options)
    assert answer.text.startswith("group 1: 5 of 5 (100%)\n")
    assert "'play' occurs 5 times, again and again in the same sentence: one group\n" in answer.stderr
    asked = elmo("senses", "play", "--groups", 3, *options)
    assert "'play' occurs 5 times: 1 group, not 3, as too many are the same\n" in asked.stderr


def test_an_absent_word_is_told(ask: Elmo) -> None:
    answer = ask("plais")
    assert (answer.code, answer.stdout) == (1, b"")
    assert "'plais' does not occur in the corpus\n  fix: the nearest words are 'play'" in answer.stderr


def test_a_drawing_may_be_coloured_by_a_column(ask: Elmo, here: Path) -> None:
    assert ask("play", "--plot", "x.svg", "--color-by", "year").code == 0
    svg = (here / "x.svg").read_text()
    assert svg.count("<title>") == 21
    assert "by year (layer 2 of harbour, pca)" in svg
    assert ask("play", "--plot", "x.html").code == 0
    assert "http" not in (here / "x.html").read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("play", "--plot", "x.pdf"), 2, "a plot cannot be written as 'x.pdf'"),
        (
            ("play", "--plot", "x.svg", "--color-by", "month"),
            2,
            "the corpus has no column or key 'month'\n  fix: choose year",
        ),
        (("play", "--map", "tsne"), 2, "--map 'tsne' is not known"),
        (
            ("play", "--plot", "years.tsv"),
            2,
            "years.tsv: the file exists\n  fix: replace it with --force, or choose another --plot",
        ),
        (("play", "--color-by", "year"), 2, "--color-by colours a drawing, and none is asked for"),
    ],
)
def test_what_cannot_be_done_is_told(
    ask: Elmo, here: Path, arguments: tuple[str, ...], code: int, problem: str
) -> None:
    answer = ask(*arguments)
    assert (answer.code, answer.stdout) == (code, b"")
    assert f"elmo: error: {problem}" in answer.stderr
    assert [path.name for path in here.iterdir()] == ["years.tsv"]
