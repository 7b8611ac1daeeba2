"""Rows of columns: what is a token, where it stands, what parts sentences, and what is refused."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_files import COMPRESSORS, Feed, Write, message

from elmo_cli.errors import DataError
from elmo_cli.text import blocks, reader
from elmo_cli.text.blocks import ROWS
from elmo_cli.text.reader import line_blocks, read_sentences
from elmo_cli.text.sentence import Sentence

NER = """-DOCSTART- -X- -X- O

EU NNP B-NP B-ORG
rejects VBZ B-VP O

# NN B-NP O
1 CD I-NP O


-DOCSTART- -X- -X- O
Bonn NNP B-NP B-LOC
"""
forms = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\t\0\ufeff "), min_size=1)


def read(source: str, mode: str = "conll", column: int = 1) -> list[Sentence]:
    return list(read_sentences([source], mode=mode, tokenizer=None, column=column))


def error_of(source: str, mode: str = "conll", column: int = 1) -> str:
    with pytest.raises(DataError) as error:
        read(source, mode, column)
    return message(error)


def row(number: str, form: str, misc: str = "_") -> str:
    return "\t".join([number, form, *"_" * 7, misc])


def conllu(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


# --- CoNLL-2003 and its like ------------------------------------------------------------------------------------------


def test_blank_lines_part_sentences_and_documents_are_left_out(write: Write) -> None:
    sentences = read(write(NER.encode()))
    assert [(sentence.place.line, sentence.tokens) for sentence in sentences] == [
        (3, ["EU", "rejects"]),
        (6, ["#", "1"]),
        (11, ["Bonn"]),
    ]
    assert [(sentence.text, sentence.spans) for sentence in sentences] == [(None, None)] * 3
    assert sentences[1].positions == [(6, 0, 1), (7, 0, 1)]


def test_columns_are_parted_by_tabs_where_there_are_any(write: Write) -> None:
    source = write("10 000\tCD\n  a   b \n x \t\t y z \n\u3000\tSYM\n".encode())
    [first] = read(source)
    assert first.tokens == ["10 000", "a", "x", "\u3000"]
    assert first.positions == [(1, 0, 6), (2, 2, 3), (3, 1, 2), (4, 0, 1)]


def test_the_token_may_stand_in_another_column(write: Write) -> None:
    source = write(b"1 The DT\n2 kids NNS\n\n-DOCSTART- x\n\n1\tplay it\tVB\n")
    assert [sentence.tokens for sentence in read(source, column=2)] == [["The", "kids"], ["play it"]]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sentences=st.lists(st.lists(forms.filter(lambda form: form != "-DOCSTART-"), min_size=1)))
def test_every_row_is_a_token_and_its_place_points_at_it(write: Write, sentences: list[list[str]]) -> None:
    text = "\n".join("".join(f"{token}\tO\n" for token in tokens) for tokens in sentences)
    found = read(write(text.encode()))
    assert [sentence.tokens for sentence in found] == sentences
    lines = text.split("\n")
    for sentence in found:
        assert [lines[line - 1][start:end] for line, start, end in sentence.positions] == sentence.tokens


@pytest.mark.parametrize(
    ("text", "column", "problem"),
    [
        ("a b\nc\n", 2, "2: expected a token in column 2, found 1 column"),
        ("a\tb\n\n\n\tc\n", 1, "4: column 1 is empty"),
    ],
)
def test_a_row_without_its_token_is_told(write: Write, text: str, column: int, problem: str) -> None:
    source = write(text.encode())
    fix = "part the columns by tabs or spaces, or choose another --column"
    assert error_of(source, column=column) == f"{source}:{problem}\n  fix: {fix}"


@pytest.mark.parametrize("mode", ["conll", "conllu"])
@pytest.mark.parametrize("text", ["", "\n\n \t\n", "-DOCSTART- -X- O\n\n"])
def test_no_row_is_no_sentence(write: Write, mode: str, text: str) -> None:
    if mode == "conll" or "DOC" not in text:
        assert read(write(text.encode()), mode) == []


def test_sentences_stay_whole_in_blocks(write: Write) -> None:
    source = write((("a O\n" * 500 + "\n") * 2 + "b O\n").encode())
    assert [len(block) for block in line_blocks([source], mode="conll")] == [500, 501, 2]


def test_a_sentence_without_end_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_PARAGRAPHS", {"conll": replace(ROWS, longest=1_000)})
    source = write(b"a O\n" * 300)
    assert error_of(source) == (
        f"{source}:251: no blank line ends the sentence in 1,000 characters\n  fix: part the sentences by blank lines"
    )


def test_a_long_file_is_read_in_constant_memory(write: Write) -> None:
    source = write(b"word O\n\n" * 10_000)
    sizes = [len(block) for block in line_blocks([source], mode="conll")]
    assert max(sizes) <= blocks._BLOCK_LINES + 2
    assert sum(sizes) == 20_000


# --- CoNLL-U ----------------------------------------------------------------------------------------------------------

SPANISH = conllu(
    "# newdoc",
    "# sent_id = es-7",
    "# text = Dámelo ya, o vámonos al mar.",
    row("1-2", "Dámelo"),
    row("1", "Da"),
    row("2", "melo"),
    row("3", "ya", "SpaceAfter=No"),
    row("4", ","),
    row("5", "o"),
    row("5.1", "nada"),
    row("6-7", "vámonos"),
    row("6", "vamos"),
    row("7", "nos"),
    row("8-9", "al"),
    row("8", "a"),
    row("9", "el"),
    row("10", "mar", "SpaceAfter=No"),
    row("11", "."),
)


def test_syntactic_words_are_tokens_and_have_the_span_of_their_surface(write: Write) -> None:
    [sentence] = read(write(SPANISH), "conllu")
    assert sentence.tokens == ["Da", "melo", "ya", ",", "o", "vamos", "nos", "a", "el", "mar", "."]
    assert sentence.fields == {"id": "es-7"}
    assert sentence.text == "Dámelo ya, o vámonos al mar."
    surface = [sentence.text[start:end] for start, end in sentence.spans]
    assert surface == ["Dámelo", "Dámelo", "ya", ",", "o", "vámonos", "vámonos", "al", "al", "mar", "."]
    assert sentence.place.line == 4
    lines = SPANISH.decode().split("\n")
    assert [lines[line - 1][start:end] for line, start, end in sentence.positions] == sentence.tokens


def test_a_text_that_is_not_made_of_the_tokens_gives_no_spans(write: Write) -> None:
    for text in ("a b c", "ab", "a b-", "b a", ""):
        [sentence] = read(write(conllu(f"# text = {text}", row("1", "a"), row("2", "b"), row("3", "d"))), "conllu")
        assert (sentence.text, sentence.spans) == (text, None)


def test_without_comments_there_is_neither_text_nor_id(write: Write) -> None:
    [one, two] = read(write(conllu(row("1", "a"), "", "", "# only a comment", "", row("1", "b c"))), "conllu")
    assert (one.text, one.spans, one.fields, two.tokens) == (None, None, {}, ["b c"])


def test_a_sentence_of_empty_nodes_alone_has_no_tokens(write: Write) -> None:
    [sentence] = read(write(conllu("# sent_id = x", row("0.1", "a"))), "conllu")
    assert (sentence.tokens, sentence.positions, sentence.fields) == ([], [], {"id": "x"})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(tokens=st.lists(st.tuples(forms, st.sampled_from(["", " ", "  ", "\u00a0"])), min_size=1))
def test_spans_point_at_tokens_in_the_text(write: Write, tokens: Sequence[tuple[str, str]]) -> None:
    text = "".join(form + space for form, space in tokens)
    rows = [row(str(number), form) for number, (form, _) in enumerate(tokens, start=1)]
    [sentence] = read(write(conllu(f"# text = {text}", *rows)), "conllu")
    assert sentence.tokens == [form for form, _ in tokens]
    if sentence.spans is not None:
        assert [sentence.text[start:end] for start, end in sentence.spans] == sentence.tokens
    assert sentence.spans is not None or any(form.isspace() or form[0].isspace() for form, _ in tokens)


ORDER = "number the words 1, 2, 3 and part the sentences by blank lines"


@pytest.mark.parametrize(
    ("lines", "problem", "fix"),
    [
        (
            [row("1", "a") + "\tx"],
            "1: expected 10 columns parted by tabs, found 11",
            "for another layout: --input conll --column N",
        ),
        (
            ["# text = a", "1 a _ _ _ _ _ _ _ _"],
            "2: expected 10 columns parted by tabs, found 1",
            "for another layout: --input conll --column N",
        ),
        ([row("1", "")], "1: the FORM is empty", "write _ where there is none"),
        (
            [row("x", "a")],
            "1: the ID 'x' is none of CoNLL-U",
            "number the words 1, 2, 3; write 1-2 for a multiword token and 1.1 for an empty node",
        ),
        ([row("1", "a"), row("3", "b")], "2: expected the ID 2, found 3", ORDER),
        ([row("1", "a"), row("1", "b")], "2: expected the ID 2, found 1", ORDER),
        ([row("2-3", "a")], "1: expected the ID 1, found 2-3", ORDER),
        ([row("1-3", "a"), row("1", "b"), row("2", "c")], "3: expected the ID 3 to end the range", ORDER),
        ([row("1-1000000000000", "a"), row("1", "b")], "2: expected the ID 1000000000000 to end the range", ORDER),
    ],
)
def test_a_row_that_is_none_of_conllu_is_told(write: Write, lines: list[str], problem: str, fix: str) -> None:
    source = write(conllu(*lines))
    text = error_of(source, "conllu")
    assert text.startswith(f"{source}:{problem}")
    assert text.endswith(f"\n  fix: {fix}")


@pytest.mark.parametrize("kind", COMPRESSORS)
@pytest.mark.parametrize(("mode", "data"), [("conll", NER.encode()), ("conllu", SPANISH)])
def test_standard_input_may_be_compressed(stdin: Feed, write: Write, kind: str, mode: str, data: bytes) -> None:
    stdin(COMPRESSORS[kind](data.replace(b"\n", b"\r\n")))
    assert [sentence.tokens for sentence in read("-", mode)] == [s.tokens for s in read(write(data), mode)]
