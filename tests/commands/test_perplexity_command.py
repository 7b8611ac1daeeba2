"""`elmo perplexity`: one figure a text and one for all, whatever the batch, and never without a text or a softmax."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command_line import DATA, Answer

Elmo = Callable[..., Answer]
TEXTS = (DATA / "harbour.txt", DATA / "world.txt")
KEYS = ["sentences", "bits_per_byte", "forward", "backward", "both", "targets", "tokens", "oov_rate"]


def json_of(answer: Answer) -> dict[str, Any]:
    assert answer.code == 0, answer.stderr
    found = json.loads(answer.stdout)
    assert isinstance(found, dict)
    return found


def test_json_has_the_figures_of_all_texts_and_of_each(elmo: Elmo, model: Path) -> None:
    found = json_of(elmo("perplexity", *TEXTS, "-m", model, "--json"))
    files = found.pop("files")
    assert list(found) == KEYS
    assert [list(file) for file in files] == [["file", *KEYS]] * 2
    assert [file["file"] for file in files] == list(map(str, TEXTS))
    for key in ("sentences", "tokens", "targets"):
        assert found[key] == sum(file[key] for file in files)
    assert found["both"] == pytest.approx((found["forward"] * found["backward"]) ** 0.5)
    for text, file in zip(TEXTS, files, strict=True):
        alone = json_of(elmo("perplexity", text, "-m", model, "--json"))
        assert {key: alone[key] for key in KEYS} == pytest.approx({key: file[key] for key in KEYS})


def test_the_table_has_a_row_a_text_and_the_total(elmo: Elmo, model: Path) -> None:
    found = json_of(elmo("perplexity", *TEXTS, "-m", model, "--json"))
    answer = elmo("perplexity", *TEXTS, "-m", model)
    header, *rows = [line.split() for line in answer.text.splitlines()]
    assert header == ["file", "sentences", "tokens", "oov", "forward", "backward", "both", "bits/byte"]
    assert [row[0] for row in rows] == [*map(str, TEXTS), "total"]
    for row, figures in zip(rows, (*found["files"], found), strict=True):
        perplexities = [f"{figures[key]:,.2f}" for key in ("forward", "backward", "both")]
        counts = [f"{figures[key]:,}" for key in ("sentences", "tokens")]
        assert row[1:] == [*counts, f"{figures['oov_rate']:.2%}", *perplexities, f"{figures['bits_per_byte']:.3f}"]
    assert len({len(line) for line in answer.text.splitlines()}) == 1  # numbers end under each other


@pytest.mark.parametrize("batch_tokens", [1, 100])
def test_batches_do_not_change_a_figure(elmo: Elmo, model: Path, batch_tokens: int) -> None:
    usual, other = (
        json_of(elmo("perplexity", TEXTS[1], "-m", model, "--json", "--batch-tokens", size))
        for size in (4096, batch_tokens)
    )
    assert {key: other[key] for key in KEYS} == pytest.approx({key: usual[key] for key in KEYS}, rel=1e-5)


def test_empty_lines_and_standard_input_change_nothing(elmo: Elmo, model: Path) -> None:
    spaced = TEXTS[1].read_bytes().replace(b"\n", b"\n\n") + b"\n\n"
    piped = json_of(elmo("perplexity", "-m", model, "--json", stdin=spaced))
    assert piped["files"][0]["file"] == "<stdin>"
    named = json_of(elmo("perplexity", TEXTS[1], "-m", model, "--json"))
    assert {key: piped[key] for key in KEYS} == pytest.approx({key: named[key] for key in KEYS}, rel=1e-6)


def test_words_outside_the_vocabulary_are_counted_as_the_user_split_them(elmo: Elmo, model: Path) -> None:
    vocabulary = (model / "vocab.txt").read_text().split("\n")
    assert "ferry" in vocabulary
    line = b"ferry xyzzy don't xyzzy\n"
    found = json_of(elmo("perplexity", "-m", model, "--input", "tokens", "--json", stdin=line))
    assert (found["tokens"], found["targets"], found["oov_rate"]) == (4, 5, 0.75)


@pytest.mark.parametrize("content", [b"", b"\n\n  \n"])
def test_a_text_of_no_tokens_has_no_perplexity(elmo: Elmo, model: Path, content: bytes) -> None:
    answer = elmo("perplexity", "-m", model, stdin=content)
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == (
        "elmo: error: <stdin>: the text has no tokens, so there is nothing to predict\n"
        "  fix: name a text of at least one word\n"
    )


def test_an_empty_file_among_others_has_a_row_without_figures(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "empty.txt").touch()
    arguments = ("perplexity", "empty.txt", TEXTS[1], "-m", model)
    empty, other = json_of(elmo(*arguments, "--json"))["files"]
    nothing = dict.fromkeys(KEYS)
    assert empty == {"file": "empty.txt", **nothing, "sentences": 0, "targets": 0, "tokens": 0}
    assert other["targets"] > 0
    assert elmo(*arguments).text.splitlines()[1].split() == ["empty.txt", "0", "0", *["-"] * 5]


def test_the_heldout_figure_of_training_is_the_same_number(elmo: Elmo, here: Path) -> None:
    text, heldout = here / "text.txt", here / "heldout.txt"
    text.write_bytes(TEXTS[0].read_bytes())
    heldout.write_bytes(TEXTS[1].read_bytes())
    trained = elmo("train", text, "--heldout", heldout, "--preset", "tiny", "--max-steps", 2, "-o", "m")
    assert trained.code == 0
    recorded = json.loads((here / "models/m/config.json").read_text())["provenance"]["heldout"]
    found = json_of(elmo("perplexity", heldout, "-m", "m", "--json"))
    for key in ("forward", "backward", "both", "targets", "tokens", "oov_rate"):
        assert found[key] == pytest.approx(recorded[key], rel=1e-5)


@pytest.mark.parametrize("command", ["perplexity", "surprisal"])
def test_a_model_that_predicts_nothing_is_refused(elmo: Elmo, model: Path, here: Path, command: str) -> None:
    config = json.loads((model / "config.json").read_text())
    (here / "m").mkdir()
    (here / "m" / "config.json").write_text(json.dumps({**config, "vocabulary_size": None}))
    answer = elmo(command, TEXTS[1], "-m", "./m")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == (
        "elmo: error: m: the model has no softmax, so it predicts no words\n"
        "  fix: take a model of `elmo train`, or convert it again from weights with a softmax and vocab.txt\n"
    )


def test_a_model_without_its_vocabulary_is_refused(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "m").mkdir()
    for name in ("config.json", "model.safetensors"):
        (here / "m" / name).symlink_to(model / name)
    answer = elmo("perplexity", TEXTS[1], "-m", "./m")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr == (
        "elmo: error: m/vocab.txt: cannot be read: No such file or directory; "
        "it says which words the softmax predicts\n"
        "  fix: convert the model again with its vocab.txt\n"
    )
