"""The table of tokens: a row for each row of vectors, in which nothing breaks a row or a cell."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_cli.storage.token_table import TokenTableWriter
from elmo_cli.storage.vectors import SentenceRows


def rows_of(tokens: list[str]) -> SentenceRows:
    """Return the rows of the first sentence, without places."""
    return SentenceRows(1, 1, " ".join(tokens), tokens, range(1, len(tokens) + 1), [(1, None, None)] * len(tokens))


def test_a_table_has_a_row_for_each_token() -> None:
    stream = io.BytesIO()
    table = TokenTableWriter(stream, pooled=False)
    table.write(SentenceRows(1, 1, "No.", ["No", "."], [1, 3], [(1, 0, 2), (1, 2, 3)]))
    table.write(SentenceRows(2, 2, "", [], [], []))
    table.write(SentenceRows(3, 3, "é", ["é"], [1], [(3, None, None)]))
    assert stream.getvalue().decode() == (
        "line\tsentence\ttoken\tstart\tend\ttext\n1\t1\t1\t0\t2\tNo\n1\t1\t3\t2\t3\t.\n3\t3\t1\t\t\té\n"
    )


def test_a_pooled_sentence_has_one_row() -> None:
    stream = io.BytesIO()
    TokenTableWriter(stream, pooled=True).write(SentenceRows(5, 4, "a\tb", ["a", "b"], [1, 2], [(4, 0, 1), (4, 2, 3)]))
    assert stream.getvalue().splitlines()[1] == b"4\t5\t\t\t\ta\\tb"


def test_what_would_break_a_row_is_escaped() -> None:
    stream = io.BytesIO()
    TokenTableWriter(stream, pooled=False).write(rows_of(["a\tb\nc\rd\\n\ud800"]))
    assert stream.getvalue().splitlines()[1] == b"1\t1\t1\t\t\ta\\tb\\nc\\rd\\\\n\\ud800"


@settings(deadline=None)
@given(st.lists(st.text(), max_size=5))
def test_a_table_reads_back_without_quoting(tokens: list[str]) -> None:
    stream = io.BytesIO()
    TokenTableWriter(stream, pooled=False).write(rows_of(tokens))
    text = io.StringIO(stream.getvalue().decode(), newline="")
    rows = list(csv.DictReader(text, delimiter="\t", quoting=csv.QUOTE_NONE))
    plain = [
        row["text"].replace(r"\\", "\0\0").replace(r"\t", "\t").replace(r"\n", "\n").replace(r"\r", "\r")
        for row in rows
    ]
    assert [text.replace("\0\0", "\\") for text in plain] == [token.replace("\0\0", "\\") for token in tokens]
    assert [row["token"] for row in rows] == [str(number + 1) for number in range(len(tokens))]


def test_as_many_places_as_tokens_are_needed() -> None:
    with pytest.raises(ValueError, match="zip"):
        TokenTableWriter(io.BytesIO(), pooled=False).write(SentenceRows(1, 1, "a b", ["a", "b"], [1, 2], [(1, 0, 1)]))
