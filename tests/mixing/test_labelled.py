"""Labelled text in each of its layouts, and how a layout is found out."""

import gzip
import lzma
from pathlib import Path

import pytest

from elmo_cli.errors import ConfigError, DataError
from elmo_cli.mixing.labelled import Example, LabelledText, collect, read_examples
from elmo_cli.mixing.layouts import Layout, open_text
from elmo_cli.text.tokenizer import Span

CONLL = "-DOCSTART- O\n\nJohn NNP B-PER\nran VBD O\n\nParis NNP B-LOC\n"
CONLLU = (
    "# sent_id = 1\n# text = Don't go\n1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n1\tDo\tdo\tAUX\tVB\t_\t3\taux\t_\t_\n"
    "2\tn't\tnot\tPART\tRB\t_\t3\tadvmod\t_\t_\n3\tgo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n3.1\te\te\tX\t_\t_\t_\t_\t_\t_\n\n"
)


class SpaceTokenizer:
    """Tokens are what stands between spaces."""

    def spans(self, texts: list[str]) -> list[list[Span]]:
        found = []
        for text in texts:
            starts = [
                place for place, sign in enumerate(text) if sign != " " and (place == 0 or text[place - 1] == " ")
            ]
            found.append([(start, start + len(text[start:].split(" ")[0])) for start in starts])
        return found

    def sentences(self, text: str) -> list[list[Span]]:
        return [spans for spans in self.spans([text]) if spans]


def read(path: Path, mode: str | None = None, column: int | None = None, label: str | None = None) -> list[Example]:
    text = open_text(str(path), mode)
    return list(read_examples(text, Layout(text.mode, column, label), SpaceTokenizer()))


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def pairs(examples: list[Example]) -> list[tuple[list[str], list[str]]]:
    return [(list(example.tokens), list(example.labels)) for example in examples]


def test_conll_gives_the_last_column_and_skips_document_marks(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a.conll", CONLL))
    assert pairs(found) == [(["John", "ran"], ["B-PER", "O"]), (["Paris"], ["B-LOC"])]
    assert [str(example.place) for example in found] == [f"{tmp_path}/a.conll:3", f"{tmp_path}/a.conll:6"]


def test_conll_gives_the_columns_that_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.iob2", "# sent_id = x\n# text = A b\n1\tA\tO\t-\n2\tb\tB-X\t-\n\n")
    assert pairs(read(path, column=2, label="3")) == [(["A", "b"], ["O", "B-X"])]
    assert pairs(read(write(tmp_path, "b.conll", CONLL), label="2"))[0] == (["John", "ran"], ["NNP", "VBD"])


def test_a_hash_is_a_token_where_rows_have_no_comments(tmp_path: Path) -> None:
    assert pairs(read(write(tmp_path, "a.conll", "#\tO\nb\tO\n\n"))) == [(["#", "b"], ["O", "O"])]


def test_an_empty_last_column_is_passed_over(tmp_path: Path) -> None:
    assert pairs(read(write(tmp_path, "a.conll", "a\tO\t\nb\tB-X\t\n\n"))) == [(["a", "b"], ["O", "B-X"])]


@pytest.mark.parametrize(
    ("label", "labels"),
    [(None, ["AUX", "PART", "VERB"]), ("xpos", ["VB", "RB", "VB"]), ("8", ["aux", "advmod", "root"])],
)
def test_conllu_gives_upos_or_the_column_that_is_named(tmp_path: Path, label: str | None, labels: list[str]) -> None:
    assert pairs(read(write(tmp_path, "a.conllu", CONLLU), label=label)) == [(["Do", "n't", "go"], labels)]


def test_tsv_gives_a_label_and_all_behind_it(tmp_path: Path) -> None:
    found = read(write(tmp_path, "a.tsv", "pos\tgood day\tfun\n\nneg\tbad\n"))
    assert [(list(example.labels), example.unit) for example in found] == [(["pos"], "sentence"), (["neg"], "sentence")]


def test_tsv_gives_the_columns_that_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, "a.tsv", "good fun\t4\tx\nbad\t2\ty\n")
    assert pairs(read(path, "tsv", 1, "2")) == [(["good", "fun"], ["4"]), (["bad"], ["2"])]


def test_json_gives_tags_of_tokens_or_a_label_of_a_text(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"tokens": ["a", "b"], "tags": ["X", "Y"]}\n\n{"tokens": ["c"], "tags": [3]}\n')
    assert pairs(read(path)) == [(["a", "b"], ["X", "Y"]), (["c"], ["3"])]
    path = write(tmp_path, "b.jsonl", '{"text": "so good", "label": "pos"}\n{"tokens": ["bad"], "label": 0}\n')
    assert pairs(read(path)) == [(["so", "good"], ["pos"]), (["bad"], ["0"])]
    path = write(tmp_path, "c.jsonl", '{"tokens": ["a"], "ner": ["O"], "tags": ["X"]}\n')
    assert pairs(read(path, label="ner")) == [(["a"], ["O"])]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "pos\t\n\nneg\tbad\npos\t  \n"),
        (
            "a.jsonl",
            '{"text": "", "label": "pos"}\n\n{"text": "bad", "label": "neg"}\n{"tokens": [], "label": "pos"}\n',
        ),
    ],
)
def test_an_empty_text_with_a_label_counts(tmp_path: Path, name: str, text: str) -> None:
    found = read(write(tmp_path, name, text), name.removeprefix("a."))
    assert pairs(found) == [([], ["pos"]), (["bad"], ["neg"]), ([], ["pos"])]
    assert LabelledText("a", found).size_told == "3 sentences, 2 of them empty, 1 token, sentence labels"


def test_no_tokens_have_no_tags(tmp_path: Path) -> None:
    text = '{"tokens": [], "tags": []}\n{"tokens": ["a"], "tags": ["X"]}\n'
    assert pairs(read(write(tmp_path, "a.jsonl", text))) == [(["a"], ["X"])]


@pytest.mark.parametrize(
    ("values", "is_json"), [(("0", "12"), True), (("true", "0"), True), (("0", '"1"'), False), (('"a"', '"b"'), False)]
)
def test_labels_are_json_where_all_of_them_are_numbers_true_or_false(
    tmp_path: Path, values: tuple[str, ...], is_json: bool
) -> None:
    path = write(tmp_path, "a.jsonl", "".join(f'{{"text": "a", "label": {value}}}\n' for value in values))
    assert LabelledText("a", read(path)).has_json_labels is is_json
    path = write(tmp_path, "b.jsonl", f'{{"tokens": ["a", "b"], "tags": [{", ".join(values)}]}}\n')
    assert LabelledText("b", read(path)).has_json_labels is is_json


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed_text_is_read_and_its_inner_name_tells_the_layout(tmp_path: Path, suffix: str, pack) -> None:  # noqa: ANN001
    path = tmp_path / f"a.conll{suffix}"
    path.write_bytes(pack(CONLL.encode()))
    assert open_text(str(path), None).how == "by its ending .conll"
    assert len(read(path)) == 2


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("a O\nb O\n\nc O\n", "conll"),
        ("a\tO\nb\tO\n\nc\tO\n", "conll"),
        (CONLLU, "conllu"),
        ("-DOCSTART- O\n\na NN O\nb NN O\n\nc NN O\n", "conll"),
        ("a O\nb O\nc O\n", "conll"),
        ("a\tO\nb\tO\nc\tO\n", "conll"),
        ("pos\tso good\nneg\tbad\n", "tsv"),
        ("pos\tgood\nneg\tbad\npos\tfun\n", "tsv"),
        ('{"text": "a", "label": "b"}\n', "jsonl"),
    ],
)
def test_the_first_lines_tell_the_layout(tmp_path: Path, text: str, mode: str) -> None:
    opened = open_text(str(write(tmp_path, "data", text)), None)
    assert (opened.mode, opened.how) == (mode, "by its first lines")


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("John left.\nMary stayed.\n", "lines"),
        ("John left.\n\nMary stayed.\n", "lines"),
        ("John\tO\nleft\tO\n", "conll"),
        ("John O\nleft O\n\n" * 5, "conll"),
        ("John\tNNP\tO\n", "lines"),
        ('{"text": "a"}\n', "jsonl"),
    ],
)
def test_text_to_label_is_rows_only_where_it_looks_like_them(tmp_path: Path, text: str, mode: str) -> None:
    opened = open_text(str(write(tmp_path, "text", text)), None, own_mode="conll", own_columns=2)
    assert opened.mode == mode


@pytest.mark.parametrize(
    ("text", "own_mode", "mode"),
    [
        ("pos\tso good\n", "conll", "tsv"),
        ("pos\tgood\tfun\n", "conll", "tsv"),
        ("so good\n", "jsonl", "tsv"),
        ("John\tO\nleft\tO\n", "conll", "conll"),
        ('{"text": "a"}\n', "conll", "jsonl"),
        ("\n", "conll", "lines"),
    ],
)
def test_the_ending_tsv_tells_how_text_to_label_is_laid_out(
    tmp_path: Path, text: str, own_mode: str, mode: str
) -> None:
    path = write(tmp_path, "a.tsv", text)
    assert open_text(str(path), None, own_mode=own_mode, own_columns=2).mode == mode


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("Just some words.\nAnd more.\n", "3, 2"),
        ("The cat sat on a mat .\nIt was red .\n\nIt slept .\n", "7, 4, 3"),
        ("a\tX\tO\nb\tO\n\nc\tX\tO\n", "3, 2"),
        ("a b\n" * 5 + "a b c\n", "2, 3"),
    ],
)
def test_rows_of_different_numbers_of_columns_are_no_labelled_text(tmp_path: Path, text: str, counts: str) -> None:
    path = write(tmp_path, "a.txt", text)
    with pytest.raises(ConfigError) as caught:
        open_text(str(path), None)
    assert caught.value.message == f"{path} does not look labelled: its rows have {counts} columns"
    assert "--input conll, conllu, tsv or jsonl" in str(caught.value.fix)


def test_comments_whose_sentence_is_not_looked_at_do_not_matter(tmp_path: Path) -> None:
    for more in range(8):  # 1,000 lines are looked at; the sentence has eight
        text = "# another comment\n" * more + CONLLU * 130
        assert open_text(str(write(tmp_path, "a", text)), None).mode == "conllu"


def test_the_ending_tsv_tells_what_the_lines_do_not(tmp_path: Path) -> None:
    for text in ("pos\tso good\n", "a\tO\nb\tO\n", "pos\tgood\nbad\n"):
        assert open_text(str(write(tmp_path, "a.tsv", text)), None).how == "by its ending .tsv"
    opened = open_text(str(write(tmp_path, "b.tsv", "a\tO\nb\tO\n\nc\tO\n")), None)
    assert (opened.mode, opened.how) == ("conll", "by its first lines")


def test_an_empty_text_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="the text is empty") as caught:
        open_text(str(write(tmp_path, "data", "\n\n")), None)
    assert caught.value.fix == "name a text with labelled sentences"
    with pytest.raises(DataError, match="there is no labelled sentence in the text") as caught:
        collect("a", [])
    assert caught.value.fix == "name a text with labelled sentences"


@pytest.mark.parametrize("text", ["a O\nb O\n", "a\tO\t\nb\tO\t\n"])
def test_a_token_in_the_last_column_is_told(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, "a.conll", text)
    with pytest.raises(ConfigError) as caught:
        read(path, column=2)
    assert str(caught.value) == (
        f"{path}:1: --column 2 is the last column, where the label stands\n"
        "  fix: choose another one, or set --label-column"
    )
    assert pairs(read(path, column=2, label="1")) == [(["O", "O"], ["a", "b"])]


def test_a_later_row_without_a_label_is_no_fault_of_the_columns(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=":2: expected a label in the last column, found 2 columns"):
        read(write(tmp_path, "a.conll", "1 a O\n2 b\n"), "conll", column=2)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.conll", "a O\nb\n", ":2: expected a label in the last column, found 1 column\n"),
        ("a.conllu", "1\ta\t_\t\t_\t_\t0\t_\t_\t_\n", ":1: there is no label in column UPOS; the row has 10 columns"),
        ("a.tsv", "pos\tgood\nbad\n", ":2: expected a label and a text parted by a tab, found 1 column"),
        ("a.jsonl", '{"tokens": ["a", "b"], "tags": ["X"]}\n', ':1: found 1 label in "tags" and 2 tokens'),
        ("a.jsonl", f'{{"text": "a", "label": {"9" * 5000}}}\n', ':1: the value of "label" is too long a number'),
        (
            "a.jsonl",
            '{"text": "a", "labels": "x"}\n',
            ':1: the object has no label (its keys beside text and tokens: "labels")',
        ),
        ("a.jsonl", '{"text": "a", "label": null}\n', ':1: "label" holds null, not a label'),
    ],
)
def test_what_has_no_label_is_told_with_its_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, name, text), name.removeprefix("a."))
    assert message in str(caught.value)


def test_a_text_has_labels_of_one_kind(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", '{"tokens": ["a"], "tags": ["X"]}\n{"tokens": ["a"], "label": "Y"}\n')
    with pytest.raises(DataError, match="here a sentence has a label, before it was a token"):
        collect("a", read(path))


@pytest.mark.parametrize(
    ("mode", "column", "label"),
    [
        ("conllu", 2, None),
        ("conll", 1, "1"),
        ("conll", None, "x"),
        ("conll", None, "9" * 5000),
        ("conllu", None, "2"),
        ("conllu", None, "form"),
        ("tsv", None, "0"),
    ],
)
def test_a_column_that_cannot_be_is_refused(mode: str, column: int | None, label: str | None) -> None:
    with pytest.raises(ConfigError):
        Layout(mode, column, label)


def test_a_text_in_the_column_of_the_label_is_refused_and_where_the_label_is_told_helps() -> None:
    with pytest.raises(ConfigError, match="--column 1 is where the label stands") as caught:
        Layout("tsv", 1)
    assert caught.value.fix == "set --label-column, too"
    assert Layout("tsv", 1, "2").label_number == 2
