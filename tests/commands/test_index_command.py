"""`elmo index`: an index that lasts, for `elmo neighbors` and `elmo senses`."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]


@pytest.fixture
def texts(here: Path) -> Path:
    (here / "a.txt").write_text("The kids play.\n\nHe wrote a play, a good play.\n", encoding="utf-8")
    (here / "b.txt").write_text("They don't play in the bank.\n", encoding="utf-8")
    return here


@pytest.fixture
def make(elmo: Elmo, model: Path, texts: Path) -> Elmo:
    return lambda *arguments, **stdin: elmo("index", *arguments, "-m", model, "--workers", 0, **stdin)


@pytest.fixture
def check(elmo: Elmo) -> Callable[[], dict]:
    return lambda: json.loads(elmo("index", "-o", "x.idx", "--check").stdout)


def test_an_index_answers_as_the_texts_do(make: Elmo, elmo: Elmo, model: Path) -> None:
    made = make("a.txt", "b.txt", "-o", "x.idx")
    assert (made.code, made.stdout) == (0, b"")
    assert "x.idx holds 21 of 21 tokens, layer 2" in made.stderr
    query = ("neighbors", "play", "in", "A play.", "-m", model, "--workers", 0)
    assert elmo(*query, "--index", "x.idx").stdout == elmo(*query, "--corpus", "a.txt", "b.txt").stdout


def test_what_is_added_is_found_too(make: Elmo, elmo: Elmo, model: Path, check: Callable[[], dict]) -> None:
    make("a.txt", "b.txt", "-o", "whole.idx")
    make("a.txt", "-o", "x.idx")
    assert "added 8 of 8 tokens" in make("b.txt", "-o", "x.idx", "--append").stderr
    query = ("neighbors", "play", "in", "A play.", "-m", model, "--workers", 0)
    assert elmo(*query, "--index", "x.idx").stdout == elmo(*query, "--index", "whole.idx").stdout
    found = check()
    assert (found["rows"], found["sound"], [part["rows"] for part in found["parts"]]) == (21, True, [13, 8])


@pytest.mark.parametrize(
    ("options", "rows"),
    [
        (("--only", "play,river"), 4),
        (("--only", "don't"), 2),
        (("--no-punct",), 17),
        (("--min-count", 2), 9),
        (("--only", "words.txt"), 1),
        (("--no-stop-words", "--no-punct"), 8),
    ],
)
def test_only_what_is_wanted_is_kept(
    make: Elmo, check: Callable[[], dict], here: Path, options: tuple[object, ...], rows: int
) -> None:
    (here / "words.txt").write_text("BANK\n")
    answer = make("a.txt", "b.txt", "-o", "x.idx", *options)
    assert answer.code == 0, answer.stderr
    assert check()["rows"] == rows
    assert ("1 of the words do not occur: river" in answer.stderr) == ("play,river" in options)


def test_a_query_asks_for_a_layer_that_is_there(make: Elmo, elmo: Elmo, model: Path) -> None:
    make("a.txt", "-o", "x.idx", "--layers", "1")
    query = ("neighbors", "play", "in", "A play.", "-m", model, "--workers", 0, "--index", "x.idx")
    assert json.loads(elmo(*query, "--json").stdout)["layer"] == 1
    answer = elmo(*query, "--layer", "top")
    assert answer.code == 2
    assert "the index x.idx has no layer 2; it has 0, 1\n  fix: choose --layer 1" in answer.stderr


def test_a_word_that_the_index_leaves_out_is_told_so(make: Elmo, elmo: Elmo, model: Path) -> None:
    make("a.txt", "-o", "x.idx", "--only", "play")
    answer = elmo("neighbors", "kids", "Kids and kids.", "-m", model, "--workers", 0, "--index", "x.idx")
    assert answer.code == 1
    assert "x.idx: 'kids' is not in the index, which keeps 1 word alone" in answer.stderr


def test_another_model_is_refused(make: Elmo, elmo: Elmo, model: Path) -> None:
    make("a.txt", "-o", "x.idx")
    answer = elmo("neighbors", "play", "in", "A play.", "-m", "small-en", "--index", "x.idx")
    assert answer.code == 1
    assert "x.idx: the index is of the model harbour (" in answer.stderr
    assert ", not of small-en (" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("a.txt",), 2, "there is no -o INDEX"),
        (("-o", "x.idx"), 2, "no text is named"),
        (("none.txt", "-o", "x.idx"), 1, "none.txt: no such file or folder"),
        (("a.txt", "-o", "x.idx", "--append"), 1, "x.idx: no such index"),
        (
            ("a.txt", "-o", "x.idx", "--append", "--only", "a"),
            2,
            "what is added to an index has its layers and filters",
        ),
        (("a.txt", "-o", "x.idx", "--layers", "average"), 2, "an index keeps layers, not their average"),
        (("a.txt", "-o", "x.idx", "--layers", "7"), 2, "--layers '7': the model has no layer 7"),
        (("-", "-o", "x.idx", "--min-count", 2), 2, "--min-count reads the text twice"),
        (("a.txt", "-o", "a.txt"), 2, "a.txt exists"),
        (("a.txt", "-o", "a.txt", "--force"), 2, "a.txt exists and is no index"),
        (("a.txt", "-o", ".", "--force"), 2, ". exists and is no index"),
        (("empty.txt", "-o", "x.idx"), 1, "there is no token to index in empty.txt"),
    ],
)
def test_what_cannot_be_done_is_told_and_leaves_nothing(
    make: Elmo, here: Path, arguments: tuple[object, ...], code: int, problem: str
) -> None:
    (here / "empty.txt").write_text("\n\n")
    answer = make(*arguments, stdin=b"a\n")
    assert (answer.code, answer.stdout) == (code, b"")
    assert f"elmo: error: {problem}" in answer.stderr
    assert sorted(path.name for path in here.iterdir()) == ["a.txt", "b.txt", "empty.txt"]


def test_a_damaged_index_is_an_error(make: Elmo, elmo: Elmo, model: Path, here: Path) -> None:
    make("a.txt", "-o", "x.idx")
    vectors = here / "x.idx" / "part-1" / "layer-2.npy"
    content = bytearray(vectors.read_bytes())
    content[-1] ^= 4
    vectors.write_bytes(content)
    query = ("neighbors", "play", "in", "A play.", "-m", model, "--workers", 0, "--index", "x.idx", "--any")
    for answer in (elmo(*query), elmo("index", "-o", "x.idx", "--check")):
        assert (answer.code, answer.stdout) == (1, b"")
        assert "x.idx: the index is damaged: part-1/layer-2.npy is not as it was written" in answer.stderr


def test_an_approximate_index_says_what_it_finds(make: Elmo, elmo: Elmo, model: Path) -> None:
    pytest.importorskip("usearch", reason="usearch, an extra, is not installed")
    answer = make("a.txt", "b.txt", "-o", "x.idx", "--approximate")
    assert "approximate index of layer 2: finds 100.0% of the 10 nearest" in answer.stderr
    query = ("neighbors", "play", "in", "A play.", "-m", model, "--workers", 0, "--index", "x.idx", "--any", "-k", 5)
    near, exact = (elmo(*query, *more).text.splitlines() for more in ((), ("--exact",)))
    assert [line.split("\t")[2:] for line in near] == [line.split("\t")[2:] for line in exact]


def test_what_is_added_twice_is_told(make: Elmo, texts: Path) -> None:
    make("a.txt", "b.txt", "-o", "x.idx")
    again = make("b.txt", "-o", "x.idx", "--append")
    assert again.code == 0
    assert "b.txt was in the index already, and is in it twice now" in again.stderr
    (texts / "a.txt").write_text("Another text of this name.\n")
    assert "twice" not in make("a.txt", "-o", "x.idx", "--append").stderr


def test_the_index_to_check_may_stand_without_an_option(make: Elmo, elmo: Elmo) -> None:
    make("a.txt", "-o", "x.idx")
    assert elmo("index", "--check", "x.idx").stdout == elmo("index", "--check", "-o", "x.idx").stdout
    assert elmo("index", "--check", "a.txt", "-o", "x.idx").code == 2
    assert "fix: make one with: elmo index CORPUS -o FOLDER" in elmo("index", "--check", "none.idx").stderr


def test_a_word_that_an_index_lacks_is_not_sent_to_a_corpus(make: Elmo, elmo: Elmo, model: Path) -> None:
    make("b.txt", "-o", "x.idx")
    answer = elmo("neighbors", "zzz", "in", "A zzz.", "-m", model, "--workers", 0, "--index", "x.idx")
    assert answer.code == 1
    assert "fix: name another index, or add a text to this one" in answer.stderr
