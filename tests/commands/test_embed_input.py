"""`elmo embed` reads every mode: what its lines say, which rows its table has, and what it refuses."""

import gzip
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import Answer

Elmo = Callable[..., Answer]

JSONL = b"""{"id": "a-1", "n": 1.0, "text": "It isn't so.", "big": 123456789012345678901234567890}
{"tokens": ["New York", "", "a\\tb"], "text": "passed on", "line": 9, "offsets": 8, "vectors": 7, "vector": 6, "x":null}

"""
CONLL = b"-DOCSTART- -X- O\n\nEU NNP B-ORG\nrejects VBZ O\n\nBonn NNP B-LOC\n"
CONLLU = """# sent_id = s1
# text = Dámelo ya!
1-2\tDámelo\t_\t_\t_\t_\t_\t_\t_\t_
1\tDa\t_\t_\t_\t_\t_\t_\t_\t_
2\tmelo\t_\t_\t_\t_\t_\t_\t_\t_
3\tya\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No
4\t!\t_\t_\t_\t_\t_\t_\t_\t_
""".encode()


def objects_of(answer: Answer) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.split(b"\n")[:-1]]


def table_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[1:-1]]


def embed_jsonl(elmo: Elmo, model: Path, mode: str, data: bytes, *options: object) -> Answer:
    return elmo("embed", "-m", model, "--input", mode, "-f", "jsonl", *options, stdin=data)


def test_what_a_json_line_says_comes_back_and_never_in_place_of_ours(elmo: Elmo, model: Path, here: Path) -> None:
    answer = embed_jsonl(elmo, model, "jsonl", JSONL, "--tokens-out", "rows.tsv")
    [text, tokens, empty] = objects_of(answer)
    assert list(text) == ["id", "line", "text", "tokens", "offsets", "n", "big", "vectors"]
    assert (text["id"], text["line"], text["tokens"]) == ("a-1", 1, ["It", "is", "n't", "so", "."])
    assert b'"n": 1.0, "big": 123456789012345678901234567890, "vectors"' in answer.stdout
    assert [text["text"][start:end] for start, end in text["offsets"]] == text["tokens"]
    assert list(tokens) == ["id", "line", "tokens", "text", "x", "vectors"]
    assert (tokens["id"], tokens["line"], tokens["text"], tokens["x"]) == (2, 2, "passed on", None)
    assert np.shape(tokens["vectors"]) == (3, 64)
    assert empty == {"id": 3, "line": 3, "tokens": [], "vectors": []}
    rows = table_of(here / "rows.tsv")
    assert rows[3:7] == [
        ["1", "1", "4", "9", "11", "so"],
        ["1", "1", "5", "11", "12", "."],
        ["2", "2", "1", "", "", "New York"],
        ["2", "2", "2", "", "", ""],
    ]
    assert rows[7] == ["2", "2", "3", "", "", "a\\tb"]


def test_the_answer_can_be_read_again(elmo: Elmo, model: Path) -> None:
    first = embed_jsonl(elmo, model, "jsonl", JSONL)
    again = embed_jsonl(elmo, model, "jsonl", first.stdout)
    for one, two in zip(objects_of(first), objects_of(again), strict=True):
        assert (two["id"], two["tokens"]) == (one["id"], one["tokens"])
        np.testing.assert_allclose(two["vectors"], one["vectors"], atol=1e-6)


def test_conll_has_a_row_for_each_row_of_its_sentences(elmo: Elmo, model: Path, here: Path) -> None:
    sentences = objects_of(embed_jsonl(elmo, model, "conll", CONLL, "--tokens-out", "rows.tsv"))
    assert [(sentence["line"], sentence["tokens"]) for sentence in sentences] == [(3, ["EU", "rejects"]), (6, ["Bonn"])]
    assert [list(sentence) for sentence in sentences] == [["id", "line", "tokens", "vectors"]] * 2
    assert table_of(here / "rows.tsv") == [
        ["3", "1", "1", "0", "2", "EU"],
        ["4", "1", "2", "0", "7", "rejects"],
        ["6", "2", "1", "0", "4", "Bonn"],
    ]


def test_the_column_of_the_token_can_be_chosen(elmo: Elmo, model: Path) -> None:
    [_, sentence] = objects_of(embed_jsonl(elmo, model, "conll", CONLL, "--column", 2))
    assert sentence["tokens"] == ["NNP"]
    answer = embed_jsonl(elmo, model, "tokens", b"a\n", "--column", 2)
    assert (answer.code, answer.stderr) == (
        2,
        "elmo: error: --column 2 says nothing of --input tokens\n  fix: leave it out, or add --input conll\n",
    )


def test_conllu_keeps_id_text_and_the_places_of_the_surface(elmo: Elmo, model: Path, here: Path) -> None:
    [sentence] = objects_of(embed_jsonl(elmo, model, "conllu", CONLLU, "--tokens-out", "rows.tsv"))
    del sentence["vectors"]
    assert sentence == {
        "id": "s1",
        "line": 3,
        "text": "Dámelo ya!",
        "tokens": ["Da", "melo", "ya", "!"],
        "offsets": [[0, 6], [0, 6], [7, 9], [9, 10]],
    }
    assert [row[0] for row in table_of(here / "rows.tsv")] == ["4", "5", "6", "7"]


@pytest.mark.parametrize(
    ("mode", "name", "data"), [("jsonl", "a.jsonl", JSONL), ("conll", "a.conll", CONLL), ("conllu", "a.conllu", CONLLU)]
)
def test_files_folders_and_pipes_hold_the_same(
    elmo: Elmo, model: Path, here: Path, mode: str, name: str, data: bytes
) -> None:
    piped = embed_jsonl(elmo, model, mode, data)
    (here / "folder" / "in").mkdir(parents=True)
    (here / "folder" / "notes.txt").write_text("not taken")
    (here / "folder" / "in" / f"{name}.gz").write_bytes(gzip.compress(data))
    os.mkfifo(here / "pipe")
    threading.Thread(target=(here / "pipe").write_bytes, args=(data,)).start()
    for source in ("folder", "pipe"):
        answer = elmo("embed", source, "-m", model, "--input", mode, "-f", "jsonl")
        assert answer.stdout == piped.stdout


@pytest.mark.parametrize(
    ("mode", "data", "problem"),
    [
        ("jsonl", b'{"tokens": []}\n{"x": 1}\n', '<stdin>:2: the object has neither "text" nor "tokens"'),
        ("conll", b"a\n\n\tb\n", "<stdin>:3: column 1 is empty\n"),
        ("conllu", b"1\ta\n", "<stdin>:1: expected 10 columns parted by tabs, found 2\n"),
    ],
)
def test_what_is_not_of_the_mode_leaves_no_output(
    elmo: Elmo, model: Path, here: Path, mode: str, data: bytes, problem: str
) -> None:
    answer = elmo("embed", "-m", model, "--input", mode, "-o", "x.npy", stdin=data)
    assert answer.code == 1
    assert answer.stderr.startswith(f"elmo: error: {problem}")
    assert "\n  fix: " in answer.stderr
    assert list(here.iterdir()) == []


def test_training_reads_every_mode_and_embedding_then_takes_its_language(elmo: Elmo, here: Path) -> None:
    lines = ["渡船今天早上很晚才离开港口。", "没有人挥手告别。"] * 20
    (here / "ferry.jsonl").write_text("".join(f"{json.dumps({'text': line})}\n" for line in lines))
    options = ("--input", "jsonl", "--lang", "zh-jieba", "--preset", "tiny", "--max-steps", 1)
    trained = elmo("-q", "train", "ferry.jsonl", *options)
    assert (trained.code, trained.text) == (0, "models/ferry\n"), trained.stderr
    assert json.loads((here / "models/ferry/config.json").read_text())["tokenizer"]["language"] == "zh-jieba"
    [sentence] = objects_of(elmo("embed", "-m", "ferry", "-f", "jsonl", stdin="我来到北京清华大学".encode()))
    assert sentence["tokens"] == ["我", "来到", "北京", "清华大学"]
