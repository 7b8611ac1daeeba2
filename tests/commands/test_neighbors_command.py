"""`elmo neighbors`: a word in a sentence to the lines of a corpus in which it is most alike."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]
CORPUS = """The kids play in the garden.

He wrote a play about Rome.
Play it again, Sam.
They play a play in a play.
I don't play; she doesn't either.
The bank of the river.
"""
COLUMNS = ["rank", "score", "word", "file", "line", "token", "text"]


@pytest.fixture
def corpus(here: Path) -> Path:
    (here / "news.txt").write_text(CORPUS, encoding="utf-8")
    return here / "news.txt"


def rows_of(answer: Answer) -> list[list[str]]:
    assert answer.code == 0, answer.stderr
    return [line.split("\t") for line in answer.text.split("\n")[:-1]]


@pytest.fixture
def near(elmo: Elmo, model: Path, corpus: Path) -> Elmo:
    """Ask for the neighbours in the corpus."""

    def ask(*arguments: object, **stdin: bytes) -> Answer:
        return elmo("neighbors", *arguments, "--corpus", "news.txt", "-m", model, "--workers", 0, **stdin)

    return ask


def test_the_occurrences_of_the_word_are_told_best_first(near: Elmo) -> None:
    header, *rows = rows_of(near("play", "in", "The kids play in the garden."))
    assert header == COLUMNS
    assert [row[0] for row in rows] == ["1", "2", "3", "4", "5", "6"]
    scores = [float(row[1]) for row in rows]
    assert scores == sorted(scores, reverse=True)
    assert rows[0][2:] == ["play", "news.txt", "1", "3", "The kids play in the garden."]
    assert scores[0] == pytest.approx(1, abs=1e-3)
    places = [(row[4], row[5]) for row in rows]
    assert sorted(places) == [("1", "3"), ("3", "4"), ("5", "2"), ("5", "4"), ("5", "7"), ("6", "4")]


def test_in_before_the_sentence_changes_nothing(near: Elmo) -> None:
    sentence = "The kids play in the garden."
    assert near("play", "in", sentence).stdout == near("play", sentence).stdout
    rows = rows_of(near("in", "in", sentence))
    assert {row[2] for row in rows[1:]} == {"in"}
    assert rows_of(near("in", "in")) == rows_of(near("in", "in", "in"))


def test_the_query_s_own_sentence_is_shown_unless_it_is_to_be_left_out(near: Elmo) -> None:
    rows = rows_of(near("play", "The kids play in the garden.", "--exclude-identical"))
    assert "1" not in [row[4] for row in rows[1:]]
    assert len(rows) == 6


def test_one_neighbour_a_line_and_no_more_than_asked_for(near: Elmo) -> None:
    rows = rows_of(near("play", "The kids play.", "--unique"))
    assert sorted(row[4] for row in rows[1:]) == ["1", "3", "5", "6"]
    assert len(rows_of(near("play", "The kids play.", "-k", 2))) == 3
    assert len(rows_of(near("play", "The kids play.", "-k", 1000))) == 7


def test_any_compares_with_every_token(near: Elmo) -> None:
    rows = rows_of(near("play", "The kids play in the garden.", "--any", "-k", 1000))
    assert len({row[2] for row in rows[1:]}) > 10
    assert rows[1][2:6] == ["play", "news.txt", "1", "3"]


def test_json_has_its_keys(near: Elmo) -> None:
    answer = near("play", "in", "A play.", "--json", "-k", 1)
    found = json.loads(answer.stdout)
    assert list(found) == ["word", "sentence", "token", "layer", "model", "neighbors"]
    assert (found["word"], found["sentence"], found["token"]) == ("play", "A play.", 2)
    [hit] = found["neighbors"]
    keys = ["rank", "score", "word", "file", "line", "token", "start", "end", "text", "tokens"]
    assert list(hit) == keys
    assert hit["text"][hit["start"] : hit["end"]] == hit["word"] == hit["tokens"][hit["token"] - 1]
    assert json.loads(near("play", "in", "A play.", "-f", "jsonl", "-k", 1).stdout) == hit


def test_a_table_s_other_columns_are_fields(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "years.tsv").write_text("year\tsentence\n1999\tA play .\n\n2001\tThey play .\n")
    answer = elmo("neighbors", "play", "A play .", "--corpus", "years.tsv", "-m", model, "-f", "jsonl", "--workers", 0)
    assert json.loads(answer.text.splitlines()[0])["fields"] == {"year": "1999"}
    assert "reading years.tsv as a table, its sentences in 'sentence'" in answer.stderr


def test_without_a_sentence_words_are_told_by_spelling(near: Elmo) -> None:
    header, *rows = rows_of(near("play", "-k", 3))
    assert header == ["rank", "score", "word", "count"]
    assert len(rows) == 3
    assert "play" not in [row[2].lower() for row in rows]
    assert near("play", "--any").code == 2


def test_a_batch_answers_as_one_by_one(near: Elmo) -> None:
    queries = "play\tThe kids play.\n\nbank\tThe bank of the river.\nplay\tA play about Rome.\n"
    header, *rows = rows_of(near("--batch", "-", "-k", 2, stdin=queries.encode()))
    assert header == ["query", *COLUMNS]
    for number, line in ((1, 0), (2, 2), (3, 3)):
        word, sentence = queries.split("\n")[line].split("\t")
        alone = rows_of(near(word, sentence, "-k", 2))[1:]
        assert [[row[1], *row[3:]] for row in rows if row[0] == str(number)] == [[r[0], *r[2:]] for r in alone]


@pytest.mark.parametrize(
    ("queries", "problem"),
    [
        ("play The kids play.\n", "<stdin>:1: the query is not a word, a tab and a sentence"),
        ("play\tA play.\nbank\tA play.\n", "<stdin>:2: 'bank' does not occur in the sentence 'A play.'"),
        ("\n", "<stdin>: there is no query"),
    ],
)
def test_a_batch_that_cannot_be_used_is_told_with_its_line(near: Elmo, queries: str, problem: str) -> None:
    answer = near("--batch", "-", stdin=queries.encode())
    assert (answer.code, answer.stdout) == (1, b"")
    assert f"elmo: error: {problem}" in answer.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "problem"),
    [
        (("plya", "The kids play."), 2, "'plya' does not occur in the sentence 'The kids play.'\n  fix: did you mean"),
        (("play", "They play a play.", "--nth", 3), 2, "'play' occurs 2 times in the sentence, so there is no --nth 3"),
        (
            ("plays", "He plays."),
            1,
            "news.txt: 'plays' does not occur in the corpus\n  fix: the nearest words are 'play'",
        ),
        (("play", "in"), 2, "the sentence behind 'in' is missing"),
        (("play", "They", "play"), 2, "the sentence is 2 arguments, 'They' and 'play' first"),
        (("play", " "), 2, "the sentence is empty"),
        ((), 2, "no word is named"),
        (("play", "A play.", "--layer", "9"), 2, "the model has no layer 9"),
        (("play", "A play.", "--json", "-f", "tsv"), 2, "--json and --format exclude each other"),
        (("play", "A play.", "-f", "xml"), 2, "--format 'xml' is not known"),
        (("--batch", "-", "--corpus", "-"), 2, "--batch and --corpus are both standard input"),
        (("--batch", "x.tsv", "play"), 2, "--batch brings its own words"),
        (("play", "A play.", "--index", "x.idx"), 2, "--corpus and --index exclude each other"),
    ],
)
def test_what_cannot_be_done_is_told(near: Elmo, arguments: tuple[object, ...], code: int, problem: str) -> None:
    answer = near(*arguments)
    assert (answer.code, answer.stdout) == (code, b"")
    assert f"elmo: error: {problem}" in answer.stderr


def test_the_first_of_several_is_taken_with_a_note_and_another_by_its_number(near: Elmo) -> None:
    answer = near("play", "They play a play in a play.", "-k", 1)
    assert rows_of(answer)[1][4:6] == ["5", "2"]
    assert "'play' occurs 3 times in the sentence; this is the first; --nth 2 takes the second" in answer.stderr
    answer = near("play", "They play a play in a play.", "-k", 1, "--nth", 3)
    assert rows_of(answer)[1][4:6] == ["5", "7"]
    assert "occurs 3 times" not in answer.stderr


def test_other_case_is_taken_where_there_is_no_other_and_told(near: Elmo) -> None:
    answer = near("Bank", "The bank of the river.")
    assert rows_of(answer)[1][2] == "bank"
    assert "'Bank' stands in the sentence as 'bank'" in answer.stderr
    assert "'Bank' occurs in the corpus only in other upper and lower case" in answer.stderr
    assert len(rows_of(near("play", "A play.", "--ignore-case"))) == 8


def test_a_word_that_is_split_is_compared_as_a_whole(near: Elmo) -> None:
    answer = near("don't", "I don't play.")
    assert [row[2:6] for row in rows_of(answer)[1:]] == [["don't", "news.txt", "6", "2"]]
    assert '"don\'t" is 2 tokens in the sentence, "do n\'t"; their mean is compared' in answer.stderr
    assert [row[2] for row in rows_of(near("the river", "Down the river."))[1:]] == ["the river"]


def test_several_texts_may_stand_behind_one_corpus(elmo: Elmo, model: Path, corpus: Path, here: Path) -> None:
    (here / "more.txt").write_text("Plays and a play.\n")
    words = ("play", "in", "A play.")
    options = ("-m", model, "--workers", 0)
    together = elmo("neighbors", *words, "--corpus", "news.txt", "more.txt", *options)
    assert {row[3] for row in rows_of(together)[1:]} == {"news.txt", "more.txt"}
    for other in (
        ("--corpus", "news.txt", "--corpus", "more.txt", *words),
        ("--corpus=news.txt", "more.txt", *words),
        ("--corpus", "news.txt", "more.txt", *words),
    ):
        assert elmo("neighbors", *other, *options).stdout == together.stdout
    answer = elmo("neighbors", *words, "--corpus", "news.txt", "missing.txt", *options)
    assert (answer.code, "put it in quotes" in answer.stderr) == (2, True)


def test_a_concordance_is_as_wide_as_asked_for_and_harmless(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "wide.txt").write_text("我 play 東京東京 \x1b[31m " + "words " * 50 + "\n\n" + "long " * 40 + "play\n")
    answer = elmo("neighbors", "play", "A play", "--corpus", "wide.txt", "-m", model, "-f", "text", "--width", 50)
    assert "\x1b" not in answer.text
    from elmo_cli.neighbors.widths import width

    assert [width(line) for line in answer.text.splitlines()] == [50, 50]
    assert len({width(line[: line.index("play")]) for line in answer.text.splitlines()}) == 1


def test_tokens_that_have_come_are_not_cut_again(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "x.tok").write_text("I don't play-act\n\n")
    answer = elmo("neighbors", "don't", "We don't", "--corpus", "x.tok", "--input", "tokens", "-m", model)
    assert rows_of(answer)[1][2:] == ["don't", "x.tok", "1", "2", "I don't play-act"]


@pytest.mark.parametrize("content", ["", "\n\n"])
def test_a_corpus_without_tokens_is_told(elmo: Elmo, model: Path, here: Path, content: str) -> None:
    (here / "empty.txt").write_text(content)
    answer = elmo("neighbors", "play", "A play", "--corpus", "empty.txt", "-m", model, "--workers", 0)
    assert (answer.code, answer.stdout) == (1, b"")
    assert "there is no token to index in empty.txt" in answer.stderr


def test_a_corpus_may_come_from_a_pipe(elmo: Elmo, model: Path, here: Path) -> None:
    arguments = ("play", "A play.", "--corpus", "-", "-m", model, "--workers", 0)
    rows = rows_of(elmo("neighbors", *arguments, stdin=CORPUS.encode()))
    assert (rows[1][3], len(rows)) == ("<stdin>", 7)


def test_after_installation_there_is_a_corpus_to_look_in(elmo: Elmo, here: Path) -> None:
    answer = elmo("neighbors", "play", "in", "She signed to do a Broadway play", "-f", "jsonl", "-k", 5, "--workers", 0)
    assert answer.code == 0, answer.stderr
    hits = [json.loads(line) for line in answer.text.splitlines()]
    assert hits[0]["fields"]["sense"] == "stage piece"
    assert "the demonstration sentences" in answer.stderr


def test_a_word_of_a_batch_that_the_corpus_lacks_leaves_the_others_their_answers(near: Elmo) -> None:
    queries = b"zebra\tA zebra.\nplay\tThe kids play.\n\nzebra\tThe zebra.\nbank\tThe bank.\n"
    answer = near("--batch", "-", "-k", 1, stdin=queries)
    assert answer.code == 1
    header, *rows = [line.split("\t") for line in answer.text.splitlines()]
    assert header == ["query", *COLUMNS]
    assert [(row[0], row[3]) for row in rows] == [("2", "play"), ("4", "bank")]
    warnings = [line for line in answer.stderr.splitlines() if line.startswith("elmo: warning")]
    assert warnings == [f"elmo: warning: <stdin>:{n}: 'zebra' does not occur in the corpus" for n in (1, 4)]
    assert [json.loads(line)["query"] for line in near("--batch", "-", "--json", stdin=queries).text.splitlines()] == [
        2,
        4,
    ]


def test_a_batch_of_which_the_corpus_has_no_word_names_each_line(near: Elmo) -> None:
    answer = near("--batch", "-", stdin=b"zebra\tA zebra.\nlion\tA lion.\n")
    assert (answer.code, answer.stdout) == (1, b"")
    assert "<stdin>:1: 'zebra' does not occur in the corpus" in answer.stderr
    assert "<stdin>:2: 'lion' does not occur in the corpus" in answer.stderr


@pytest.mark.parametrize("command", ["neighbors", "senses"])
@pytest.mark.parametrize("word", ["", " "])
def test_an_empty_word_is_refused(elmo: Elmo, model: Path, corpus: Path, command: str, word: str) -> None:
    answer = elmo(command, word, "--corpus", "news.txt", "-m", model)
    assert (answer.code, answer.stdout) == (2, b"")
    assert "elmo: error: the word is empty" in answer.stderr


def test_a_column_may_be_chosen_where_the_suffix_says_conll(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "a.conll").write_text("1\tThey\n2\tplay\n\n1\tA\n2\tplay\n\n")
    (here / "a.txt").write_text("They play\n")
    query = ("neighbors", "play", "in", "We play", "-m", model, "--workers", 0, "--column", 2)
    assert [row[5] for row in rows_of(elmo(*query, "--corpus", "a.conll"))[1:]] == ["2", "2"]
    assert elmo("index", "a.conll", "-o", "a.idx", "-m", model, "--column", 2).code == 0
    assert len(rows_of(elmo(*query, "--index", "a.idx"))) == 3
    answer = elmo(*query, "--corpus", "a.txt")
    assert (answer.code, answer.stdout) == (2, b"")
    assert "--column 2 says nothing of --input lines" in answer.stderr


def test_a_tsv_that_is_no_table_is_read_as_lines_which_is_told(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "a.tsv").write_text("They play\tnow\n")
    answer = elmo("neighbors", "play", "in", "We play", "--corpus", "a.tsv", "-m", model, "--workers", 0)
    assert len(rows_of(answer)) == 2
    assert "a.tsv has no column 'sentence' or 'text', so it is read as lines" in answer.stderr
