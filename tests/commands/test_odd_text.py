"""Texts that nobody means to embed, and what becomes of each: as many rows as tokens, in bounded time."""

import io
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from command_line import Answer, elmo_program

Elmo = Callable[..., Answer]
FAMILY = "\U0001f469\u200d\U0001f467"


def texts_of(elmo: Elmo, model: Path, data: bytes, *options: object) -> list[str]:
    """Return the tokens of a text as the table of rows gives them, having counted its vectors."""
    answer = elmo("embed", "-m", model, "--layers", 0, "--tokens-out", "rows.tsv", "--force", *options, stdin=data)
    assert answer.code == 0, answer.stderr
    vectors = np.load(io.BytesIO(answer.stdout))
    rows = [row.split("\t") for row in Path("rows.tsv").read_text(encoding="utf-8").split("\n")[1:-1]]
    assert len(vectors) == len(rows)
    assert np.isfinite(vectors).all()
    return [row[-1] for row in rows]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        pytest.param("a\0b \0", ["a\0b", "\0"], id="NUL"),
        pytest.param("\x01 \x1b[0m \x7f", ["\x01", "\x1b[0", "m", "\x7f"], id="control characters"),
        pytest.param("one\rtwo\r\nthree\r", ["one", "two", "three"], id="lone CR"),
        pytest.param("one\u2028two\u2029three\x85four", ["one", "two", "three", "four"], id="separators"),
        pytest.param("cafe\u0301 n\u0303o", ["cafe\u0301", "n\u0303o"], id="combining marks"),
        pytest.param("\u0301\u0302", ["\u0301\u0302"], id="marks alone"),
        pytest.param("مرحبا بكم", ["مرحبا", "بكم"], id="right to left"),
        pytest.param("\u202eabc\u202c \u2066x\u2069", ["\u202eabc\u202c", "\u2066x\u2069"], id="directions"),
        pytest.param("<S> </S> <UNK>", [*"<", "S", ">", "<", "/S", ">", "<", "UNK", ">"], id="markers"),
        pytest.param("\ufeffone \ufefftwo", ["one", "\ufefftwo"], id="byte order marks"),
        pytest.param("\ufffd \uffff \U0010ffff", ["\ufffd", "\uffff", "\U0010ffff"], id="non-characters"),
    ],
)
def test_odd_characters_are_characters(elmo: Elmo, model: Path, here: Path, text: str, tokens: list[str]) -> None:
    assert texts_of(elmo, model, text.encode()) == tokens
    separate = text.removeprefix("\ufeff").replace("\r\n", "\n").removesuffix("\r")
    expected = [token for line in separate.split("\n") for token in line.replace("\r", " ").split(" ") if token]
    assert texts_of(elmo, model, text.encode(), "--input", "tokens") == expected


def test_emoji_sequences_keep_all_their_parts(elmo: Elmo, model: Path, here: Path) -> None:
    text = f"{FAMILY} \U0001f1e9\U0001f1ea 👍🏽!"
    assert "".join(texts_of(elmo, model, text.encode())) == text.replace(" ", "")
    assert texts_of(elmo, model, text.encode(), "--input", "tokens") == text.split()


def test_the_markers_as_tokens_are_the_markers(elmo: Elmo, model: Path) -> None:
    answer = elmo("embed", "-m", model, "--input", "tokens", "--layers", 0, stdin=b"<S> <s> <S>\n")
    vectors = np.load(io.BytesIO(answer.stdout))
    np.testing.assert_allclose(vectors[0], vectors[2], atol=1e-6)
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3


def test_many_empty_lines_are_as_many_sentences(model: Path, here: Path) -> None:
    # In a process of its own, where types are not checked at run time, which costs more than the work itself.
    (here / "blank.txt").write_bytes(b"\n" * 100_000)
    command = [elmo_program(), "-q", "embed", "blank.txt", "-m", str(model), "--pool", "mean", "-o", "x.npy"]
    before = sum(os.times()[2:4])
    assert subprocess.run(command).returncode == 0
    assert np.load(here / "x.npy", mmap_mode="r").shape == (100_000, 64)
    assert sum(os.times()[2:4]) - before < 40  # about 7 seconds of the processor, of which 5 load spaCy and torch


@pytest.mark.parametrize("mode", ["lines", "tokens"])
def test_a_long_line_is_one_sentence(elmo: Elmo, model: Path, here: Path, mode: str) -> None:
    options = ("--input", mode, "--pool", "max", "-o", "x.npy")
    answer = elmo("embed", "-m", model, *options, stdin=b"word " * 5_000 + b"\nshort\n")
    assert answer.code == 0
    assert answer.stderr.endswith("2 x 64 float32 from 2 sentences, 5,001 tokens (model harbour)\n")


def test_a_line_without_a_space_is_cut_into_tokens_of_a_thousand_characters(
    elmo: Elmo, model: Path, here: Path
) -> None:
    text = "".join(chr(97 + 7 * number % 26) for number in range(1_000)) * 2_000
    tokens = texts_of(elmo, model, text.encode())
    assert len(tokens) == 2_000
    assert "".join(tokens) == text


def test_a_word_of_a_million_characters_is_one_token_of_tokenized_text(elmo: Elmo, model: Path) -> None:
    answer = elmo("embed", "-m", model, "--input", "tokens", stdin=b"x" * 1_000_000)
    assert np.load(io.BytesIO(answer.stdout)).shape == (1, 64)
    assert answer.stderr.endswith("1 token is longer than 48 bytes; the model read its beginning\n")


def test_a_file_that_grows_is_read_to_its_end_of_the_moment(elmo: Elmo, model: Path, here: Path) -> None:
    with (here / "log.txt").open("wb", buffering=0) as log:
        log.write(b"one two\nthr")
        first = elmo("embed", "log.txt", "-m", model, "--input", "tokens", "-f", "jsonl")
        log.write(b"ee\n")
        second = elmo("embed", "log.txt", "-m", model, "--input", "tokens", "-f", "jsonl")
    assert b'"tokens": ["thr"]' in first.stdout
    assert b'"tokens": ["three"]' in second.stdout


def test_a_fifo_and_dev_stdin_are_read_as_a_file(elmo: Elmo, model: Path, here: Path) -> None:
    os.mkfifo(here / "pipe")
    threading.Thread(target=(here / "pipe").write_bytes, args=(b"a b\n",)).start()
    assert np.load(io.BytesIO(elmo("embed", "pipe", "-m", model, "--input", "tokens").stdout)).shape == (2, 64)
    command = [elmo_program(), "-q", "embed", "/dev/stdin", "-m", str(model), "--input", "tokens", "-f", "jsonl"]
    run = subprocess.run(command, input=b"a b\n", capture_output=True)
    assert (run.returncode, run.stderr) == (0, b"")
    assert b'"tokens": ["a", "b"]' in run.stdout


def test_more_files_than_may_be_open_are_read_one_after_the_other(elmo: Elmo, model: Path, here: Path) -> None:
    import resource

    (here / "many").mkdir()
    for number in range(3_000):
        (here / "many" / f"{number:04}.txt").write_bytes(b"a\n" if number % 100 else b"a b\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        answer = elmo("embed", "many", "-m", model, "--input", "tokens", "-o", "x.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert answer.stderr == "3,030 x 64 float32 from 3,000 sentences, 3,030 tokens (model harbour)\n"
