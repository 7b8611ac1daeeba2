"""A prepared corpus holds the text's tokens as numbers, and is made only once for one content read in one way."""

import bz2
import io
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_cli.errors import DataError, OutputError
from elmo_cli.reporting import SilentReporter
from elmo_cli.text import blocks, prepare
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions

DATA = Path(__file__).parent.parent / "data"
TOKENS = TextOptions(mode="tokens")
TEXT = "the cat sat\n\nthe dog sat on the mat\n"


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "corpora"


def prepared(cache: Path, *sources: Path | str, options: TextOptions = TOKENS, workers: int = 1) -> Corpus:
    names = [str(source) for source in sources]
    return prepare_corpus(names, options, cache=cache, workers=workers, reporter=SilentReporter())


def file_of(folder: Path, text: str, name: str = "text.txt") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def sentences_of(corpus: Corpus) -> list[list[str]]:
    texts = corpus.all_type_texts
    bounds = zip(corpus.sentence_starts.tolist(), corpus.sentence_ends.tolist(), strict=True)
    return [[texts[number] for number in corpus.tokens[start:end]] for start, end in bounds]


def fail(*arguments: object) -> None:
    raise AssertionError("the corpus is made again")


def test_sentences_and_their_empty_ones_are_kept_in_order(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert sentences_of(corpus) == [["the", "cat", "sat"], [], ["the", "dog", "sat", "on", "the", "mat"]]
    info = corpus.info
    assert (info.sentences, info.empty_sentences, info.tokens, info.types) == (3, 1, 9, 6)
    assert (info.mode, info.tokenizer) == ("tokens", {"name": "none", "language": "en"})


def test_types_are_numbered_by_falling_count_and_ties_by_text(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert corpus.all_type_texts == ["the", "sat", "cat", "dog", "mat", "on"]
    assert corpus.type_counts.tolist() == [3, 2, 1, 1, 1, 1]


def test_some_types_can_be_looked_up_without_the_others(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert corpus.type_texts([5, 0, 2]) == ["on", "the", "cat"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "é", "港", "</S>", "\u2028", "\x1c", "e\u0301"]), max_size=6)))
def test_counts_and_sentences_are_those_of_a_plain_counter(tmp_path: Path, sentences: list[list[str]]) -> None:
    source = file_of(tmp_path, "".join(" ".join(tokens) + "\n" for tokens in sentences))
    counts = Counter(token for tokens in sentences for token in tokens)
    if not counts:
        with pytest.raises(DataError):
            prepared(tmp_path / "cache", source)
        return
    corpus = prepared(tmp_path / "cache", source)
    assert sentences_of(corpus) == sentences
    assert dict(zip(corpus.all_type_texts, corpus.type_counts.tolist(), strict=True)) == counts
    assert corpus.info.tokens == counts.total()


def test_several_sources_follow_each_other(cache: Path, tmp_path: Path) -> None:
    first, second = file_of(tmp_path, "b a", "1.txt"), file_of(tmp_path, "c\n", "2.txt")
    corpus = prepared(cache, second, first, second)
    assert sentences_of(corpus) == [["c"], ["b", "a"], ["c"]]
    assert [source.name for source in corpus.info.sources] == [str(second), str(first), str(second)]


def test_the_same_content_under_another_name_is_not_read_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    monkeypatch.setattr(prepare, "_build", fail)
    other = file_of(tmp_path, TEXT, "other.txt")
    again = prepared(cache, other)
    assert again.folder == corpus.folder
    assert [source.name for source in again.info.sources] == [str(other)]


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (TEXT + "x\n", TOKENS),
        (TEXT, TextOptions(mode="tokens", language="de")),
        (TEXT, TextOptions(mode="tokens", errors="replace")),
    ],
    ids=["content", "language", "errors"],
)
def test_other_content_or_settings_make_another_corpus(
    cache: Path, tmp_path: Path, text: str, options: TextOptions
) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert prepared(cache, file_of(tmp_path, text), options=options).folder != corpus.folder


def test_the_order_of_the_sources_makes_another_corpus(cache: Path, tmp_path: Path) -> None:
    first, second = file_of(tmp_path, "a\n", "1.txt"), file_of(tmp_path, "b\n", "2.txt")
    assert prepared(cache, first, second).folder != prepared(cache, second, first).folder


def test_what_fails_leaves_nothing_in_the_cache(cache: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.txt"
    bad.write_bytes(b"fine\n\xff\n")
    with pytest.raises(DataError):
        prepared(cache, bad)
    assert list(cache.iterdir()) == []


def test_the_cache_holds_whole_corpora_alone(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert list(cache.iterdir()) == [corpus.folder]
    assert sorted(path.name for path in corpus.folder.iterdir()) == [
        "corpus.json",
        "sentence_ends.npy",
        "tokens.npy",
        "type_bytes.npy",
        "type_counts.npy",
        "type_ends.npy",
    ]


def test_compressed_text_is_the_same_text(cache: Path, tmp_path: Path) -> None:
    packed = tmp_path / "text.txt.bz2"
    packed.write_bytes(bz2.compress(TEXT.encode()))
    corpus = prepared(cache, packed)
    assert sentences_of(corpus) == sentences_of(prepared(cache, file_of(tmp_path, TEXT)))
    assert corpus.info.sources[0].size == packed.stat().st_size


def test_standard_input_is_a_source(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    corpus = prepared(cache, "-")
    assert sentences_of(corpus)[0] == ["the", "cat", "sat"]
    (source,) = corpus.info.sources
    assert (source.name, source.size) == ("<stdin>", len(TEXT.encode()))


def test_a_fifo_is_read_once_and_known_by_its_content(cache: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    folders = set()
    for text in (TEXT, TEXT, "other\n"):
        writer = threading.Thread(target=fifo.write_text, args=(text,))
        writer.start()
        folders.add(prepared(cache, fifo).folder)
        writer.join()
    assert len(folders) == 2


@pytest.mark.parametrize("text", ["", "\n\n", " \t \n"])
def test_a_text_without_a_token_is_an_error(cache: Path, tmp_path: Path, text: str) -> None:
    source = file_of(tmp_path, text)
    with pytest.raises(DataError) as caught:
        prepared(cache, source)
    assert str(caught.value) == f"{source}: there is no token in the text\n  fix: name a text of at least one word"


def test_a_missing_file_is_an_error(cache: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        prepared(cache, tmp_path / "no.txt")
    assert str(caught.value) == f"{tmp_path / 'no.txt'}: no such file or directory"


def test_a_cache_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    cache = file_of(tmp_path, "a file\n", "cache") / "corpora"
    with pytest.raises(OutputError) as caught:
        prepared(cache, file_of(tmp_path, TEXT))
    assert str(caught.value) == (
        f"{cache}: cannot write the prepared corpus: Not a directory\n"
        "  fix: set ELMO_CACHE to a folder that can be written and has room"
    )


def test_a_disk_that_fills_up_is_told_at_whatever_file(tmp_path: Path) -> None:
    """By limits of a file's size: of tokens.raw and tokens.npy, and then of the larger files behind them."""
    script = """
import resource, sys
from pathlib import Path
from elmo_cli.errors import OutputError
from elmo_cli.reporting import SilentReporter
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions
source, cache, limit = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
try:
    prepare_corpus([source], TextOptions("tokens"), cache=cache, workers=1, reporter=SilentReporter())
except OutputError as error:
    print(error.message)
"""
    source = file_of(tmp_path, "\n" * 10_000 + "a b " * 5_000)
    for limit in (39_999, 40_000, 80_000):  # the tokens take 40,000 bytes, the ends of the sentences 80,008
        command = [sys.executable, "-c", script, str(source), str(tmp_path / "cache"), str(limit)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "cannot write the prepared corpus: File too large\n"), done.stderr
        assert list((tmp_path / "cache").iterdir()) == []


def test_two_processes_may_prepare_the_same_corpus(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = os.replace

    def late(building: Path, final: Path) -> None:
        shutil.copytree(building, final)  # the other one is done first
        replace(building, final)

    monkeypatch.setattr(os, "replace", late)
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert sentences_of(corpus)[0] == ["the", "cat", "sat"]
    assert list(cache.iterdir()) == [corpus.folder]


def test_what_a_kill_has_left_of_preparations_goes_when_it_has_lain_untouched(cache: Path, tmp_path: Path) -> None:
    for name, hours in ((".building-abandoned", 25), (".building-underway", 0), ("of-somebody-else", 25)):
        (cache / name).mkdir(parents=True)
        (cache / name / "tokens.raw").write_bytes(b"1234")
        for path in (cache / name / "tokens.raw", cache / name):
            os.utime(path, (time.time() - hours * 3600,) * 2)
    os.utime(cache / ".building-underway", (0, 0))  # a folder's own time stands still while its files grow
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert sorted(path.name for path in cache.iterdir()) == sorted(
        [".building-underway", "of-somebody-else", corpus.folder.name]
    )


def test_a_file_named_twice_is_not_read_again(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = file_of(tmp_path, "a\n")
    corpus = prepared(cache, source, source)
    assert sentences_of(corpus) == [["a"], ["a"]]
    monkeypatch.setattr(prepare, "_build", fail)
    assert prepared(cache, source, source).folder == corpus.folder


def test_a_file_name_need_not_be_utf_8(cache: Path, tmp_path: Path) -> None:
    source = file_of(tmp_path, TEXT, os.fsdecode(b"caf\xe9.txt"))
    assert Corpus(prepared(cache, source).folder).info.sources[0].name == str(source)


def test_several_processes_make_the_same_corpus_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "_WORTH_PROCESSES_BYTES", 0)
    monkeypatch.setattr(blocks, "_BLOCK_LINES", 16)
    one, two = (
        prepared(tmp_path / str(workers), DATA / "harbour.txt", options=TextOptions(), workers=workers)
        for workers in (1, 2)
    )
    assert (two.info, two.folder.name) == (one.info, one.folder.name)
    for name in ("tokens", "sentence_ends", "type_bytes", "type_ends", "type_counts"):
        assert (two.folder / f"{name}.npy").read_bytes() == (one.folder / f"{name}.npy").read_bytes()


def test_tokens_may_hold_what_other_programs_take_for_line_ends(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, "a\u2028b c\x85 \x1d \u3000\nd\u00a0e\r\n"))
    assert sentences_of(corpus) == [["a\u2028b", "c\x85", "\x1d", "\u3000"], ["d\u00a0e"]]


@pytest.mark.parametrize("damage", ["{", "[]", json.dumps({"format": 99}), json.dumps({"format": 1})])
def test_a_damaged_corpus_says_which_folder_to_delete(cache: Path, tmp_path: Path, damage: str) -> None:
    folder = prepared(cache, file_of(tmp_path, TEXT)).folder
    (folder / "corpus.json").write_text(damage)
    with pytest.raises(DataError) as caught:
        Corpus(folder)
    assert str(caught.value).startswith(f"{folder}: the prepared corpus cannot be read: ")
    assert caught.value.fix == "delete this folder"


def test_tokens_are_mapped_not_read(cache: Path, tmp_path: Path) -> None:
    corpus = prepared(cache, file_of(tmp_path, TEXT))
    assert isinstance(corpus.tokens, np.memmap)
    assert corpus.tokens.dtype == np.uint32
