"""Tables of stimuli: the text of one column, the cells of all, and what is wrong with a table."""

import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.text.stimuli import StimulusTable
from elmo_cli.text.tokenizer import SpacyTokenizer

TABLE = 'item\tsentence\tby\n1\tThe ferry left.\t"Tom"\n2\t\t\n\n3\t"Don\'t" go\tx\\ty\n'


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "items.tsv"
    path.write_text(TABLE)
    return path


def problem_of(content: bytes, folder: Path, column: str = "sentence") -> str:
    path = folder / "bad.tsv"
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        list(StimulusTable(str(path), column).stimuli(mode="tokens", tokenizer=None))
    return str(caught.value).removeprefix(f"{path}:")


def test_rows_keep_their_cells_and_their_line(table: Path) -> None:
    found = StimulusTable(str(table), "sentence")
    stimuli = list(found.stimuli(mode="tokens", tokenizer=None))
    assert found.columns == ("item", "sentence", "by")
    assert [stimulus.sentence.tokens for stimulus in stimuli] == [["The", "ferry", "left."], [], ['"Don\'t"', "go"]]
    assert [stimulus.sentence.place.line for stimulus in stimuli] == [2, 3, 5]
    assert [stimulus.cells for stimulus in stimuli] == [
        ("1", "The ferry left.", '"Tom"'),
        ("2", "", ""),
        ("3", '"Don\'t" go', "x\\ty"),
    ]


def test_a_cell_is_tokenized_as_a_line_is(table: Path) -> None:
    stimuli = list(StimulusTable(str(table), "sentence").stimuli(mode="lines", tokenizer=SpacyTokenizer("en")))
    assert stimuli[0].sentence.tokens == ["The", "ferry", "left", "."]
    assert stimuli[0].sentence.positions == [(2, 0, 3), (2, 4, 9), (2, 10, 14), (2, 14, 15)]


def test_more_rows_than_are_tokenized_at_once_stay_in_order(tmp_path: Path) -> None:
    path = tmp_path / "long.tsv"
    path.write_text("n\tsentence\r\n" + "".join(f"{n}\tword{n}\r\n" for n in range(600)))
    stimuli = list(StimulusTable(str(path), "sentence").stimuli(mode="tokens", tokenizer=None))
    assert [stimulus.cells for stimulus in stimuli] == [(str(n), f"word{n}") for n in range(600)]
    assert [stimulus.sentence.tokens for stimulus in stimuli] == [[f"word{n}"] for n in range(600)]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"item\tsentence\n1\ta\n2\n", "3: the row has 1 columns, the header 2"),
        (b"item\tsentence\n1\ta\tb\n", "2: the row has 3 columns, the header 2"),
        (b"sentence\titem\tsentence\n", "1: two columns are called 'sentence'\n  fix: rename one of them"),
        (
            b"item\tsentences\n",
            "1: there is no column 'sentence', but 'item', 'sentences'\n  fix: did you mean sentences?",
        ),
        (
            b'"item"\t"sentence"\n',
            "1: there is no column 'sentence', but '\"item\"', '\"sentence\"'\n"
            "  fix: write the table without quotes: quote=FALSE in R, quoting=csv.QUOTE_NONE in Python",
        ),
        (
            b"item,x\n",
            "1: there is no column 'sentence', but 'item,x'\n  fix: part the columns by tabs, not by commas",
        ),
        (b"", " the table is empty\n  fix: name the columns in its first row"),
        (b"item\tsentence\n1\tcaf\xe9\n", "2: byte 0xe9 at offset 19 is not UTF-8"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, content: bytes, problem: str) -> None:
    assert problem_of(content, tmp_path).startswith(problem)


def test_a_missing_table_on_standard_input_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"")))
    with pytest.raises(DataError) as caught:
        StimulusTable("-", "sentence")
    assert str(caught.value).startswith("<stdin>: the table is empty")


@pytest.mark.parametrize("mode", ["text", "jsonl", "conll"])
def test_a_cell_is_one_sentence(table: Path, mode: str) -> None:
    with pytest.raises(ConfigError, match=f"cannot be read with --input {mode}"):
        list(StimulusTable(str(table), "sentence").stimuli(mode=mode, tokenizer=None))
