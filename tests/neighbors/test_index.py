"""An index: what it holds, that it grows, and that no damage or kill goes unseen."""

import errno
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import ConfigError, DataError, ModelError, OutputError
from elmo_cli.neighbors import index as indexing
from elmo_cli.neighbors.index import Index, Occurrence, append_to_index, check_parts, create_index
from elmo_cli.neighbors.index_info import IndexInfo, ModelMark, read_info
from elmo_cli.neighbors.part import row_sums
from elmo_cli.reporting import SilentReporter

Make = Callable[..., Index]


def tokens_of(index: Index) -> list[tuple[str, str, int, int]]:
    """Return token, file name, line and number in the sentence of each row."""
    found = []
    for number, part in enumerate(index.parts):
        for row in range(len(part.rows)):
            sentence, token, line = index.place(Occurrence(number, row))
            found.append((sentence.tokens[token], Path(sentence.source).name, line, token))
            assert sentence.tokens[token] == part.types[int(part.rows[row]["type"])]
    return found


def test_every_token_has_a_row_with_its_place(make_index: Make) -> None:
    lines = ("a b", "", "c a")
    found = tokens_of(make_index(lines))
    assert found == [
        ("a", "corpus.txt", 1, 0),
        ("b", "corpus.txt", 1, 1),
        ("c", "corpus.txt", 3, 0),
        ("a", "corpus.txt", 3, 1),
    ]


def test_vectors_are_those_of_the_embedder_rounded_to_float16(make_index: Make, embedder: Embedder) -> None:
    index = make_index(("the kids play outside", "they play"))
    sentences = [["the", "kids", "play", "outside"], ["they", "play"]]
    layers = np.concatenate([v.numpy() for v in embedder.embed(sentences, LayerChoice((0, 1, 2)))])
    for layer in (0, 1, 2):  # layer 0 is not stored a token, but a type
        stored = index.parts[0].vectors(layer, slice(None))
        np.testing.assert_array_equal(stored, layers[:, layer].astype(np.float16).astype(np.float32))


def test_what_is_added_stands_behind_what_was_there(make_index: Make, work: Callable, embedder: Embedder) -> None:
    index = make_index(("a b", "c"))
    before = {p: p.read_bytes() for p in index.folder.rglob("*") if p.is_file() and p.name != "index.json"}
    grown = append_to_index(index.folder, lambda info: work(("d a",), "more.txt"), reporter=SilentReporter())
    assert tokens_of(grown)[3:] == [("d", "more.txt", 1, 0), ("a", "more.txt", 1, 1)]
    assert all(path.read_bytes() == content for path, content in before.items())
    check_parts(grown)


def test_a_failure_while_adding_leaves_the_old_index_whole(make_index: Make, work: Callable) -> None:
    index = make_index(("a b", "c"))
    before = (index.folder / "index.json").read_bytes()

    class Broken:
        def embed(self, sentences: object, choice: LayerChoice) -> Iterator[object]:
            raise KeyboardInterrupt

    def broken(info: object) -> object:
        return replace(work(("d",), "more.txt"), embedder=Broken())

    with pytest.raises(KeyboardInterrupt):
        append_to_index(index.folder, broken, reporter=SilentReporter())
    assert (index.folder / "index.json").read_bytes() == before
    assert sorted(path.name for path in index.folder.iterdir()) == ["index.json", "lock", "part-1"]


def test_a_full_disk_while_adding_leaves_nothing_half_written(make_index: Make, work: Callable) -> None:
    index = make_index(("a b", "c"))

    class Full:
        def embed(self, sentences: object, choice: LayerChoice) -> Iterator[object]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(OutputError, match="No space left on device"):
        append_to_index(
            index.folder, lambda info: replace(work(("d",), "d.txt"), embedder=Full()), reporter=SilentReporter()
        )
    assert sorted(path.name for path in index.folder.iterdir()) == ["index.json", "lock", "part-1"]


def test_a_stop_just_after_a_part_is_named_leaves_it_whole(
    make_index: Make, work: Callable, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = make_index(("a b",))
    write = indexing.write_info

    def stopped(folder: Path, info: IndexInfo) -> None:
        write(folder, info)
        raise KeyboardInterrupt

    monkeypatch.setattr(indexing, "write_info", stopped)
    with pytest.raises(KeyboardInterrupt):
        append_to_index(index.folder, lambda info: work(("c",), "more.txt"), reporter=SilentReporter())
    assert [token for token, *_ in tokens_of(Index(index.folder))] == ["a", "b", "c"]


def test_what_a_kill_has_left_is_no_part_and_does_not_stand_in_the_way(make_index: Make, work: Callable) -> None:
    index = make_index(("a b",))
    (index.folder / "part-2").mkdir()
    (index.folder / "part-2" / "layer-1.npy").write_bytes(b"half")
    assert len(tokens_of(Index(index.folder))) == 2
    grown = append_to_index(index.folder, lambda info: work(("c",), "more.txt"), reporter=SilentReporter())
    assert [token for token, *_ in tokens_of(grown)] == ["a", "b", "c"]


def test_two_processes_do_not_add_at_once(make_index: Make, work: Callable) -> None:
    index = make_index(("a b",))

    def nested(info: object) -> object:
        append_to_index(index.folder, lambda info: work(("c",), "c.txt"), reporter=SilentReporter())
        return work(("d",), "d.txt")

    with pytest.raises(OutputError, match="another process is adding to"):
        append_to_index(index.folder, nested, reporter=SilentReporter())


def test_of_two_that_make_the_same_index_the_second_stops_and_the_first_stays(
    make_index: Make, info: IndexInfo, work: Callable, tmp_path: Path
) -> None:
    made = work(("a", "b"))

    class Late:
        """The other process is done while this one still computes."""

        def embed(self, sentences: object, choice: LayerChoice) -> Iterator[object]:
            make_index(("c",))
            return made.embedder.embed(sentences, choice)

    late = replace(made, embedder=Late())
    with pytest.raises(OutputError, match="exists: another process has made it meanwhile"):
        create_index(tmp_path / "test.idx", info, late, force=False, reporter=SilentReporter())
    assert [token for token, *_ in tokens_of(Index(tmp_path / "test.idx"))] == ["c"]
    assert not list(tmp_path.glob(".*.part"))


def test_an_index_is_not_replaced_unasked(make_index: Make) -> None:
    make_index(("a",))
    with pytest.raises(OutputError, match="exists"):
        make_index(("b",))


@pytest.mark.parametrize("lines", [(), ("", "")])
def test_a_text_without_tokens_makes_no_index(make_index: Make, tmp_path: Path, lines: tuple[str, ...]) -> None:
    with pytest.raises(DataError, match=r"there is no token to index in .*corpus\.txt"):
        make_index(lines)
    assert not (tmp_path / "test.idx").exists()


def test_another_model_is_refused_and_both_are_named(make_index: Make) -> None:
    with pytest.raises(ModelError, match=r"of the model tiny \(ffffffffffff\), not of other \(eeeeeeeeeeee\)"):
        make_index(("a",)).require_model(ModelMark("other", "e" * 64))


def test_a_layer_that_is_not_stored_is_refused_and_those_there_are_named(make_index: Make) -> None:
    with pytest.raises(ConfigError, match="has no layer 3; it has 0, 1, 2") as told:
        make_index(("a",)).require_layer(3)
    assert told.value.fix == "choose --layer 2, or build it with --layers 1,2,3"


FILES = ["rows.bin", "types.json", "types.npy", "sentences.jsonl", "sentences.u64", "layer-1.u64"]


@pytest.mark.parametrize("name", [*FILES, "layer-2.npy"])
def test_a_truncated_or_missing_file_is_seen_when_the_index_is_opened(make_index: Make, name: str) -> None:
    path = make_index(("a b c", "d")).folder / "part-1" / name
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(DataError, match=f"the index is damaged: part-1/{name} has"):
        assert Index(path.parent.parent).parts
    path.unlink()
    with pytest.raises(DataError, match=f"the index is damaged: part-1/{name} cannot be read"):
        assert Index(path.parent.parent).parts


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_seen_when_the_index_is_opened(make_index: Make, name: str) -> None:
    path = make_index(("a b c", "d")).folder / "part-1" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=f"part-1/{name} is not as it was written"):
        assert Index(path.parent.parent).parts


def test_a_changed_byte_of_a_vector_is_seen_when_it_is_read(make_index: Make) -> None:
    path = make_index(("a b c", "d")).folder / "part-1" / "layer-2.npy"
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    index = Index(path.parent.parent)
    assert len(index.parts[0].vectors(2, slice(0, 3))) == 3
    with pytest.raises(DataError, match=r"part-1/layer-2\.npy is not as it was written"):
        index.parts[0].vectors(2, slice(3, 4))
    with pytest.raises(DataError, match="damaged"):
        check_parts(index)


@given(st.integers(0, 5), st.integers(0, 6), st.integers(0, 15))
def test_a_sum_sees_every_bit(row: int, column: int, bit: int) -> None:
    vectors = np.random.default_rng(0).normal(size=(6, 7)).astype(np.float16)
    changed = vectors.copy()
    changed.view(np.uint16)[row, column] ^= np.uint16(1 << bit)
    assert (row_sums(changed) != row_sums(vectors)).tolist() == [number == row for number in range(6)]


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b'{"format": 1}', b'{"format": "x"}'])
def test_an_index_json_that_is_none_is_told(make_index: Make, content: bytes) -> None:
    folder = make_index(("a",)).folder
    (folder / "index.json").write_bytes(content)
    with pytest.raises(DataError, match="the index is damaged"):
        read_info(folder)


def test_a_changed_index_json_and_a_later_format_are_told(make_index: Make) -> None:
    folder = make_index(("a",)).folder
    data = json.loads((folder / "index.json").read_text())
    (folder / "index.json").write_text(json.dumps({**data, "layers": [0]}))
    with pytest.raises(DataError, match=r"the sum of index\.json does not fit it"):
        read_info(folder)
    (folder / "index.json").write_text(json.dumps({**data, "format": 99}))
    with pytest.raises(DataError, match="format 99; this version reads up to 1"):
        read_info(folder)


def test_what_is_no_index_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such index"):
        Index(tmp_path / "none")
    with pytest.raises(DataError, match=r"is no index \(no index\.json in it\)"):
        Index(tmp_path)
