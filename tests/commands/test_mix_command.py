"""`elmo mix`: what is learned is stored, shown, applied, and refused for what it does not fit."""

import json
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from command_line import Answer

TRAIN = (
    "-DOCSTART- O\n\n"
    + "John\tB-PER\nlives\tO\nin\tO\nNew\tB-LOC\nYork\tI-LOC\n.\tO\n\nMary\tB-PER\nleft\tO\n.\tO\n\n" * 4
)
# A sum of three float32 numbers of size 1, computed in batches or alone.
FLOAT32 = 1e-5

Elmo = Callable[..., Answer]


@pytest.fixture(scope="session")
def learned(elmo: Elmo, model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with train.conll and the mix that was learned on it."""
    folder = tmp_path_factory.mktemp("mix")
    (folder / "train.conll").write_text(TRAIN, encoding="utf-8")
    options = ("--dev", folder / "train.conll", "-m", model, "-o", folder / "ner.mix.json", "--head", "linear")
    answer = elmo("mix", "learn", folder / "train.conll", *options, "--epochs", 3, "--seeds", 2, "--rate", 0.05)
    assert answer.code == 0, answer.stderr
    (folder / "answer.txt").write_text(answer.text, encoding="utf-8")
    return folder


def test_the_table_tells_mix_average_and_each_layer_over_the_seeds(learned: Path) -> None:
    lines = (learned / "answer.txt").read_text(encoding="utf-8").splitlines()
    assert lines[2].split() == ["dev,", "%", "span", "F1", "accuracy"]
    assert [line[:13].rstrip() for line in lines[3:8]] == ["mix", "average", "layer 2 (top)", "layer 1", "layer 0"]
    assert all(line.count("±") == 2 for line in lines[3:8])
    assert [line.split()[0] for line in lines[10:14]] == ["layer", "layer", "layer", "gamma"]
    assert max(map(len, lines)) <= 60


def test_show_prints_and_draws_what_learn_has_found(elmo: Elmo, learned: Path, here: Path) -> None:
    mix = learned / "ner.mix.json"
    assert elmo("mix", "show", mix).text == (learned / "answer.txt").read_text(encoding="utf-8")
    answer = elmo("mix", "show", mix, mix, "--json", "--plot", "two.svg")
    found = [json.loads(line) for line in answer.text.splitlines()]
    assert [one["file"] for one in found] == ["ner.mix.json"] * 2
    assert sum(found[0]["s"]) == pytest.approx(1, abs=1e-6)
    assert found[0]["scores"][0]["mean"] == pytest.approx(np.mean(found[0]["scores"][0]["values"]))
    assert (here / "two.svg").read_text(encoding="utf-8").startswith("<svg")
    refused = elmo("mix", "show", mix, "--plot", "two.svg")
    assert (refused.code, "choose another --plot" in refused.stderr) == (2, True)
    assert "two.svg: is not a mix file" in elmo("mix", "show", "two.svg").stderr
    assert "end it in .svg or .png" in elmo("mix", "show", mix, "--plot", "two.pdf").stderr


def test_embed_and_apply_give_the_same_sum(elmo: Elmo, learned: Path, model: Path, here: Path) -> None:
    mix = json.loads(elmo("mix", "show", learned / "ner.mix.json", "--json").text)
    (here / "a.txt").write_text("The kids play.\n\nA play.\n", encoding="utf-8")
    assert elmo("embed", "a.txt", "-m", model, "--layers", "all", "-o", "all.npy").code == 0
    assert elmo("embed", "a.txt", "--mix", learned / "ner.mix.json", "-o", "mixed.npy").code == 0
    layers, mixed = np.load("all.npy"), np.load("mixed.npy")
    by_hand = mix["gamma"] * np.einsum("k,tkd->td", mix["s"], layers.astype(np.float64))
    np.testing.assert_allclose(mixed, by_hand, atol=FLOAT32)
    applied = elmo("mix", "apply", "all.npy", "--mix", learned / "ner.mix.json")
    np.testing.assert_allclose(np.load(BytesIO(applied.stdout)), by_hand, atol=FLOAT32)
    weights = ",".join(map(str, mix["s"]))
    content = (here / "all.npy").read_bytes()
    piped = elmo("mix", "apply", "-", "--weights", weights, "--gamma", mix["gamma"], stdin=content)
    assert piped.stdout == applied.stdout


def test_predict_puts_labels_in_and_score_counts_them(elmo: Elmo, learned: Path, model: Path) -> None:
    mix = ("--mix", learned / "ner.mix.json")
    found = elmo("mix", "predict", learned / "train.conll", *mix)
    assert found.code == 0, found.stderr
    assert "train.conll: replaced column 2 of each row; --label-column 3 appends" in found.stderr
    rows = [
        (line.split("\t"), gold.split("\t"))
        for line, gold in zip(found.text.splitlines(), TRAIN.splitlines(), strict=True)
    ]
    assert all(row[0] == gold[0] and len(row) == len(gold) for row, gold in rows)
    score = json.loads(elmo("mix", "score", learned / "train.conll", *mix, "--json").text)
    pairs = [(row[1], gold[1]) for row, gold in rows if len(gold) == 2]
    assert score["accuracy"] == pytest.approx(sum(one == other for one, other in pairs) / len(pairs))
    assert score["metric"] == "span_f1"
    assert set(score["by_label"]) >= {"LOC", "PER"}
    lines = elmo("mix", "predict", *mix, stdin=b"John left.\n").text.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["John", "left", ".", ""]


def test_score_tells_of_labels_that_were_never_learned(elmo: Elmo, learned: Path, here: Path) -> None:
    (here / "some.conll").write_text("John\tB-PER\nran\tB-VERB\n\n", encoding="utf-8")
    (here / "none.conll").write_text("John\tNOUN\nran\tVERB\n\n", encoding="utf-8")
    answer = elmo("mix", "score", "some.conll", "--mix", learned / "ner.mix.json")
    assert (answer.code, "labels that were never learned count as errors: B-VERB\n" in answer.stderr) == (0, True)
    refused = elmo("mix", "score", "none.conll", "--mix", learned / "ner.mix.json")
    assert (refused.code, refused.stdout) == (1, b"")
    known = "none.conll: the mix has learned none of the labels NOUN, VERB; it knows B-LOC, B-PER, I-LOC, O"
    assert known in refused.stderr
    assert "fix: choose another --label-column, or another mix" in refused.stderr


def test_the_same_command_gives_the_same_file(elmo: Elmo, learned: Path, model: Path, here: Path) -> None:
    options = ("-m", model, "--head", "linear", "--epochs", 2, "--seeds", 1, "--no-compare")
    for name, cache in (("a", "--cache"), ("b", "--no-cache")):
        assert elmo("mix", "learn", learned / "train.conll", *options, cache, "-o", name).code == 0
    assert (here / "a").read_bytes() == (here / "b").read_bytes()
    answer = elmo("mix", "learn", learned / "train.conll", *options, "-o", "a")
    assert (answer.code, "the file exists" in answer.stderr) == (2, True)


def test_sentences_with_labels_are_classified(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "a.tsv").write_text("good\ta good day\nbad\ta bad day\n" * 6, encoding="utf-8")
    answer = elmo("mix", "learn", "a.tsv", "-m", model, "-o", "a.mix.json", "--seeds", 1, "--epochs", 2, "--no-compare")
    assert answer.code == 0, answer.stderr
    assert "macro F1" in answer.text
    assert "a.tsv: tsv (by its ending .tsv), 12 sentences, 36 tokens, sentence labels" in answer.stderr
    assert "held out 1 of the 12 sentences" in answer.stderr
    found = elmo("mix", "predict", "--mix", "a.mix.json", stdin=b"a good day\n").text
    assert found in ("good\ta good day\n", "bad\ta good day\n")
    refused = elmo("mix", "predict", "--mix", "a.mix.json", "--input", "conll", stdin=b"a\n")
    assert (refused.code, "no place for a label of each sentence" in refused.stderr) == (2, True)


def test_empty_texts_with_labels_count_in_learn_score_and_predict(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "a.tsv").write_text("none\t\nsome\ta day\n" * 6, encoding="utf-8")
    options = ("-m", model, "-o", "a.mix.json", "--seeds", 1, "--epochs", 8, "--rate", 0.1, "--no-compare")
    learned = elmo("mix", "learn", "a.tsv", *options)
    assert "a.tsv: tsv (by its ending .tsv), 12 sentences, 6 of them empty, 12 tokens, sent" in learned.stderr
    score = json.loads(elmo("mix", "score", "a.tsv", "--mix", "a.mix.json", "--json").text)
    rows = elmo("mix", "predict", "a.tsv", "--mix", "a.mix.json").text.splitlines()
    right = sum(row == gold for row, gold in zip(rows, ["none\t", "some\ta day"] * 6, strict=True))
    assert (score["labelled"], score["accuracy"]) == (12, pytest.approx(right / 12))
    refused = elmo("mix", "predict", "a.tsv", "--mix", "a.mix.json", "-o", "a.tsv", "--force")
    assert (refused.code, "would be written over" in refused.stderr) == (2, True)
    (here / "b.tsv").write_text("a\t\nb\t\n", encoding="utf-8")
    refused = elmo("mix", "learn", "b.tsv", *options, "--force")
    expected = "b.tsv: all labelled sentences are empty\n  fix: name a text with labelled sentences\n"
    assert (refused.code, refused.stderr.endswith(expected)) == (1, True)


def test_numbers_that_were_learned_from_json_come_back_as_numbers(elmo: Elmo, model: Path, here: Path) -> None:
    text = '{"text": "a good day", "label": 1}\n{"text": "a bad day", "label": 0}\n'
    (here / "a.jsonl").write_text(text * 6, encoding="utf-8")
    options = ("-m", model, "-o", "a.mix.json", "--seeds", 1, "--epochs", 2, "--no-compare")
    assert elmo("mix", "learn", "a.jsonl", *options).code == 0
    predicted = elmo("mix", "predict", "a.jsonl", "--mix", "a.mix.json").text
    labels = [json.loads(line)["label"] for line in predicted.splitlines()]
    assert {type(label) for label in labels} == {int}
    (here / "b.jsonl").write_text(predicted, encoding="utf-8")
    assert json.loads(elmo("mix", "score", "b.jsonl", "--mix", "a.mix.json", "--json").text)["accuracy"] == 1


def test_a_tsv_is_no_place_for_labels_of_tokens(elmo: Elmo, learned: Path, here: Path) -> None:
    (here / "a.tsv").write_text("pos\ta good day\n", encoding="utf-8")
    answer = elmo("mix", "predict", "a.tsv", "--mix", learned / "ner.mix.json")
    assert answer.code == 2
    assert "tsv has no place for a label of each token, which is what the mix gives\n  fix: " in answer.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("apply", "all.npy", "--weights", "1", "-o", "all.npy"),
        ("apply", "all.npy", "--weights", "1", "-o", "linked.npy"),
        ("learn", "a.conll", "-o", "a.conll"),
        ("learn", "a.conll", "-o", "x", "--dev", "b.conll", "--plot", "b.svg"),
    ],
)
def test_nothing_is_written_over_what_it_is_made_of(elmo: Elmo, here: Path, command: tuple[str, ...]) -> None:
    np.save("all.npy", np.zeros((2, 1, 4), np.float32))
    (here / "linked.npy").hardlink_to(here / "all.npy")
    (here / "a.conll").write_text(TRAIN, encoding="utf-8")
    (here / "b.conll").write_text(TRAIN, encoding="utf-8")
    (here / "b.svg").hardlink_to(here / "b.conll")
    before = {path: path.read_bytes() for path in here.iterdir()}
    answer = elmo("mix", *command, "--force")
    assert answer.code == 2
    assert ": the input would be written over by what is made of it\n  fix: write to another file\n" in answer.stderr
    assert {path: path.read_bytes() for path in here.iterdir()} == before


def test_static_vectors_stand_in_for_a_model(elmo: Elmo, learned: Path, here: Path) -> None:
    (here / "glove.txt").write_text("john 1 0\nmary 1 0\nin 0 1\n", encoding="utf-8")
    options = ("--encoder", "glove.txt", "-o", "g.mix.json", "--seeds", 1, "--epochs", 2)
    answer = elmo("mix", "learn", learned / "train.conll", *options)
    assert answer.code == 0, answer.stderr
    assert "glove.txt on " in answer.stderr
    assert "36 tokens: 11.1% have a vector, 22.2% in lower case, 66.7% none (zeros)" in answer.stderr
    assert "layer 0  1.000" in answer.text
    predicted = elmo("mix", "predict", learned / "train.conll", "--mix", "g.mix.json")
    assert "glove.txt: 36 tokens: 11.1% have a vector, 22.2% in lower case, 66.7% none (zeros)" in predicted.stderr
    (here / "glove.txt").write_text("john 1 1\n", encoding="utf-8")
    assert elmo("mix", "predict", learned / "train.conll", "--mix", "g.mix.json").code == 1
    assert elmo("embed", "glove.txt", "--mix", "g.mix.json", "-o", "x.npy").code == 2


def test_another_model_is_refused_with_both_names(elmo: Elmo, learned: Path, here: Path) -> None:
    mix = ("--mix", learned / "ner.mix.json")
    (here / "a.txt").write_text("A play.\n", encoding="utf-8")
    for command in (("embed", "a.txt", "-o", "x.npy"), ("mix", "predict", "a.txt")):
        answer = elmo(*command, *mix, "-m", "small-en")
        assert answer.code == 1
        assert "the mix was learned with harbour (3 layers of 64, " in answer.stderr
        assert ", this is small-en (3 layers of 256, " in answer.stderr
    np.save("x.npy", np.zeros((2, 2, 8), np.float32))
    answer = elmo("mix", "apply", "x.npy", *mix)
    assert answer.code == 1
    assert "the array has 2 layers of 8 numbers, the mix ner.mix.json of harbour 3 layers of 64" in answer.stderr


@pytest.mark.parametrize(
    "command", [("embed",), ("mix", "predict"), ("mix", "score"), ("mix", "apply"), ("mix", "show")]
)
def test_a_damaged_mix_is_refused_by_every_command(
    elmo: Elmo, learned: Path, here: Path, command: tuple[str, ...]
) -> None:
    (here / "cut.json").write_bytes((learned / "ner.mix.json").read_bytes()[:500])
    mix = ("cut.json",) if command[-1] == "show" else (learned / "train.conll", "--mix", "cut.json")
    output = ("-o", "x.npy") if command[-1] in ("embed", "apply") else ()
    answer = elmo(*command, *mix, *output)
    assert answer.code == 1
    assert answer.stderr.startswith("elmo: error: cut.json: is damaged")
    assert not (here / "x.npy").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("learn", "no.conll", "-o", "x"), 1, "no.conll: no such file or folder"),
        (("learn", "bad.conll", "-o", "x"), 1, "bad.conll:2: expected a label in the last column"),
        (("learn", "bad.conll", "-o", "no/x"), 1, "cannot write no/x: no such folder"),
        (("learn", "bad.conll", "-o", "x", "--head", "big"), 2, "--head 'big' is not known"),
        (("learn", "empty.conll", "-o", "x"), 1, "there is no labelled sentence in the text\n  fix: name a text with"),
        (("learn", "two.conll", "-o", "x", "--column", "2"), 2, "two.conll:1: --column 2 is the last column, where"),
        (("apply", "x.npy", "-o", "y.npy"), 2, "name the weights once"),
        (("apply", "x.npy", "--weights", "a,b", "-o", "y.npy"), 2, "--weights 'a,b' are no numbers"),
        (("apply", "x.npy", "--weights", "1,inf", "-o", "y.npy"), 2, "inf is no finite number"),
        (("apply", "no.npy", "--weights", "1", "-o", "y.npy"), 1, "no.npy: no such file or directory"),
    ],
)
def test_what_is_wrong_is_told(elmo: Elmo, here: Path, options: tuple[str, ...], code: int, message: str) -> None:
    (here / "bad.conll").write_text("a O\nb\n", encoding="utf-8")
    (here / "empty.conll").write_text("\n\n", encoding="utf-8")
    (here / "two.conll").write_text("a O\nb O\n", encoding="utf-8")
    answer = elmo("mix", *options)
    assert answer.code == code
    assert message in answer.stderr
