"""An object a line: what is taken, what is passed on, and what is refused with its place."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from source_files import COMPRESSORS, Feed, Write, message

from elmo_cli.errors import DataError, Place
from elmo_cli.text.reader import read_sentences
from elmo_cli.text.sentence import RawJson, Sentence
from elmo_cli.text.tokenizer import SpacyTokenizer

FORM = 'write one object a line, such as {"text": "The kids play."} or {"tokens": ["The", "kids", "play", "."]}'
any_text = st.text(st.characters(exclude_categories=()))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | any_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text, inner, max_size=3),
    max_leaves=6,
)


@pytest.fixture(scope="module")
def tokenizer() -> SpacyTokenizer:
    return SpacyTokenizer()


def read(source: str, tokenizer: SpacyTokenizer | None = None) -> list[Sentence]:
    return list(read_sentences([source], mode="jsonl", tokenizer=tokenizer or SpacyTokenizer()))


def test_a_text_is_tokenized_and_tokens_are_taken_as_they_are(write: Write) -> None:
    source = write(b'{"text": "It isn\'t so."}\n{"tokens": ["isn\'t", "", "New York", " "]}\n\n \t\n')
    sentences = read(source)
    assert [sentence.tokens for sentence in sentences] == [
        ["It", "is", "n't", "so", "."],
        ["isn't", "", "New York", " "],
        [],
        [],
    ]
    assert [sentence.place for sentence in sentences] == [Place(source, number) for number in (1, 2, 3, 4)]
    assert [sentence.text for sentence in sentences] == ["It isn't so.", None, None, None]
    assert [sentence.spans for sentence in sentences[1:]] == [None, None, None]


def test_positions_count_in_the_text_and_are_not_known_for_tokens(write: Write) -> None:
    sentences = read(write(b'\n{"text": "a\\u00e9 b"}\n{"tokens": ["c", "d"]}\n'))
    assert [sentence.positions for sentence in sentences] == [
        [],
        [(2, 0, 2), (2, 3, 4)],
        [(3, None, None), (3, None, None)],
    ]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(any_text))
def test_offsets_point_into_the_text(tokenizer: SpacyTokenizer, write: Write, texts: list[str]) -> None:
    sentences = read(write("".join(json.dumps({"text": text}) + "\n" for text in texts).encode()), tokenizer)
    assert [sentence.text for sentence in sentences] == texts
    for sentence in sentences:
        assert [sentence.text[start:end] for start, end in sentence.spans] == sentence.tokens


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(fields=st.dictionaries(any_text.filter(lambda key: key not in ("text", "tokens")), json_values))
def test_all_else_is_passed_on_in_its_order(write: Write, fields: dict[str, Any]) -> None:
    [sentence] = read(write(json.dumps({"tokens": [], **fields}).encode()))
    assert list(sentence.fields) == list(fields)
    for key, value in sentence.fields.items():
        assert fields[key] == (json.loads(value) if isinstance(value, RawJson) else value)


@pytest.mark.parametrize(
    "raw",
    [
        "1.0",
        "-0.0",
        "0.1000000000000000055511151231257827",
        "1E400",
        "123456789012345678901234567890",
        "9" * 5000,
        '[1.0, {"a": 1, "a": 2} ]',
        "null",
        "true",
    ],
    ids=lambda raw: raw[:20],
)
def test_numbers_and_what_holds_them_are_kept_to_the_last_digit(write: Write, raw: str) -> None:
    [sentence] = read(write(b'{ "n" :%b , "tokens":[] }' % f" {raw} ".encode()))
    assert sentence.fields == {"n": raw}
    assert isinstance(sentence.fields["n"], RawJson)


def test_of_text_and_tokens_the_tokens_are_taken_and_the_text_is_passed_on(write: Write) -> None:
    [sentence] = read(write(b'{"text": "can\'t", "id": 7, "tokens": ["can\'t"]}'))
    assert (sentence.tokens, sentence.text, sentence.spans) == (["can't"], None, None)
    assert sentence.fields == {"text": "can't", "id": "7"}


def test_tokens_alone_need_no_language(write: Write) -> None:
    assert read(write(b'{"tokens": ["a"]}'), SpacyTokenizer("no such"))[0].tokens == ["a"]


@pytest.mark.parametrize("kind", COMPRESSORS)
def test_standard_input_may_be_compressed(stdin: Feed, kind: str) -> None:
    stdin(COMPRESSORS[kind](b'\xef\xbb\xbf{"tokens": ["a"]}\r\n{"tokens": []}'))
    assert [sentence.tokens for sentence in read("-")] == [["a"], []]


@pytest.mark.parametrize(
    ("line", "problem", "fix"),
    [
        ('{"text": "a"', "is not JSON: expecting ',' delimiter at character 13", f"{FORM}; jq -c . makes one line"),
        ("plain text", "is not JSON: expecting value at character 1", FORM),
        ('{"text": "a"} {}', "is not JSON: extra data at character 15", FORM),
        ('{"text": "a\tb"}', "is not JSON: invalid control character at at character 12", FORM),
        ('{"tokens": [], "x": NaN}', "is not JSON: NaN is no number of JSON", "write null, or leave the key out"),
        (
            '{"text": "a", "x": -Infinity}',
            "is not JSON: -Infinity is no number of JSON",
            "write null, or leave the key out",
        ),
        ('["a", "b"]', "is a list, not an object", "make one line of each object: jq -c '.[]'"),
        ('"a"', "is a string, not an object", FORM),
        ("1.5", "is a number, not an object", FORM),
        ("null", "is null, not an object", FORM),
        ("{}", 'the object has neither "text" nor "tokens" (its keys: none)', FORM),
        ('{"Text": 1, "é": 2}', 'the object has neither "text" nor "tokens" (its keys: "Text", "\\u00e9")', FORM),
        ('{"text": null}', '"text" is null, not a string', FORM),
        ('{"text": ["a"]}', '"text" is a list, not a string', FORM),
        ('{"tokens": "a b", "text": "a b"}', '"tokens" is a string, not a list of strings', FORM),
        ('{"tokens": {"a": 1}}', '"tokens" is an object, not a list of strings', FORM),
        ('{"tokens": ["a", 2]}', '"tokens" holds a number at place 2', FORM),
        ('{"tokens": [true]}', '"tokens" holds true or false at place 1', FORM),
        ('{"text": "a", "id": 1, "id": 2}', 'the key "id" stands twice in an object', "leave one of them out"),
        ('{"text": ' + "[" * 100_000, "the JSON is nested too deeply", "flatten it"),
    ],
    ids=lambda value: value[:30],
)
def test_what_is_no_such_object_is_told_with_its_place(write: Write, line: str, problem: str, fix: str) -> None:
    source = write(b'{"tokens": []}\n\n' + line.encode() + b"\n")
    with pytest.raises(DataError) as error:
        read(source)
    assert message(error).startswith(f"{source}:3: {problem}\n  fix: {fix}")


def test_sentences_before_a_broken_line_are_given(write: Write) -> None:
    sentences = read_sentences([write(b'{"tokens": ["a"]}\n{')], mode="jsonl", tokenizer=SpacyTokenizer())
    assert next(sentences).tokens == ["a"]
    with pytest.raises(DataError):
        next(sentences)
