"""The concordance: from 40 to 200 columns, the words stand one below the other and no line is too wide."""

from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.neighbors.concordance import Hit, concordance
from elmo_cli.neighbors.widths import width


def hit(left: str, word: str, right: str, *, file: str = "news.txt", line: int = 12, score: float = 0.5) -> Hit:
    return Hit(1, score, word, file, line, 1, len(left), len(left + word), left + word + right, (word,))


parts = st.lists(
    st.tuples(
        st.text(max_size=80),
        st.text(min_size=1, max_size=60),
        st.text(max_size=80),
        st.text(max_size=60),
        st.integers(1, 10**9),
        st.floats(-1, 1),
    ),
    max_size=4,
)


def hits(found: list[tuple[str, str, str, str, int, float]]) -> list[Hit]:
    return [hit(left, word, right, file=file, line=line, score=score) for left, word, right, file, line, score in found]


@given(parts, st.integers(40, 200))
def test_no_line_is_wider_than_the_terminal(found: list, columns: int) -> None:
    assert all(width(str(line)) <= columns for line in concordance(hits(found), columns))


@given(parts, st.integers(40, 200))
def test_the_middles_of_the_words_stand_in_one_column(found: list, columns: int) -> None:
    lines = concordance(hits(found), columns)
    middles = [width(line.score + line.left) + (width(line.word) + 1) // 2 for line in lines]
    assert len(set(middles)) <= 1


def test_a_line_tells_score_word_and_place() -> None:
    [line] = concordance([hit("He wrote a ", "play", ".", score=0.1234)], 60)
    assert str(line) == " 0.123" + 8 * " " + "He wrote a play." + 19 * " " + "news.txt:12"
    assert line.word == "play"


def test_there_is_no_space_between_word_and_context_where_the_text_has_none() -> None:
    [line] = concordance([hit("我住在", "東京", "都。")], 60)
    assert "我住在東京都。" in str(line)


def test_a_narrow_or_wide_terminal_counts_as_40_or_200() -> None:
    found = [hit("a " * 300, "play", " b" * 300)]
    assert width(str(concordance(found, 1)[0])) == 40
    assert width(str(concordance(found, 1000)[0])) == 200


def test_the_mark_may_be_ascii() -> None:
    [line] = concordance([hit("a " * 50, "play", " b" * 50)], 60, mark="...")
    assert str(line).isascii()


def test_the_demonstration_corpus_is_named_without_its_folder_only_where_asked() -> None:
    shipped = hit("a ", "play", "", file="/somewhere/lib/elmo_cli/neighbors/demo/senses.tsv", line=10)
    assert concordance([shipped], 80, short=True)[0].place.endswith("  senses.tsv:10")
    assert concordance([shipped], 80)[0].place.endswith("demo/senses.tsv:10")
    other = hit("a ", "play", "", file="other/senses.tsv", line=10)
    assert concordance([other], 80, short=True)[0].place.endswith("  other/senses.tsv:10")
