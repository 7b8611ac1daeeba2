"""The index of a corpus that is named for one query."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from elmo_cli.errors import DataError
from elmo_cli.neighbors.cached import OnTheFly, demo_corpus
from elmo_cli.neighbors.corpus_text import CorpusText, Reading, guess_reading
from elmo_cli.neighbors.index_info import IndexInfo
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage import pruning

LINES = "the kids play\n\nthe bank of the river\na play\n"


@pytest.fixture
def fly(info: IndexInfo, embedder: object, tmp_path: Path) -> Callable[..., OnTheFly]:
    """Return what gives an index of a file, and counts in ``calls`` how often something was embedded."""

    def make(name: str = "a.txt", text: str = LINES, calls: list | None = None, cache: str = "cache") -> OnTheFly:
        (tmp_path / name).write_text(text, encoding="utf-8")

        def load() -> object:
            if calls is not None:
                calls.append(name)
            return embedder

        corpus = CorpusText([str(tmp_path / name)], Reading("tokens"))
        return OnTheFly(corpus, info, load, 0, tmp_path / cache, SilentReporter())

    return make


def words_of(index: object) -> list[str]:
    part = index.parts[0]
    return [part.types[int(row["type"])] for row in part.rows]


def test_a_second_query_embeds_nothing(fly: Callable[..., OnTheFly]) -> None:
    calls: list[str] = []
    for name in ("a.txt", "a.txt", "b.txt"):  # the same text by another name
        with fly(name, calls=calls).index([("play",)]) as index:
            assert words_of(index) == ["play", "play"]
            assert [Path(source).name for source in index.info.parts[0].sources] == [name]
    assert calls == ["a.txt"]


def test_another_word_text_or_layer_is_another_index(fly: Callable[..., OnTheFly]) -> None:
    calls: list[str] = []
    with fly(calls=calls).index([("play",)]), fly(calls=calls).index([("bank",)]) as index:
        assert words_of(index) == ["bank"]
    with fly(text=LINES + "play\n", calls=calls).index([("play",)]) as index:
        assert len(words_of(index)) == 3
    assert len(calls) == 3


def test_a_whole_index_serves_every_word(fly: Callable[..., OnTheFly]) -> None:
    calls: list[str] = []
    with fly(calls=calls).index(None) as index:
        assert len(words_of(index)) == 10
    with fly(calls=calls).index([("bank",)]) as index:
        assert len(words_of(index)) == 10
    assert len(calls) == 1


def test_a_damaged_index_is_made_again(fly: Callable[..., OnTheFly], tmp_path: Path) -> None:
    with fly().index([("play",)]):
        pass
    [types] = (tmp_path / "cache").rglob("types.json")
    types.write_text("[]")
    with fly().index([("play",)]) as index:
        assert words_of(index) == ["play", "play"]


def test_indexes_that_were_not_used_for_longest_make_room_for_new_ones(
    fly: Callable[..., OnTheFly], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "LARGEST_BYTES", 1)
    folders = []
    for word in ("play", "bank"):
        with fly().index([(word,)]) as index:
            folders.append(index.folder)
        for path in (folders[-1], *folders[-1].rglob("*")):
            os.utime(path, (0, 0))
    with fly().index([("bank",)]) as in_use, fly().index([("river",)]):
        assert [folder.exists() for folder in folders] == [False, True]
        assert words_of(in_use) == ["bank"]


def test_an_index_that_is_there_is_opened_once(fly: Callable[..., OnTheFly], monkeypatch: pytest.MonkeyPatch) -> None:
    with fly().index(None):
        pass
    opened = []
    whole = OnTheFly._open
    monkeypatch.setattr(OnTheFly, "_open", lambda *asked: opened.append(asked) or whole(*asked))
    with fly().index([("bank",)]):
        assert len(opened) == 1  # all of its sums are looked at each time


def test_a_cache_that_cannot_be_written_is_done_without(fly: Callable[..., OnTheFly], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with fly(cache="file").index([("play",)]) as index:
        assert words_of(index) == ["play", "play"]
        folder = index.folder
    assert not folder.exists()


def test_a_word_that_is_absent_is_told_with_the_nearest_ones(fly: Callable[..., OnTheFly], tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught, fly().index([("rivers",)]):
        pass
    assert str(caught.value) == (
        f"{tmp_path / 'a.txt'}: 'rivers' does not occur in the corpus\n  fix: the nearest words are 'river'"
    )


def test_an_absent_word_is_told_as_it_was_asked_for(fly: Callable[..., OnTheFly]) -> None:
    with pytest.raises(DataError, match=r"\"don't\" does not occur"), fly().index([("don't",), ("do", "n't")]):
        pass


@pytest.mark.parametrize(
    ("name", "content", "mode", "column"),
    [
        ("a.txt", "x\n", "lines", None),
        ("a.jsonl", "{}\n", "jsonl", None),
        ("a.conllu", "\n", "conllu", None),
        ("a.tsv", "word\tsentence\n", "lines", "sentence"),
        ("b.tsv", "text\tyear\n", "lines", "text"),
        ("c.tsv", "just text\n", "lines", None),
        ("d.tsv", "", "lines", None),
    ],
)
def test_how_a_text_is_read_is_guessed_by_its_name(
    tmp_path: Path, name: str, content: str, mode: str, column: str | None
) -> None:
    (tmp_path / name).write_text(content)
    found = guess_reading([str(tmp_path / name)], Reading(), None)
    assert (found.mode, found.text_col) == (mode, column)
    assert guess_reading([str(tmp_path / name)], Reading(), "tokens") == Reading("tokens")


def test_the_first_row_of_a_table_is_read_as_the_rest_is(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_bytes("sentence\tann\xe9e\n".encode("latin-1"))
    replaced = Reading(errors="replace")
    assert guess_reading([str(tmp_path / "a.tsv")], replaced, None).text_col == "sentence"
    assert guess_reading([str(tmp_path / "*.tsv")], replaced, None).text_col == "sentence"
    with pytest.raises(DataError, match="is not UTF-8"):
        guess_reading([str(tmp_path / "a.tsv")], Reading(), None)


def test_the_demonstration_sentences_are_there() -> None:
    with demo_corpus() as path:
        assert path.read_text(encoding="utf-8").startswith("word\tsense\tsentence\n")
