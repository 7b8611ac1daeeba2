"""`elmo surprisal`: a table of tokens that can be joined with reading times, in a file, a redirect or a pipe."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import DATA, Answer

Elmo = Callable[..., Answer]
HEADER = ["line", "token", "text", "forward", "backward", "in_vocab"]
LINES = "The ferry left.\n\nNobody waved back, not even Tom.\n"


def table_of(answer: Answer) -> tuple[list[str], list[list[str]]]:
    assert answer.code == 0, answer.stderr
    header, *rows = [line.split("\t") for line in answer.text.split("\n")[:-1]]
    assert {len(row) for row in rows} <= {len(header)}
    return header, rows


def test_there_is_a_row_for_each_token_that_is_embedded(elmo: Elmo, model: Path, here: Path) -> None:
    header, rows = table_of(elmo("surprisal", DATA / "world.txt", "-m", model))
    elmo("embed", DATA / "world.txt", "-m", model, "-o", "x.npy", "--tokens-out", "x.tsv")
    embedded = [line.split("\t") for line in (here / "x.tsv").read_text().split("\n")[1:-1]]
    assert header == HEADER
    assert [(row[0], row[1], row[2]) for row in rows] == [(row[0], row[2], row[5]) for row in embedded]
    assert all(float(row[3]) > 0 and float(row[4]) > 0 and row[5] in "01" for row in rows)


def test_the_columns_sum_to_the_perplexities(elmo: Elmo, model: Path) -> None:
    _, rows = table_of(elmo("surprisal", DATA / "world.txt", "-m", model, "--boundaries"))
    found = json.loads(elmo("perplexity", DATA / "world.txt", "-m", model, "--json").stdout)
    for column, key in ((3, "forward"), (4, "backward")):
        bits = [float(row[column]) for row in rows if row[column] != "NA"]
        assert len(bits) == found["targets"]
        assert 2 ** (sum(bits) / len(bits)) == pytest.approx(found[key], rel=1e-5)
    unknown = [row[5] for row in rows if row[2] not in ("<S>", "</S>")].count("0")
    assert unknown == round(found["oov_rate"] * found["tokens"])


def test_lines_and_tokens_are_counted_from_one_and_marks_frame_them(elmo: Elmo, model: Path) -> None:
    _, rows = table_of(elmo("surprisal", "-m", model, "--boundaries", stdin=LINES.encode()))
    assert [" ".join(row[:3]) for row in rows[:8]] == [
        *("1 0 <S>", "1 1 The", "1 2 ferry", "1 3 left", "1 4 .", "1 5 </S>"),
        *("3 0 <S>", "3 1 Nobody"),
    ]
    assert [(row[3] == "NA", row[4] == "NA") for row in rows[:6]] == [
        (True, False),
        *[(False, False)] * 4,
        (False, True),
    ]


def test_words_are_those_of_the_line_with_the_surprisals_of_their_tokens(elmo: Elmo, model: Path) -> None:
    _, tokens = table_of(elmo("surprisal", "-m", model, stdin=LINES.encode()))
    _, words = table_of(elmo("surprisal", "-m", model, "--words", stdin=LINES.encode()))
    assert [row[2] for row in words] == LINES.split()
    assert [row[1] for row in words] == ["1", "2", "3", "1", "2", "3", "4", "5", "6"]
    for column in (3, 4):
        assert float(words[2][column]) == pytest.approx(float(tokens[2][column]) + float(tokens[3][column]), abs=2e-6)


def test_tokens_are_the_users(elmo: Elmo, model: Path) -> None:
    _, rows = table_of(elmo("surprisal", "-m", model, "--input", "tokens", stdin=b"don't stop-me\\now  !\n"))
    assert [row[2] for row in rows] == ["don't", r"stop-me\\now", "!"]


@pytest.mark.parametrize("batch_tokens", [1, 37])
def test_batches_do_not_change_a_surprisal(elmo: Elmo, model: Path, batch_tokens: int) -> None:
    _, usual = table_of(elmo("surprisal", DATA / "world.txt", "-m", model))
    _, other = table_of(elmo("surprisal", DATA / "world.txt", "-m", model, "--batch-tokens", batch_tokens))
    assert [row[:3] for row in other] == [row[:3] for row in usual]
    for column in (3, 4):
        assert [float(row[column]) for row in other] == pytest.approx([float(row[column]) for row in usual], abs=2e-5)


def test_stimuli_keep_their_columns(elmo: Elmo, model: Path, here: Path) -> None:
    (here / "items.tsv").write_text('item\ttext\tcondition\nA1\tThe ferry left.\t"x"\n\nA2\t\ty\nA3\tTom slept.\tz\n')
    header, rows = table_of(elmo("surprisal", "items.tsv", "-m", model, "--text-col", "text", "--words"))
    assert header == ["item", "stimulus_text", "condition", *HEADER]
    assert [row[:6] for row in rows] == [
        *[["A1", "The ferry left.", '"x"', "2", str(n), word] for n, word in enumerate(["The", "ferry", "left."], 1)],
        *[["A3", "Tom slept.", "z", "5", str(n), word] for n, word in enumerate(["Tom", "slept."], 1)],
    ]
    _, alone = table_of(elmo("surprisal", "-m", model, "--words", stdin=b"The ferry left.\nTom slept.\n"))
    assert [float(row[6]) for row in rows] == pytest.approx([float(row[3]) for row in alone], abs=2e-5)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("item\ttext\nA1\ta\nA2\n", "items.tsv:3: the row has 1 columns, the header 2"),
        ("item\ttexts\n", "items.tsv:1: there is no column 'text', but 'item', 'texts'"),
    ],
)
def test_a_table_that_is_none_is_told_with_its_line_and_leaves_no_file(
    elmo: Elmo, model: Path, here: Path, content: str, problem: str
) -> None:
    (here / "items.tsv").write_text(content)
    answer = elmo("surprisal", "items.tsv", "-m", model, "--input", "tokens", "--text-col", "text", "-o", "x.tsv")
    assert (answer.code, answer.stdout) == (1, b"")
    assert answer.stderr.startswith(f"elmo: error: {problem}\n  fix: ")
    assert [path.name for path in here.iterdir()] == ["items.tsv"]


def test_a_file_by_o_is_what_goes_to_stdout(elmo: Elmo, model: Path, here: Path) -> None:
    answer = elmo("surprisal", DATA / "world.txt", "-m", model, "-o", "x.tsv", "--unit", "nats")
    assert (answer.code, answer.stdout) == (0, b"")
    assert (here / "x.tsv").read_bytes() == elmo("surprisal", DATA / "world.txt", "-m", model, "--unit", "nats").stdout
    assert elmo("surprisal", DATA / "world.txt", "-m", model, "-o", "x.tsv").code == 2


def test_a_text_of_no_tokens_has_no_rows(elmo: Elmo, model: Path) -> None:
    for content in (b"", b"\n\n"):
        assert table_of(elmo("surprisal", "-m", model, stdin=content)) == (HEADER, [])


def test_an_unknown_unit_is_refused(elmo: Elmo, model: Path) -> None:
    answer = elmo("surprisal", DATA / "world.txt", "-m", model, "--unit", "bans")
    assert (answer.code, answer.stderr) == (
        2,
        "elmo: error: --unit 'bans' is not known\n  fix: choose bits or nats\n",
    )


def test_a_folder_of_several_texts_is_refused(elmo: Elmo, model: Path) -> None:
    answer = elmo("surprisal", DATA, "-m", model)
    assert answer.code == 2
    assert answer.stderr.startswith(f"elmo: error: {DATA} names ")


def test_a_reader_that_has_enough_is_no_error(shell: Callable[..., Answer], model: Path, here: Path) -> None:
    line = (
        'yes "$(cat "$2")" | elmo -q surprisal -m "$1" --input tokens --batch-tokens 256 | head -3 | wc -l; '
        'echo "${PIPESTATUS[1]}"'
    )
    answer = shell(line, model, DATA / "world.txt", folder=here)
    assert (answer.text.split(), answer.stderr) == (["3", "0"], "")
