"""Text out as it came in, with labels put in."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest
from test_labelled import CONLLU, SpaceTokenizer

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.mixing.fill_in import fill_in, slots_of
from elmo_cli.mixing.layouts import Layout, open_text


def upper(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Label each token with itself in capitals, after reading all sentences."""
    yield from [[token.upper() for token in sentence] for sentence in list(sentences)]


def count(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Label each sentence with its number of tokens."""
    yield from ([f"n{len(sentence)}"] for sentence in sentences)


def size(sentences: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
    """Label each sentence with the JSON of its number of tokens."""
    yield from ([str(len(sentence))] for sentence in sentences)


def filled(
    folder: Path,
    text: str,
    mode: str,
    *,
    unit: str = "token",
    columns: int = 2,
    column: int | None = None,
    label: str | None = None,
    as_json: bool = False,
) -> str:
    path = folder / "text"
    path.write_text(text, encoding="utf-8")
    opened, layout = open_text(str(path), mode), Layout(mode, column, label)
    slots = slots_of(opened, layout, unit, SpaceTokenizer(), columns, as_json=as_json)
    return "".join(fill_in(slots, upper if unit == "token" else size if as_json else count))


def test_conll_has_the_label_in_its_column_and_all_else_as_it_was(tmp_path: Path) -> None:
    text = "-DOCSTART- O\n\na\tX\nb\tY\n\n\nc\tZ\n"
    assert filled(tmp_path, text, "conll") == "-DOCSTART- O\n\na\tA\nb\tB\n\n\nc\tC\n"


def test_rows_that_are_shorter_than_those_learned_on_get_the_label_behind(tmp_path: Path) -> None:
    assert filled(tmp_path, "a\nb\n", "conll") == "a\tA\nb\tB\n"
    assert filled(tmp_path, "a x\nb y\n", "conll", columns=3) == "a x A\nb y B\n"
    assert filled(tmp_path, "a x\nb y\n", "conll", label="3") == "a x A\nb y B\n"
    with pytest.raises(DataError, match=":1: the row has 2 columns, the label goes to column 5"):
        filled(tmp_path, "a x\n", "conll", label="5")


def test_a_token_of_wide_space_and_empty_columns_stay_where_a_label_is_put_behind(tmp_path: Path) -> None:
    assert filled(tmp_path, "\u3000\n\xa0\n", "conll", columns=0) == "\u3000\t\u3000\n\xa0\t\xa0\n"
    assert filled(tmp_path, "a\tx\t\n", "conll", label="4") == "a\tx\t\tA\n"
    assert filled(tmp_path, "a\t\t \n", "conll", columns=0) == "a\tA\n"
    assert filled(tmp_path, "a x  \n", "conll", label="3") == "a x A\n"


@pytest.mark.parametrize(
    ("text", "label", "line"),
    [("a X\nb X Y\n", None, 2), ("a X\n\nb\n", None, 3), ("a\nb X\n", None, 2), ("a X\nb X Y\n", "3", 2)],
)
def test_rows_of_different_numbers_of_columns_are_refused(
    tmp_path: Path, text: str, label: str | None, line: int
) -> None:
    with pytest.raises(DataError, match=rf"text:{line}: the row has \d columns?, that in line 1 has \d\n") as caught:
        filled(tmp_path, text, "conll", label=label)
    assert caught.value.where is not None


def test_rows_may_differ_where_the_label_has_its_column_in_all_of_them(tmp_path: Path) -> None:
    assert filled(tmp_path, "a X\nb X Y\n", "conll", label="2") == "a A\nb B Y\n"
    assert filled(tmp_path, "a\tX\t\nb\tX\n", "conll") == "a\tA\t\nb\tB\n"


def test_conllu_has_the_label_of_each_word_and_keeps_comments_ranges_and_empty_nodes(tmp_path: Path) -> None:
    expected = CONLLU.replace("\tAUX\t", "\tDO\t").replace("\tPART\t", "\tN'T\t").replace("\tVERB\t", "\tGO\t")
    assert filled(tmp_path, CONLLU, "conllu") == expected


def test_tsv_has_the_label_before_the_text(tmp_path: Path) -> None:
    text = "old\tso good\n\nonly text\n"
    assert filled(tmp_path, text, "tsv", unit="sentence") == "n2\tso good\n\nn2\tonly text\n"
    found = filled(tmp_path, "so good\told\tid\n", "tsv", unit="sentence", column=1, label="2")
    assert found == "so good\tn2\tid\n"


def test_json_has_tags_beside_its_tokens_and_keeps_every_digit(tmp_path: Path) -> None:
    text = '{"tokens": ["a", "b"], "n": 1.10}\n\n{"text": "a b", "n": 12345678901234567890}\n'
    assert filled(tmp_path, text, "jsonl") == (
        '{"tokens": ["a", "b"], "n": 1.10, "tags": ["A", "B"]}\n\n'
        '{"text": "a b", "n": 12345678901234567890, "tokens": ["a", "b"], "tags": ["A", "B"]}\n'
    )
    text = '{"text": "a b", "label": null, "n": 1}\n'
    assert filled(tmp_path, text, "jsonl", unit="sentence") == '{"text": "a b", "label": "n2", "n": 1}\n'
    assert filled(tmp_path, '{"text": "é"}\n', "jsonl", unit="sentence", label="y") == '{"text": "é", "y": "n1"}\n'


def test_json_has_the_numbers_true_and_false_that_were_learned(tmp_path: Path) -> None:
    assert filled(tmp_path, '{"text": "a b"}\n', "jsonl", unit="sentence", as_json=True) == (
        '{"text": "a b", "label": 2}\n'
    )
    # The label of a token is the token in capitals: 1 is one, too.
    assert filled(tmp_path, '{"tokens": ["1", "2"]}\n', "jsonl", as_json=True) == (
        '{"tokens": ["1", "2"], "tags": [1, 2]}\n'
    )
    assert filled(tmp_path, "a b\n", "lines", unit="sentence", as_json=True) == "2\ta b\n"


def test_plain_lines_become_a_row_a_token_or_get_the_label_of_the_line(tmp_path: Path) -> None:
    assert filled(tmp_path, "a b\nc\n", "lines") == "a\tA\nb\tB\n\nc\tC\n\n"
    assert filled(tmp_path, "a b\nc\n", "tokens", unit="sentence") == "n2\ta b\nn1\tc\n"


@pytest.mark.parametrize(("mode", "unit"), [("tsv", "token"), ("conll", "sentence"), ("conllu", "sentence")])
def test_a_layout_without_room_for_the_labels_is_refused(tmp_path: Path, mode: str, unit: str) -> None:
    with pytest.raises(ConfigError, match=f"{mode} has no place for a label of each {unit}"):
        filled(tmp_path, "a\tb\n", mode, unit=unit)
