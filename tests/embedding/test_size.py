"""The size of an output, told beforehand, against what is then written."""

import gzip
from pathlib import Path

import pytest
from command_line import DATA

from elmo_cli.commands.embed_target import Targets, announce_size
from elmo_cli.embedding import size
from elmo_cli.embedding.size import estimate_size
from elmo_cli.errors import OutputError
from elmo_cli.reporting import SilentProgress
from elmo_cli.storage.vector_formats import VectorForm
from elmo_cli.text.reader import TextOptions, read_sentences

HARBOUR = str(DATA / "harbour.txt")


class Notes:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)

    def warn(self, text: str) -> None:
        self.texts.append(f"warning: {text}")

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        return SilentProgress()


def targets(output: Path) -> Targets:
    return Targets("npy", output, None, None, False, False)


@pytest.mark.parametrize("mode", ["lines", "text", "tokens"])
def test_the_beginnings_of_texts_tell_their_size(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(size, "_SAMPLE_SIZE", 4096)
    sources = [HARBOUR, str(DATA / "world.txt")]
    found = estimate_size(sources, mode)
    sentences = list(read_sentences(sources, mode=mode, tokenizer=TextOptions(mode).make_tokenizer()))
    assert found is not None
    assert found.sentences == pytest.approx(len(sentences), rel=0.2)
    assert found.tokens == pytest.approx(sum(len(sentence.tokens) for sentence in sentences), rel=0.2)


def test_rows_and_objects_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.conllu").write_text("# id\n1\tThe\n2\tferry\n\n1\tTom\n\n")
    (tmp_path / "a.jsonl").write_text('{"tokens": ["a", "b"]}\n{"text": "One, two."}\nbroken\n')
    conllu, jsonl = (estimate_size([str(tmp_path / f"a.{mode}")], mode) for mode in ("conllu", "jsonl"))
    assert (conllu.tokens, jsonl.tokens, jsonl.sentences) == (3, 6, 3)


def test_a_pipe_and_a_compressed_file_are_not_guessed_at(tmp_path: Path) -> None:
    (tmp_path / "misnamed.txt").write_bytes(gzip.compress(b"text"))
    assert estimate_size(["-"], "lines") is None
    assert estimate_size([HARBOUR, "-"], "lines") is None
    assert estimate_size([str(tmp_path / "misnamed.txt")], "lines") is None
    assert estimate_size([str(tmp_path / "missing.txt")], "lines") is None


def test_no_text_takes_no_room(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").touch()
    found = estimate_size([str(tmp_path / "empty.txt")], "lines")
    assert found is not None
    assert found.vector_bytes(VectorForm("npy", "float32", (4,), False)) == 0


def test_a_large_output_is_announced(tmp_path: Path) -> None:
    notes = Notes()
    form = VectorForm("npy", "float32", (3, 4096), False)
    announce_size(targets(tmp_path / "x.npy"), form, [HARBOUR], "lines", notes)
    (note,) = notes.texts
    assert note.startswith("about ")
    assert note.endswith("B of vectors (npy)")
    announce_size(targets(tmp_path / "x.npy"), VectorForm("npy", "float32", (4,), False), [HARBOUR], "lines", notes)
    assert len(notes.texts) == 1


def test_an_output_without_room_is_refused_and_a_doubtful_one_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    form = VectorForm("npy", "float32", (4096,), False)
    needed = estimate_size([HARBOUR], "lines").vector_bytes(form)
    notes = Notes()
    place = str(tmp_path / "no" / "x.npy")
    monkeypatch.setattr("elmo_cli.commands.embed_target._free_space", lambda _: [(place, int(0.9 * needed))])
    announce_size(targets(Path(place)), form, [HARBOUR], "lines", notes)
    assert notes.texts[-1].startswith("warning: about ")
    assert notes.texts[-1].endswith(f"are free on the disk of {place}")
    monkeypatch.setattr("elmo_cli.commands.embed_target._free_space", lambda _: [(place, int(0.5 * needed))])
    with pytest.raises(OutputError, match="of vectors do not fit") as caught:
        announce_size(targets(Path(place)), form, [HARBOUR], "lines", notes)
    assert caught.value.fix == "choose another disk, --pool mean, --dtype float16 or fewer layers"
