"""Surprisal: a row a token in the order of the text, whose sums are the sentence's log-likelihood."""

import io
import math

import numpy as np
import pytest
import torch

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import BiLMConfig
from elmo_cli.errors import Place
from elmo_cli.evaluation.losses import Predictor
from elmo_cli.evaluation.perplexity import text_perplexity
from elmo_cli.evaluation.surprisal import COLUMNS, SurprisalForm, header, word_groups, write_surprisals
from elmo_cli.reporting import SilentProgress, SilentReporter
from elmo_cli.storage.tables import TableWriter
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.stimuli import Stimulus
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary

# Powers of two, so that the bits are whole numbers.
SHARES = {"<S>": 1 / 16, "</S>": 1 / 4, "<UNK>": 1 / 8, "ferry": 1 / 2, "a\\b": 1 / 16}


@pytest.fixture
def by_share(tiny_config: BiLMConfig) -> Predictor:
    """A model that predicts each word by its share alone, whatever it has read."""
    vocabulary = Vocabulary((*SPECIALS, "ferry", "a\\b"))
    model = LanguageModel(tiny_config, len(vocabulary)).eval()
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.tensor([SHARES[text] for text in vocabulary.types]).log())
    torch.nn.init.zeros_(model.softmax.weight)
    return Predictor(model, vocabulary, torch.device("cpu"))


def tokenized(line: str, number: int = 1) -> Sentence:
    return Sentence(line.split(), Place("x.txt", number), line=line)


def spanned(text: str, spans: list[tuple[int, int]], number: int = 1) -> Sentence:
    return Sentence([text[a:b] for a, b in spans], Place("x.txt", number), text, spans, ((0, number, 0),))


def table_of(predictor: Predictor, stimuli: list[Stimulus], form: SurprisalForm) -> list[list[str]]:
    stream = io.BytesIO()
    tokens = write_surprisals(TableWriter(stream, header()), stimuli, predictor, form, reporter=SilentReporter())
    assert tokens == sum(len(stimulus.sentence.tokens) for stimulus in stimuli)
    first, *rows = [line.split("\t") for line in stream.getvalue().decode().splitlines()]
    assert first == list(COLUMNS)
    return rows


def test_rows_are_worked_out_by_hand(by_share: Predictor) -> None:
    stimuli = [Stimulus(tokenized("ferry a\\b")), Stimulus(tokenized("", 2)), Stimulus(tokenized("boat", 3))]
    assert table_of(by_share, stimuli, SurprisalForm(boundaries=True)) == [
        ["1", "0", "<S>", "NA", "4.000000", "1"],
        ["1", "1", "ferry", "1.000000", "1.000000", "1"],
        ["1", "2", r"a\\b", "4.000000", "4.000000", "1"],
        ["1", "3", "</S>", "2.000000", "NA", "1"],
        ["3", "0", "<S>", "NA", "4.000000", "1"],
        ["3", "1", "boat", "3.000000", "3.000000", "0"],
        ["3", "2", "</S>", "2.000000", "NA", "1"],
    ]


def test_nats_are_bits_times_the_logarithm_of_two(by_share: Predictor) -> None:
    (row,) = table_of(by_share, [Stimulus(tokenized("ferry"))], SurprisalForm("nats"))
    assert row[3:5] == ["0.693147", "0.693147"]


def test_a_word_has_the_sum_of_its_tokens(by_share: Predictor) -> None:
    text = "ferry boats, ferry"
    sentence = spanned(text, [(0, 5), (6, 11), (11, 12), (13, 18)])
    assert table_of(by_share, [Stimulus(sentence)], SurprisalForm(words=True)) == [
        ["1", "1", "ferry", "1.000000", "1.000000", "1"],
        ["1", "2", "boats,", "6.000000", "6.000000", "0"],
        ["1", "3", "ferry", "1.000000", "1.000000", "1"],
    ]


def test_words_and_tokens_and_the_perplexity_agree(predictor: Predictor) -> None:
    text = "the ferry left.a the"
    spans = [(0, 3), (4, 9), (10, 14), (14, 15), (15, 16), (17, 20)]
    sentences = [spanned(text, spans, number) for number in (1, 2, 3)]
    found = text_perplexity(predictor, [sentence.tokens for sentence in sentences], SilentProgress())
    for words in (False, True):
        rows = table_of(predictor, list(map(Stimulus, sentences)), SurprisalForm(words=words, boundaries=True))
        assert len(rows) == 3 * (6 if words else 8)
        for column, perplexity in ((3, found.forward), (4, found.backward)):
            bits = sum(float(row[column]) for row in rows if row[column] != "NA")
            assert 2 ** (bits / found.targets) == pytest.approx(perplexity, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "spans", "groups"),
    [
        ("", [], []),
        ("one", [(0, 3)], [(0, 1)]),
        ("don't go.", [(0, 2), (2, 5), (6, 8), (8, 9)], [(0, 2), (2, 4)]),
        ("  a \u3000b\u00a0c ", [(2, 3), (5, 6), (7, 8)], [(0, 1), (1, 2), (2, 3)]),
        ("New York-based", [(0, 8), (8, 9), (9, 14)], [(0, 3)]),  # a token with a space in it
    ],
)
def test_words_are_what_stands_between_white_space(
    text: str, spans: list[tuple[int, int]], groups: list[tuple[int, int]]
) -> None:
    assert word_groups(spanned(text, spans)) == groups


def test_the_words_of_a_tokenized_text_are_its_tokens() -> None:
    assert word_groups(tokenized("do n't go")) == [(0, 1), (1, 2), (2, 3)]


def test_columns_of_stimuli_stand_first_and_make_way_for_ours() -> None:
    assert header(("item", "text", "stimulus_text")) == (("item", "stimulus_stimulus_text", "stimulus_text", *COLUMNS))


def test_cells_of_stimuli_are_repeated_on_each_row(by_share: Predictor) -> None:
    stream = io.BytesIO()
    stimuli = [Stimulus(tokenized("ferry ferry", 2), ("7", "a\\tb"))]
    table = TableWriter(stream, header(("item", "note")))
    write_surprisals(table, stimuli, by_share, SurprisalForm(), reporter=SilentReporter())
    assert stream.getvalue().decode().splitlines()[1:] == [
        "7\ta\\tb\t2\t1\tferry\t1.000000\t1.000000\t1",
        "7\ta\\tb\t2\t2\tferry\t1.000000\t1.000000\t1",
    ]


def test_the_surprisals_of_a_sentence_sum_to_its_log_likelihood(predictor: Predictor) -> None:
    sentence = tokenized("the ferry left a née .")
    (losses,) = predictor.losses([sentence.tokens])
    rows = table_of(predictor, [Stimulus(sentence)], SurprisalForm(boundaries=True))
    for column, nats in ((3, losses.forward), (4, losses.backward)):
        bits = [float(row[column]) for row in rows if row[column] != "NA"]
        np.testing.assert_allclose(np.array(bits) * math.log(2), nats, atol=1e-6)
