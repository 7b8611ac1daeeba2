"""Any bytes at all, read as a text in each mode: sentences that hold together, or a refusal that says where."""

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard
from fuzz_targets import TARGETS, read_stimuli, read_text
from hypothesis import given
from hypothesis import strategies as st
from strange import examples, mutated

from elmo_cli.text.reader import INPUT_MODES

ODD = [
    "\0",
    "\r",
    "\r\n",
    "\n\n",
    "\x1b[31m",
    "\u2028",
    "\x85",
    "\u00a0",
    "\u3000",
    "\ufeff",
    "\u202e",
    "\U0010ffff",
    "👩‍👧",
    "...",
]
BYTES = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\x1f\x8b\x08",
    b"BZh9",
    b"PK\x03\x04",
    b"\xef\xbb\xbf",
]
PIECES = {
    "lines": ["The ", "boat ", "left", "Mr. O'Neil's", "http://a.b/c?d=e ", "$1.50", "(", ")", ":-)", " "],
    "jsonl": [
        '{"text": "The boat"}',
        '{"tokens": ["a", ""]}',
        '{"id": 1e999, "text": ""}',
        "{",
        "}",
        "[",
        "]",
        '"',
        ":",
        *(",", "\\ud800", "\\u0000", "null", "NaN", "1" * 5000, '"text"', '"tokens"', '{"a":' * 40, "\\"),
    ],
    "conll": ["-DOCSTART- -X- O O\n", "The DT B-NP O\n", "\t", " ", "#", "boat\tNN\n", "O\n"],
    "conllu": [
        "1\tThe\tthe\tDET\t_\t_\t0\troot\t_\t_\n",
        "1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "# text = The boat\n",
        "2\tboat\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n",
        "# sent_id = \x1b[31m\n",
        "9" * 5000,
        "\t",
        "-",
    ],
    "stimuli": ["id\tsentence\n", "1\tThe boat\n", "\t", '"', "sentence", "\n"],
}
PIECES["text"] = PIECES["tokens"] = PIECES["lines"]


def texts(mode: str) -> st.SearchStrategy[bytes]:
    """Return bytes that look like a text of a mode here and there."""
    pieces = st.sampled_from([piece.encode() for piece in (*PIECES[mode], *ODD)])
    odd = (
        st.sampled_from(BYTES)
        | st.binary(max_size=6)
        | st.text(max_size=12).map(lambda t: t.encode("utf-8", "replace"))
    )
    mixed = st.lists(st.one_of(pieces, pieces, pieces, st.just(b"\n"), odd), max_size=30).map(b"".join)
    return mixed | st.binary(max_size=200)


@pytest.mark.parametrize("mode", INPUT_MODES)
def test_any_bytes_are_sentences_or_a_refusal_with_its_place(
    mode: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("text")

    @examples(80)
    @given(data=texts(mode), errors=st.sampled_from(["strict", "strict", "replace"]))
    def check(data: bytes, errors: str) -> None:
        read_text(data, folder, mode, errors)

    check()


def test_any_bytes_are_a_table_of_stimuli_or_a_refusal(tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("stimuli")

    @examples(80)
    @given(data=texts("stimuli"))
    def check(data: bytes) -> None:
        read_stimuli(data, folder)

    check()


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "zstd": lambda data: zstandard.ZstdCompressor(write_checksum=True).compress(data),
}


@pytest.mark.parametrize("kind", PACKERS)
def test_damaged_compressed_bytes_are_lines_or_a_refusal(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("packed")
    sound = PACKERS[kind](b"The boat left.\n" * 50)

    @examples(80)
    @given(data=mutated(sound))
    def check(data: bytes) -> None:
        read_text(data, folder, "tokens", "replace")

    check()


def test_every_length_of_a_compressed_file_cut_short_is_a_refusal(tmp_path: Path) -> None:
    for kind, packer in PACKERS.items():
        sound = packer(b"The boat left.\n" * 5)
        assert read_text(sound, tmp_path, "tokens") == 5
        for size in range(12, len(sound)):
            read_text(sound[:size], tmp_path, "tokens", "replace")
        assert kind


@pytest.mark.parametrize("path", sorted(Path(__file__).with_name("seeds").iterdir()), ids=lambda path: path.name)
def test_an_input_that_once_failed_fails_no_more(path: Path, tmp_path: Path) -> None:
    target = max((name for name in TARGETS if path.name.startswith(name)), key=len)
    data = path.read_bytes()
    TARGETS[target](zlib.decompress(data) if path.suffix == ".z" else data, tmp_path)
