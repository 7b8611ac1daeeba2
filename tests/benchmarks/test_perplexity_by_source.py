"""The parts of the perplexity table, with numbers small enough to count by hand."""

import math
from pathlib import Path

import numpy as np
import pytest
from detokenize_wikitext import detokenized
from perplexity_by_source import ALL, rows_of, sources_of_lines, sums, tallies
from prepared_texts import Marked, marked_ids, sentences_of

from elmo_cli.evaluation.losses import SentenceLosses
from elmo_cli.reporting import SilentReporter
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions
from elmo_cli.text.vocabulary import Vocabulary


def losses(forward: float, backward: float, known: list[bool]) -> SentenceLosses:
    targets = len(known) + 1
    return SentenceLosses(np.full(targets, forward), np.full(targets, backward), np.array(known))


@pytest.fixture
def corpus(tmp_path: Path) -> Corpus:
    text = tmp_path / "text.txt"
    text.write_text("a b\n\nc a a\n", encoding="utf-8")
    options = TextOptions("tokens")
    return prepare_corpus([str(text)], options, cache=tmp_path / "cache", workers=1, reporter=SilentReporter())


def test_lines_have_the_source_of_their_document(tmp_path: Path) -> None:
    docs = tmp_path / "docs.tsv"
    docs.write_text("first_line\tlines\tsource\tdoc\n1\t2\tnews\tx\n4\t9\tnovel\ty\n", encoding="utf-8")
    assert sources_of_lines(str(docs), 5) == ["news", "news", "-", "novel", "novel"]


def test_the_perplexity_of_a_source_is_of_its_predictions_alone() -> None:
    log2, log8 = math.log(2), math.log(8)
    found = tallies(["news", "novel"], [losses(log2, log8, [True, False, True]), losses(log8, log8, [True])])
    # all: 4 predictions of 2 and 2 of 8 forward, so 2 ** ((4 * 1 + 2 * 3) / 6)
    ngram = {"news": 4 * log2, "novel": 2 * log2, ALL: 6 * log2}
    assert rows_of(found, ngram) == [
        ("news", "1", "3", "33.3%", "2.0", "8.0", "4.0", "2.0"),
        ("novel", "1", "1", "0.0%", "8.0", "8.0", "8.0", "2.0"),
        (ALL, "2", "4", "25.0%", "3.2", "8.0", "5.0", "2.0"),
    ]


def test_a_text_without_sources_is_counted_once() -> None:
    found = tallies([ALL], [losses(0.0, 0.0, [True])])
    assert [row[:3] for row in rows_of(found, {})] == [(ALL, "1", "1")]
    assert sums([ALL], Marked(np.zeros(0, np.uint32), np.array([0])), np.array([1.5])) == {ALL: 1.5}


def test_a_source_of_empty_lines_has_no_row() -> None:
    nothing = SentenceLosses(np.zeros(0), np.zeros(0), np.zeros(0, dtype=bool))
    found = tallies(["x", "y"], [losses(0.0, 0.0, [True]), nothing])
    assert [row[0] for row in rows_of(found, {"x": 0.0, ALL: 0.0})] == ["x", ALL]


def test_nats_go_to_the_source_of_the_line_and_empty_lines_have_none() -> None:
    marked = Marked(np.zeros(0, np.uint32), np.array([0, 2]))
    assert sums(["x", "x", "y"], marked, np.array([1.0, 2.0])) == {"x": 1.0, "y": 2.0, ALL: 3.0}


def test_a_text_becomes_ids_between_marks(corpus: Corpus) -> None:
    marked = marked_ids(corpus, Vocabulary(("<S>", "</S>", "<UNK>", "b", "a")))
    assert marked.ids.tolist() == [0, 4, 3, 1, 0, 2, 4, 4, 1]
    assert marked.sentences.tolist() == [0, 2]


def test_sentences_come_with_the_empty_ones(corpus: Corpus) -> None:
    assert list(sentences_of(corpus)) == [["a", "b"], [], ["c", "a", "a"]]


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (" = = Early years = = ", None),
        (" ", None),
        (" It didn 't , in 1 @,@ 000 two @-@ part tests . ", "It didn't, in 1,000 two-part tests."),
        (' He ( the " quiet " one ) is Du Fu \'s brother ; ', 'He (the "quiet" one) is Du Fu\'s brother;'),
        (" Wade – Giles , 7 @.@ 5 % , $ 10 ", "Wade -- Giles, 7.5%, $10"),
    ],
)
def test_wikitext_is_joined_to_running_text(line: str, text: str | None) -> None:
    assert detokenized(line) == text
