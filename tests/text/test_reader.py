from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.text import blocks, reader
from elmo_cli.text.blocks import RUNNING_TEXT
from elmo_cli.text.reader import INPUT_MODES, SUFFIXES, line_blocks, read_sentences, sentences_of_block
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.sources import Line
from elmo_cli.text.tokenizer import SpacyTokenizer, Span

DATA = Path(__file__).parents[1] / "data"
Write = Callable[[str], str]

# Texts without what belongs to the form of a file: line feeds, carriage returns, a byte order mark, many NULs.
line_texts = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\0\ufeff"))
words = st.sampled_from(["Mr.", "It", "can't", "stop.", '"No!"', "はい。", "  ", "\u3000", "\t", "?"])
word_lines = st.lists(st.lists(words, max_size=5).map(" ".join))


class LetterTokenizer:
    """Takes each character but a space for a token and each full stop for the end of a sentence."""

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def spans(self, texts: Sequence[str]) -> list[list[Span]]:
        self.calls.append(list(texts))
        return [[(i, i + 1) for i, letter in enumerate(text) if letter != " "] for text in texts]

    def sentences(self, text: str) -> list[list[Span]]:
        self.calls.append([text])
        sentences: list[list[Span]] = [[]]
        for span in self.spans([text])[0]:
            sentences[-1].append(span)
            if text[span[0]] == ".":
                sentences.append([])
        return [sentence for sentence in sentences if sentence]


@pytest.fixture(scope="module")
def tokenizer() -> SpacyTokenizer:
    return SpacyTokenizer()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Return a function that writes text to a file and returns its name."""

    def write_file(text: str, name: str = "file.txt") -> str:
        (tmp_path / name).write_text(text, encoding="utf-8", newline="")
        return str(tmp_path / name)

    return write_file


def read(source: str, mode: str, tokenizer: SpacyTokenizer | LetterTokenizer | None = None) -> list[Sentence]:
    return list(read_sentences([source], mode=mode, tokenizer=tokenizer))


def assert_positions_point_at_tokens(sentences: list[Sentence], source: str) -> None:
    lines = Path(source).read_bytes().decode().split("\n")
    for sentence in sentences:
        pointed = [lines[number - 1][start:end] for number, start, end in sentence.positions]
        assert pointed == sentence.tokens


# --- A line is a sentence ---------------------------------------------------------------------------------------------


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(line_texts))
@pytest.mark.parametrize("mode", ["lines", "tokens"])
def test_there_are_as_many_sentences_as_lines(
    tokenizer: SpacyTokenizer, write: Write, mode: str, lines: list[str]
) -> None:
    source = write("".join(line + "\n" for line in lines))
    sentences = read(source, mode, tokenizer)
    assert [sentence.place for sentence in sentences] == [Place(source, n) for n in range(1, len(lines) + 1)]
    assert_positions_point_at_tokens(sentences, source)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=st.lists(line_texts))
def test_spans_point_at_tokens_in_the_text(tokenizer: SpacyTokenizer, write: Write, lines: list[str]) -> None:
    for sentence in read(write("".join(line + "\n" for line in lines)), "lines", tokenizer):
        assert [sentence.text[start:end] for start, end in sentence.spans] == sentence.tokens


def test_a_line_is_a_sentence(tokenizer: SpacyTokenizer, write: Write) -> None:
    source = write("Dr. No isn't in.  Sorry!\r\n\r\n \t\u00a0\n(So.)")
    assert [(sentence.place.line, sentence.tokens) for sentence in read(source, "lines", tokenizer)] == [
        (1, ["Dr.", "No", "is", "n't", "in", ".", "Sorry", "!"]),
        (2, []),
        (3, []),
        (4, ["(", "So", ".", ")"]),
    ]


def test_a_sentence_of_a_line_tells_where_its_tokens_stood(tokenizer: SpacyTokenizer, write: Write) -> None:
    source = write("one\n so it  is")
    [_, sentence] = read(source, "lines", tokenizer)
    assert sentence == Sentence(
        tokens=["so", "it", "is"],
        place=Place(source, 2),
        text=" so it  is",
        spans=[(1, 3), (4, 6), (8, 10)],
        origins=((0, 2, 0),),
    )
    assert sentence.positions == [(2, 1, 3), (2, 4, 6), (2, 8, 10)]


def test_sources_follow_each_other(write: Write) -> None:
    sources = [write("a\nb", "1.txt"), write("", "2.txt"), write("c\n", "3.txt")]
    sentences = read_sentences(sources, mode="lines", tokenizer=LetterTokenizer())
    assert [(sentence.place, sentence.tokens) for sentence in sentences] == [
        (Place(sources[0], 1), ["a"]),
        (Place(sources[0], 2), ["b"]),
        (Place(sources[2], 1), ["c"]),
    ]


def test_the_tokenizer_gets_blocks_of_lines(write: Write) -> None:
    tokenizer = LetterTokenizer()
    assert len(read(write("a\n" * 600), "lines", tokenizer)) == 600
    assert [len(texts) for texts in tokenizer.calls] == [256, 256, 88]


def test_blocks_are_bounded_by_characters(write: Write) -> None:
    source = write(f"{'a' * 39_999}\n" * 7)
    assert [len(block) for block in line_blocks([source], mode="lines")] == [3, 3, 1]


@pytest.mark.parametrize("mode", ["lines", "tokens"])
def test_a_hundred_thousand_tokens_may_stand_in_a_line(tokenizer: SpacyTokenizer, write: Write, mode: str) -> None:
    [sentence, _] = read(write("word, and " * 40_000 + "\nnext\n"), mode, tokenizer)
    assert len(sentence.tokens) == (120_000 if mode == "lines" else 80_000)


# --- Text that comes tokenized ----------------------------------------------------------------------------------------


def test_tokens_are_parted_by_ascii_white_space_alone(write: Write) -> None:
    source = write("don't  10\u00a0000 \u3000\ta\u2028b\x1cc\x85 \x0bU.S.\x0c\x0d.\r\n\n \t \n")
    sentences = read(source, "tokens")
    assert [sentence.tokens for sentence in sentences] == [
        ["don't", "10\u00a0000", "\u3000", "a\u2028b\x1cc\x85", "U.S.", "."],
        [],
        [],
    ]
    assert_positions_point_at_tokens(sentences, source)


def test_tokens_come_without_text_and_spans(write: Write) -> None:
    source = write("one\n two  three")
    [_, sentence] = read(source, "tokens")
    assert (sentence.text, sentence.spans) == (None, None)
    assert sentence.positions == [(2, 1, 4), (2, 6, 11)]


# --- Running text -----------------------------------------------------------------------------------------------------


def test_wrapped_lines_are_joined_and_split_into_sentences(tokenizer: SpacyTokenizer, write: Write) -> None:
    source = write("It rained. We\n  stayed in, and \nread. \n\n \nThe end\n")
    sentences = read(source, "text", tokenizer)
    assert [(sentence.place.line, sentence.text) for sentence in sentences] == [
        (1, "It rained."),
        (1, "We stayed in, and read."),
        (6, "The end"),
    ]
    assert sentences[1].spans == [(0, 2), (3, 9), (10, 12), (12, 13), (14, 17), (18, 22), (22, 23)]
    assert sentences[1].origins == ((0, 1, 11), (3, 2, 2), (18, 3, 0))
    assert sentences[1].positions == [
        *((1, 11, 13), (2, 2, 8), (2, 9, 11), (2, 11, 12), (2, 13, 16)),
        *((3, 0, 4), (3, 4, 5)),
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(lines=word_lines)
def test_positions_of_running_text_point_at_tokens(tokenizer: SpacyTokenizer, write: Write, lines: list[str]) -> None:
    source = write("\n".join(lines))
    sentences = read(source, "text", tokenizer)
    assert_positions_point_at_tokens(sentences, source)
    for sentence in sentences:
        assert sentence.tokens == [sentence.text[start:end] for start, end in sentence.spans]
        assert sentence.spans[0][0] == 0
        assert sentence.spans[-1][1] == len(sentence.text)
        assert sentence.place.line == sentence.positions[0][0]
    assert "".join(token for sentence in sentences for token in sentence.tokens) == "".join("".join(lines).split())


@pytest.mark.parametrize("file", ["harbour", "letters", "twenty", "world"])
def test_running_text_has_the_tokens_of_its_lines(tokenizer: SpacyTokenizer, file: str) -> None:
    source = str(DATA / f"{file}.txt")
    by_line, running = read(source, "lines", tokenizer), read(source, "text", tokenizer)
    assert [t for s in running for t in s.tokens] == [t for s in by_line for t in s.tokens]
    assert_positions_point_at_tokens(running, source)


def test_a_token_that_goes_on_in_the_next_line_stands_in_its_first(write: Write) -> None:
    class PairTokenizer(LetterTokenizer):
        def sentences(self, text: str) -> list[list[Span]]:
            return [[(0, len(text))]]

    [sentence] = read(write("học\nsinh\n"), "text", PairTokenizer())
    assert sentence.tokens == ["học sinh"]
    assert sentence.positions == [(1, 0, 3)]


def test_the_end_of_a_file_ends_a_paragraph(write: Write) -> None:
    source = write("a b")
    sentences = read_sentences([source, source], mode="text", tokenizer=LetterTokenizer())
    assert [sentence.text for sentence in sentences] == ["a b", "a b"]


@pytest.mark.parametrize("text", ["", "\n\n", " \n\u3000\r\n"])
def test_blank_text_has_no_sentences(write: Write, text: str) -> None:
    assert read(write(text), "text", LetterTokenizer()) == []


def test_paragraphs_stay_whole_in_blocks(write: Write) -> None:
    source = write(("a\n" * 500 + "\n") * 2 + "b\n")
    assert [len(block) for block in line_blocks([source], mode="text")] == [500, 501, 2]
    assert [len(sentence.tokens) for sentence in read(source, "text", LetterTokenizer())] == [500, 500, 1]


def test_a_paragraph_without_end_is_cut_at_a_line(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_PARAGRAPHS", {"text": replace(RUNNING_TEXT, longest=1_000)})
    monkeypatch.setattr(blocks, "_BLOCK_CHARACTERS", 100)
    source = write("abcdefghi\n" * 250)
    assert [len(sentence.tokens) for sentence in read(source, "text", LetterTokenizer())] == [900, 900, 450]


# --- What goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "fix"),
    [("line", "did you mean lines?"), ("xml", "choose one of lines, text, tokens, jsonl, conll, conllu")],
)
def test_an_unknown_mode_is_an_error_at_once(mode: str, fix: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_sentences([], mode=mode, tokenizer=None)
    assert str(error.value) == f"there is no input mode {mode!r}\n  fix: {fix}"


@pytest.mark.parametrize("mode", ["lines", "text"])
def test_text_needs_a_tokenizer(mode: str) -> None:
    with pytest.raises(ValueError, match=f"mode {mode} needs a tokenizer"):
        sentences_of_block([Line("a", Place("a.txt", 1))], mode=mode, tokenizer=None)


def test_bad_bytes_are_refused_or_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    sources = [str(tmp_path / "a.txt")]
    with pytest.raises(DataError):
        list(read_sentences(sources, mode="tokens", tokenizer=None))
    [sentence] = read_sentences(sources, mode="tokens", tokenizer=None, errors="replace")
    assert sentence.tokens == ["caf\ufffd"]


def test_every_mode_has_suffixes() -> None:
    assert set(SUFFIXES) == set(INPUT_MODES)
