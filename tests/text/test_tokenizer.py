import random
import subprocess
import sys
import time
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import spacy
from hypothesis import given, settings
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc

from elmo_cli.errors import DataError
from elmo_cli.text import tokenizer as module
from elmo_cli.text.tokenizer import SpacyTokenizer, Span, tokenizer_record

DATA = Path(__file__).parents[1] / "data"
LINES = [line for file in sorted(DATA.glob("*.txt")) for line in file.read_text(encoding="utf-8").split("\n")]

# Contractions, abbreviations and faces, which spaCy's exceptions are about, also with spaces inside.
FRAGMENTS = ["I", "can't", "Mr.", "a.m.", ":)", "(", ")", ":", "-", "8", "D", "...", '"', "'s", "e.g.", "EE.", "UU."]
FRAGMENTS += ["U.S.", "word", " ", "  ", "\t", "\u00a0", "\u3000", "(:", ":-(", "http://a.org/x?y=(z)", "£5", "ﬁ"]
fragment_texts = st.lists(st.sampled_from(FRAGMENTS), max_size=12).map("".join)


@pytest.fixture(scope="module")
def tokenizer() -> SpacyTokenizer:
    return SpacyTokenizer()


@pytest.fixture(scope="module")
def chinese() -> SpacyTokenizer:
    return SpacyTokenizer("zh")


@pytest.fixture(scope="module")
def plain() -> Language:
    """Return spaCy's English pipeline with its sentencizer, to compare with."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("sentencizer")
    return pipeline


def plain_spans(pipeline: Language, text: str) -> list[Span]:
    return [(token.idx, token.idx + len(token)) for token in pipeline.tokenizer(text) if not token.is_space]


def tokens(tokenizer: SpacyTokenizer, text: str) -> list[str]:
    return [text[start:end] for start, end in tokenizer.spans([text])[0]]


# --- As spaCy does it -------------------------------------------------------------------------------------------------


def test_ordinary_lines_are_cut_as_spacy_cuts_them(tokenizer: SpacyTokenizer, plain: Language) -> None:
    assert tokenizer.spans(LINES) == [plain_spans(plain, line) for line in LINES]


def test_tokens_are_words_and_punctuation(tokenizer: SpacyTokenizer) -> None:
    assert tokens(tokenizer, '"She isn\'t in," said Dr. No.') == [
        *('"', "She", "is", "n't", "in", ",", '"', "said", "Dr.", "No", "."),
    ]


@given(text=fragment_texts)
def test_exceptions_are_cut_as_spacy_cuts_them(tokenizer: SpacyTokenizer, plain: Language, text: str) -> None:
    assert tokenizer.spans([text]) == [plain_spans(plain, text)]


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("es", "Vive en EE. UU. desde ayer.", ["Vive", "en", "EE. UU.", "desde", "ayer", "."]),
        ("ru", "Он, в т.ч. здесь", ["Он", ",", "в т.ч.", "здесь"]),
        ("en", "( :(x", ["(", ":", "(", "x"]),  # spaCy takes "( :" for a face and then finds none in ":("
    ],
)
def test_exceptions_across_spaces_are_found(language: str, text: str, expected: list[str]) -> None:
    assert tokens(SpacyTokenizer(language), text) == expected


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=())))
def test_every_character_but_white_space_is_in_one_token(tokenizer: SpacyTokenizer, text: str) -> None:
    [spans] = tokenizer.spans([text])
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    assert all(start < end for start, end in spans)
    assert "".join(text[start:end] for start, end in spans) == "".join(text.split())


def test_white_space_alone_is_no_token(tokenizer: SpacyTokenizer) -> None:
    assert tokenizer.spans(["", " ", " \t\u00a0\u2028 "]) == [[], [], []]


def test_a_lone_surrogate_is_cut_like_the_replacement_character(tokenizer: SpacyTokenizer) -> None:
    assert tokens(tokenizer, "a \ud800b") == ["a", "\ud800", "b"]
    assert tokens(tokenizer, "a \ufffdb") == ["a", "\ufffd", "b"]


def test_texts_do_not_depend_on_each_other(tokenizer: SpacyTokenizer) -> None:
    assert tokenizer.spans(LINES[::-1]) == tokenizer.spans(LINES)[::-1]


# --- Text that is no text ---------------------------------------------------------------------------------------------


def test_a_long_line_is_cut_like_short_ones(tokenizer: SpacyTokenizer, plain: Language) -> None:
    text = " ".join(LINES * 8)
    assert len(text) > 200_000
    assert tokenizer.spans([text]) == [plain_spans(plain, text)]


@pytest.mark.parametrize("length", [999, 1000])
def test_a_run_of_up_to_a_thousand_characters_is_cut_as_spacy_cuts_it(
    tokenizer: SpacyTokenizer, plain: Language, length: int
) -> None:
    text = "see " + "ab," * 400
    assert tokenizer.spans([text[: length + 4]]) == [plain_spans(plain, text[: length + 4])]


def test_a_longer_run_is_cut_into_pieces(tokenizer: SpacyTokenizer) -> None:
    assert tokens(tokenizer, f"see {'a' * 2500}! now") == ["see", "a" * 1000, "a" * 1000, "a" * 500, "!", "now"]


@pytest.mark.parametrize("unit", ["a", ".", "1,", "-", "日", "\0", "a\u0301", "👨‍👩‍👧‍👦"])
def test_a_run_without_end_is_cut_in_linear_time(tokenizer: SpacyTokenizer, unit: str) -> None:
    text = (unit * 1_000_000)[:1_000_000]
    [spans] = tokenizer.spans([text])  # would take hours
    assert spans[0][0] == 0
    assert spans[-1][1] == len(text)
    assert all(end == start for (_, end), (start, _) in pairwise(spans))


def test_brackets_without_end_are_cut_in_linear_time(tokenizer: SpacyTokenizer) -> None:
    assert tokens(tokenizer, "(" * 50_000) == ["("] * 50_000


@pytest.mark.parametrize("signs", ["()[]{}", "😀😁😂🤣😃"])
def test_mixed_signs_without_end_are_cut_in_bounded_time(tokenizer: SpacyTokenizer, signs: str) -> None:
    drawn = "".join(random.Random(1).choices(signs, k=50_000))
    tokenizer.load()
    started = time.process_time()
    assert tokens(tokenizer, drawn) == list(drawn)
    assert time.process_time() - started < 5  # 1 second; 7 where pieces are as long as those of words


@pytest.mark.parametrize("run", ["-" * 300, "." * 101, "(" * 900, "ab," * 300, "()" * 50])
def test_a_line_of_one_sign_and_a_short_run_of_several_are_cut_as_spacy_cuts_them(
    tokenizer: SpacyTokenizer, plain: Language, run: str
) -> None:
    assert tokenizer.spans([run]) == [plain_spans(plain, run)]


def test_words_without_end_are_cut_in_linear_time(tokenizer: SpacyTokenizer) -> None:
    assert len(tokens(tokenizer, "Mr. word " * 30_000)) == 60_000


def test_unseen_words_are_forgotten(tokenizer: SpacyTokenizer) -> None:
    strings = tokenizer._nlp.vocab.strings
    tokenizer.spans(["warm up"])
    before = len(strings)
    tokenizer.spans([f"qx{number}z" for number in range(20_000)])
    tokenizer.sentences(" ".join(f"qy{number}z." for number in range(1_000)))
    assert len(strings) - before < 10


# --- Sentences --------------------------------------------------------------------------------------------------------


def plain_sentences(pipeline: Language, text: str) -> list[list[Span]]:
    sentences = pipeline(text).sents
    spans = [[(token.idx, token.idx + len(token)) for token in tokens if not token.is_space] for tokens in sentences]
    return [sentence for sentence in spans if sentence]


@pytest.mark.parametrize("file", ["harbour", "letters", "twenty", "world"])
def test_sentences_are_those_of_the_sentencizer(tokenizer: SpacyTokenizer, plain: Language, file: str) -> None:
    text = (DATA / f"{file}.txt").read_text(encoding="utf-8")
    for paragraph in [text, *text.split("\n\n")]:
        assert tokenizer.sentences(paragraph) == plain_sentences(plain, paragraph)


@given(text=st.lists(st.sampled_from([*FRAGMENTS, ".", "?", "! ", "。", "\n"]), max_size=15).map("".join))
def test_sentences_of_odd_text_are_those_of_the_sentencizer(
    tokenizer: SpacyTokenizer, plain: Language, text: str
) -> None:
    assert tokenizer.sentences(text) == plain_sentences(plain, text)


def test_sentences_hold_the_spans_of_the_text(tokenizer: SpacyTokenizer) -> None:
    text = " ".join(LINES)
    assert [span for sentence in tokenizer.sentences(text) for span in sentence] == tokenizer.spans([text])[0]


@pytest.mark.parametrize("text", ["", "  \n "])
def test_no_token_makes_no_sentence(tokenizer: SpacyTokenizer, text: str) -> None:
    assert tokenizer.sentences(text) == []


# --- Other libraries --------------------------------------------------------------------------------------------------


def test_chinese_is_cut_into_characters(chinese: SpacyTokenizer) -> None:
    assert tokens(chinese, "渡船  晚了。ab") == ["渡", "船", "晚", "了", "。", "a", "b"]


def test_a_long_chinese_line_is_cut_in_linear_time(chinese: SpacyTokenizer) -> None:
    text = "今天早上港口的雾很大，" * 10_000
    assert tokens(chinese, text) == list(text)


@settings(deadline=None)
@given(text=st.text("今天。， \t\u3000a", max_size=40))
def test_windows_join_to_the_whole(chinese: SpacyTokenizer, text: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_WINDOW", 5)
        assert tokens(chinese, text) == list("".join(text.split()))


def wrap(monkeypatch: pytest.MonkeyPatch, words: list[str]) -> SpacyTokenizer:
    """Return a tokenizer whose library gives these words, whatever the text."""
    tokenizer = SpacyTokenizer("zh")
    pipeline: Any = tokenizer._nlp
    monkeypatch.setattr(pipeline, "tokenizer", lambda _: Doc(pipeline.vocab, words=words, spaces=[False] * len(words)))
    return tokenizer


def test_tokens_of_another_library_are_found_in_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = wrap(monkeypatch, ["ab", "\u2028c", " ", "ab"])
    assert tokenizer.spans(["ab\u2028c  ab"]) == [[(0, 2), (3, 4), (6, 8)]]


def test_a_library_that_changes_the_text_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = wrap(monkeypatch, ["ab", "x"])
    with pytest.raises(DataError) as error:
        tokenizer.spans(["ab cx"])
    assert str(error.value) == "the tokenizer changed the text: it made 'x' of ' cx'"


def test_the_record_names_tokenizer_language_and_version() -> None:
    assert tokenizer_record("de") == {"name": "spacy", "language": "de", "version": version("spacy")}


def test_importing_the_text_floor_loads_neither_spacy_nor_torch() -> None:
    code = "import sys, elmo_cli.text.reader; print([m for m in ('spacy', 'torch') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
