"""`elmo embed -f FORMAT`: each format by its name and by its ending, with the same vectors in all."""

import io
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest
import safetensors.numpy
from command_line import Answer, Trained

Elmo = Callable[..., Answer]
LINES = "The ferry left.\n\n… !\nNobody waved back, not even Tom.\n"
LEFT = ["The", "ferry", "left", "Nobody", "waved", "back", "not", "even", "Tom"]


@pytest.fixture
def text(here: Path) -> Path:
    path = here / "text.txt"
    path.write_text(LINES)
    return path


def npy(answer: Answer) -> np.ndarray:
    assert answer.code == 0, answer.stderr
    return np.load(io.BytesIO(answer.stdout))


@pytest.mark.parametrize("layers", ["average", "all"])
def test_all_formats_hold_the_same_vectors(elmo: Elmo, model: Path, text: Path, here: Path, layers: str) -> None:
    expected = npy(elmo("embed", text, "-m", model, "--layers", layers))
    for name in ("v.npz", "v.safetensors", "v.parquet", "v.feather"):
        assert elmo("embed", text, "-m", model, "--layers", layers, "-o", name).code == 0
    tables = [pyarrow.parquet.read_table("v.parquet"), pyarrow.feather.read_table("v.feather")]
    found = [np.load("v.npz")["vectors"], safetensors.numpy.load_file("v.safetensors")["vectors"]]
    found += [np.array(table["vector"].to_pylist(), np.float32) for table in tables]
    for vectors in found:
        np.testing.assert_array_equal(vectors, expected)


@pytest.mark.parametrize(("form", "ending"), [("npz", "npz"), ("parquet", "parquet"), ("hdf5", "h5")])
def test_the_name_of_a_file_tells_its_format(
    elmo: Elmo, model: Path, text: Path, here: Path, form: str, ending: str
) -> None:
    assert elmo("embed", text, "-m", model, "-o", f"v.{ending}").code == 0
    piped = elmo("embed", text, "-m", model, "-f", form).stdout
    assert len(piped) == (here / f"v.{ending}").stat().st_size
    assert piped[:4] == (here / f"v.{ending}").read_bytes()[:4]


def test_word2vec_has_a_line_for_each_line(elmo: Elmo, model: Path, text: Path) -> None:
    expected = npy(elmo("embed", text, "-m", model, "--pool", "mean-max"))
    answer = elmo("embed", text, "-m", model, "--pool", "mean-max", "-f", "word2vec")
    header, *lines = answer.text.splitlines()
    assert header.split() == ["00000000000000000004", "128"]
    assert [line.split(" ")[0] for line in lines] == ["The_ferry_left.", "_", "…_!", "Nobody_waved_back,_not_even_Tom."]
    np.testing.assert_array_equal(np.array([line.split(" ")[1:] for line in lines], np.float32), expected)


def test_mean_max_is_the_mean_and_behind_it_the_maximum(elmo: Elmo, model: Path, text: Path) -> None:
    both, mean, most = (npy(elmo("embed", text, "-m", model, "--pool", how)) for how in ("mean-max", "mean", "max"))
    np.testing.assert_allclose(both, np.concatenate((mean, most), axis=1), atol=1e-6)


def test_rows_without_punctuation_say_which_tokens_are_left(elmo: Elmo, model: Path, text: Path, here: Path) -> None:
    expected = npy(elmo("embed", text, "-m", model))
    answer = elmo("embed", text, "-m", model, "--skip-punct", "--tokens-out", "rows.tsv")
    rows = [line.split("\t") for line in (here / "rows.tsv").read_text().splitlines()[1:]]
    assert [row[-1] for row in rows] == LEFT
    assert [row[:5] for row in rows[2:5]] == [
        ["1", "1", "3", "10", "14"],
        ["4", "4", "1", "0", "6"],
        ["4", "4", "2", "7", "12"],
    ]
    np.testing.assert_allclose(npy(answer), expected[[0, 1, 2, 6, 7, 8, 10, 11, 12]], atol=1e-6)
    assert answer.stderr.startswith("9 x 64 float32 from 4 sentences, 14 tokens ")


def test_tokens_and_vectors_of_a_line_without_punctuation_stay_in_step(elmo: Elmo, model: Path, text: Path) -> None:
    import json

    answer = elmo("embed", text, "-m", model, "--skip-punct", "-f", "jsonl")
    first, _, dots, last = map(json.loads, answer.text.splitlines())
    assert (first["tokens"], first["token_numbers"]) == (LEFT[:3], [1, 2, 3])
    assert [last["text"][start:end] for start, end in last["offsets"]] == last["tokens"] == LEFT[3:]
    assert last["token_numbers"] == [1, 2, 3, 5, 6, 7]
    assert len(last["vectors"]) == 6
    assert (dots["text"], dots["tokens"], dots["vectors"]) == ("… !", [], [])


@pytest.mark.parametrize("pool", ["mean", "max", "last"])
def test_punctuation_is_left_out_of_the_pool(elmo: Elmo, model: Path, text: Path, pool: str) -> None:
    kept = npy(elmo("embed", text, "-m", model, "--skip-punct"))
    found = npy(elmo("embed", text, "-m", model, "--skip-punct", "--pool", pool))
    parts = (kept[:3], kept[3:])
    first, last = {
        "mean": [part.mean(axis=0) for part in parts],
        "max": [part.max(axis=0) for part in parts],
        "last": [part[-1] for part in parts],
    }[pool]
    np.testing.assert_allclose(found, np.stack([first, np.zeros(64), np.zeros(64), last]), atol=1e-6)


def test_hdf5_knows_a_sentence_by_all_of_its_tokens(elmo: Elmo, model: Path, here: Path) -> None:
    elmo("embed", "-m", model, "--input", "tokens", "--skip-punct", "-o", "v.h5", stdin=b"a , b .\n")
    with h5py.File("v.h5") as file:
        assert file["sentence_to_index"][0] == b'{"a , b .": "0"}'
        assert file["0"].shape == (2, 64)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("-f", "word2vec"), "word2vec holds a vector a line, not a token\n  fix: add --pool mean, or choose -f npy"),
        (
            ("-f", "word2vec", "--pool", "max", "--layers", "all"),
            "word2vec holds one vector a line, not 3 layers\n  fix: choose --layers average, top or one number",
        ),
        (
            ("-f", "csv"),
            "--format 'csv' is not known\n  fix: choose npy, npz, jsonl, safetensors, hdf5, parquet, arrow or word2vec",
        ),
        (("--layers", "0,1,0"), "--layers '0,1,0' names layer 0 twice\n  fix: name each layer once"),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_what_does_not_go_together_is_refused(
    elmo: Elmo, trained: Trained, text: Path, options: tuple[str, ...], problem: str
) -> None:
    answer = elmo("embed", text, "-m", trained.folder, *options)
    assert (answer.code, answer.stdout, answer.stderr) == (2, b"", f"elmo: error: {problem}\n")
