"""`elmo embed`: rows, lines and tables that fit each other and the text."""

import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import DATA, Answer
from numpy.typing import NDArray

Elmo = Callable[..., Answer]
Array = NDArray[np.floating[Any]]

DIM = 64  # of the tiny preset: two directions of 32
LAYERS = 3
LINES = "The ferry left.\n\nNobody waved back, not even Tom.\n"
HEADER = ["line", "sentence", "token", "start", "end", "text"]


def array_of(answer: Answer) -> Array:
    assert answer.code == 0, answer.stderr
    return np.load(io.BytesIO(answer.stdout))


def objects_of(answer: Answer) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.stderr
    return [json.loads(line) for line in answer.stdout.split(b"\n")[:-1]]


def table_of(path: Path) -> list[list[str]]:
    return [line.split("\t") for line in path.read_text(encoding="utf-8").split("\n")[:-1]]


@pytest.fixture
def text(here: Path) -> Path:
    path = here / "text.txt"
    path.write_text(LINES)
    return path


def test_npy_has_a_row_for_each_token_of_jsonl_and_of_the_table(elmo: Elmo, model: Path, here: Path) -> None:
    vectors = array_of(elmo("embed", DATA / "world.txt", "-m", model, "--tokens-out", "rows.tsv"))
    sentences = objects_of(elmo("embed", DATA / "world.txt", "-m", model, "-f", "jsonl"))
    tokens = [token for sentence in sentences for token in sentence["tokens"]]
    header, *rows = table_of(here / "rows.tsv")
    assert vectors.shape == (len(tokens), DIM)
    assert vectors.dtype == np.float32
    assert header == HEADER
    assert [row[-1] for row in rows] == tokens
    same = np.concatenate([np.array(sentence["vectors"], np.float32).reshape(-1, DIM) for sentence in sentences])
    np.testing.assert_array_equal(same, vectors)


def test_offsets_say_where_each_token_stands_in_its_line(elmo: Elmo, model: Path, here: Path) -> None:
    lines = (DATA / "world.txt").read_text(encoding="utf-8").split("\n")[:-1]
    sentences = objects_of(
        elmo("embed", DATA / "world.txt", "-m", model, "-f", "jsonl", "--tokens-out", here / "rows.tsv")
    )
    assert [sentence["text"] for sentence in sentences] == lines
    assert [sentence["line"] for sentence in sentences] == list(range(1, len(lines) + 1))
    for sentence in sentences:
        assert [sentence["text"][start:end] for start, end in sentence["offsets"]] == sentence["tokens"]
    for line, _, _, start, end, token in table_of(here / "rows.tsv")[1:]:
        assert lines[int(line) - 1][int(start) : int(end)] == token


def test_a_file_by_o_is_what_goes_to_stdout(elmo: Elmo, model: Path, text: Path, here: Path) -> None:
    for name, form in (("v.npy", "npy"), ("v.jsonl", "jsonl"), ("plain", "npy")):
        answer = elmo("embed", text, "-m", model, "-o", name)
        assert (answer.code, answer.stdout) == (0, b"")
        assert (here / name).read_bytes() == elmo("embed", text, "-m", model, "-f", form).stdout


def test_a_dash_is_standard_output_and_standard_input(elmo: Elmo, model: Path, text: Path) -> None:
    named = elmo("embed", text, "-m", model)
    for arguments in (("-",), ()):
        piped = elmo("embed", *arguments, "-m", model, "-o", "-", stdin=LINES.encode())
        assert piped.stdout == named.stdout


@pytest.mark.parametrize("name", ["text.txt.gz", "misnamed"])
def test_compressed_text_is_the_same_text(elmo: Elmo, model: Path, text: Path, here: Path, name: str) -> None:
    (here / name).write_bytes(gzip.compress(LINES.encode()))
    assert elmo("embed", name, "-m", model).stdout == elmo("embed", text, "-m", model).stdout


def test_the_note_on_stderr_tells_shape_and_model(elmo: Elmo, model: Path, text: Path) -> None:
    answer = elmo("embed", text, "-m", model)
    assert answer.stderr == "12 x 64 float32 from 3 sentences, 12 tokens (model harbour)\n"
    assert elmo("-q", "embed", text, "-m", model).stderr == ""


def test_several_files_follow_each_other(elmo: Elmo, model: Path, text: Path) -> None:
    once = array_of(elmo("embed", text, "-m", model))
    twice = array_of(elmo("embed", text, text, "-m", model))
    np.testing.assert_allclose(twice, np.concatenate((once, once)), atol=1e-6)  # batches differ: rounding alone


def test_layers_can_be_chosen(elmo: Elmo, model: Path, text: Path) -> None:
    every = array_of(elmo("embed", text, "-m", model, "--layers", "all"))
    assert every.shape == (12, LAYERS, DIM)
    expected = {"top": every[:, 2], "1": every[:, 1], "0,2": every[:, [0, 2]], "average": every.mean(axis=1)}
    for layers, vectors in expected.items():
        found = array_of(elmo("embed", text, "-m", model, "--layers", layers))
        np.testing.assert_allclose(found, vectors, atol=1e-6)


def test_layer_0_is_the_word_whatever_stands_around_it(elmo: Elmo, model: Path) -> None:
    vectors = array_of(elmo("embed", "-m", model, "--layers", "0", "--input", "tokens", stdin=b"a b\nc a d\n"))
    np.testing.assert_allclose(vectors[0], vectors[3], atol=1e-6)
    np.testing.assert_array_equal(vectors[:, : DIM // 2], vectors[:, DIM // 2 :])


@pytest.mark.parametrize("pool", ["mean", "max", "first", "last"])
def test_pooling_gives_a_row_a_line_and_zeros_for_an_empty_one(
    elmo: Elmo, model: Path, text: Path, here: Path, pool: str
) -> None:
    tokens = array_of(elmo("embed", text, "-m", model))
    pooled = array_of(elmo("embed", text, "-m", model, "--pool", pool, "--tokens-out", "rows.tsv"))
    parts = (tokens[:4], tokens[4:])
    expected = {
        "mean": [part.mean(axis=0) for part in parts],
        "max": [part.max(axis=0) for part in parts],
        "first": [part[0] for part in parts],
        "last": [part[-1] for part in parts],
    }[pool]
    np.testing.assert_allclose(pooled, np.stack([expected[0], np.zeros(DIM), expected[1]]), atol=1e-6)
    texts = ["The ferry left.", "", "Nobody waved back, not even Tom."]
    assert table_of(here / "rows.tsv") == [HEADER, *([str(n), str(n), "", "", "", t] for n, t in enumerate(texts, 1))]


def test_pooled_jsonl_has_one_vector_a_line(elmo: Elmo, model: Path, text: Path) -> None:
    sentences = objects_of(elmo("embed", text, "-m", model, "--pool", "mean", "-f", "jsonl"))
    assert [np.shape(sentence["vector"]) for sentence in sentences] == [(DIM,)] * 3
    assert sentences[1] == {"id": 2, "line": 2, "text": "", "tokens": [], "offsets": [], "vector": [0] * DIM}


def test_float16_is_the_nearest_to_float32(elmo: Elmo, model: Path, text: Path) -> None:
    whole = array_of(elmo("embed", text, "-m", model))
    half = array_of(elmo("embed", text, "-m", model, "--dtype", "float16"))
    assert half.dtype == np.float16
    np.testing.assert_array_equal(half, whole.astype(np.float16))


def test_tokens_are_taken_as_they_are(elmo: Elmo, model: Path) -> None:
    answer = elmo("embed", "-m", model, "--input", "tokens", "-f", "jsonl", stdin=b"don't stop-me  now!\n\n.\n")
    sentences = objects_of(answer)
    assert [sentence["tokens"] for sentence in sentences] == [["don't", "stop-me", "now!"], [], ["."]]
    assert [list(sentence) for sentence in sentences] == [["id", "line", "tokens", "vectors"]] * 3


def test_running_text_is_cut_into_sentences_with_their_places(elmo: Elmo, model: Path, here: Path) -> None:
    text = "The ferry left. Nobody\nwaved back.\n\nTom slept.\n"
    arguments = ("embed", "-m", model, "--input", "text", "-f", "jsonl", "--tokens-out", "rows.tsv")
    sentences = objects_of(elmo(*arguments, stdin=text.encode()))
    assert [sentence["text"] for sentence in sentences] == ["The ferry left.", "Nobody waved back.", "Tom slept."]
    assert [sentence["line"] for sentence in sentences] == [1, 1, 4]
    rows = [(line, sentence, token) for line, sentence, _, _, _, token in table_of(here / "rows.tsv")[5:8]]
    assert rows == [("1", "2", "Nobody"), ("2", "2", "waved"), ("2", "2", "back")]


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ((), (0, DIM)),
        (("--layers", "all"), (0, LAYERS, DIM)),
        (("--pool", "mean"), (0, DIM)),
        (("--input", "text"), (0, DIM)),
    ],
)
def test_an_empty_text_gives_no_rows_of_the_usual_width(
    elmo: Elmo, model: Path, options: tuple[str, ...], shape: tuple[int, ...]
) -> None:
    assert array_of(elmo("embed", "-m", model, *options, stdin=b"")).shape == shape


def test_an_empty_text_gives_no_lines_and_a_table_with_nothing_but_its_head(
    elmo: Elmo, model: Path, here: Path
) -> None:
    answer = elmo("embed", "-m", model, "-f", "jsonl", "--tokens-out", "rows.tsv", stdin=b"")
    assert (answer.code, answer.stdout) == (0, b"")
    assert table_of(here / "rows.tsv") == [HEADER]


def test_bytes_that_are_not_utf_8_can_be_replaced(elmo: Elmo, model: Path) -> None:
    answer = elmo(
        "embed", "-m", model, "--input", "tokens", "-f", "jsonl", "--encoding-errors", "replace", stdin=b"caf\xe9 x\n"
    )
    assert objects_of(answer)[0]["tokens"] == ["caf\ufffd", "x"]


def test_words_too_long_for_the_model_are_counted(elmo: Elmo, model: Path) -> None:
    answer = elmo("embed", "-m", model, "--input", "tokens", stdin=b"short " + b"x" * 49 + b"\n")
    assert answer.stderr.splitlines()[-1] == "1 token is longer than 48 bytes; the model read its beginning"


def test_a_model_is_found_by_name_and_by_the_environment(
    elmo: Elmo, model: Path, text: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_path = elmo("embed", text, "-m", model).stdout
    monkeypatch.setenv("ELMO_MODELS", str(model.parent))
    assert elmo("embed", text, "-m", model.name).stdout == by_path
    monkeypatch.setenv("ELMO_MODEL", model.name)
    assert elmo("embed", text).stdout == by_path


def test_force_replaces_what_is_there(elmo: Elmo, model: Path, text: Path, here: Path) -> None:
    (here / "v.npy").write_bytes(b"old")
    assert elmo("embed", text, "-m", model, "-o", "v.npy", "--force").code == 0
    assert np.load(here / "v.npy").shape == (12, DIM)


def test_the_bundled_model_is_used_where_none_is_named(elmo: Elmo, text: Path) -> None:
    if not (DATA.parent.parent / "models" / "small-en" / "config.json").is_file():
        pytest.skip("the bundled model models/small-en is not there")
    answer = elmo("embed", text)
    assert array_of(answer).shape == (12, 256)
    assert answer.stderr.endswith("(model small-en)\n")


def test_a_batch_size_without_carried_state_is_said_to_change_nothing(elmo: Elmo, here: Path) -> None:
    (here / "line.txt").write_text("A fine line .\n")
    answer = elmo("embed", "line.txt", "-o", "line.npy", "--batch-size", "3")
    assert answer.code == 0
    assert "--batch-size changes nothing without --carry-state" in answer.stderr
