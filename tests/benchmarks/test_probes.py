"""Readers, vectors and probes of parts of speech and senses, with sentences and vectors made by hand."""

from pathlib import Path

import numpy as np
import pytest
import torch
from labelled_layers import Labelled, StaticVectors, _span_means, blocks_of_rows, read_static
from pos_probe import learn_probe, make_task, read_conllu
from pos_probe import most_frequent as most_frequent_tags
from word_senses import SenseMeans, Target, Task, first_senses, most_frequent, read_semcor, scores

BANK = ("bank", "n")


def written(folder: Path, text: str) -> str:
    path = folder / "file.tsv"
    path.write_text(text, encoding="utf-8")
    return str(path)


def target(sense: str, *others: str, is_name: bool = False) -> Target:
    return Target(BANK, (sense, *others), is_name)


def test_lines_without_a_tab_part_the_sentences(tmp_path: Path) -> None:
    source = written(tmp_path, "# newdoc\nThe\tDT\n#\tNN\n\n# newdoc\n\nEnd\tNN\n")
    assert list(blocks_of_rows(source)) == [[["The", "DT"], ["#", "NN"]], [["End", "NN"]]]


def test_words_of_conllu_have_their_tags_and_surface_tokens_are_no_words(tmp_path: Path) -> None:
    rows = ["1-2\tdon't\t_\t_", "1\tdo\t_\tAUX", "2\tn't\t_\tPART", "2.1\tx\t_\tX"]
    (sentence,) = read_conllu(written(tmp_path, "# text = don't\n" + "\n".join(rows) + "\n\n"))
    assert sentence == Labelled(["do", "n't"], [(0, 1), (1, 2)], ["AUX", "PART"])


def test_a_multiword_is_split_and_a_sense_may_be_one_of_several(tmp_path: Path) -> None:
    lines = [
        "``\t``\t``\t_",
        "watered_down\twater_down\tVB\twater_down%2:30:00::",
        "Bank\tbank\tNNP\tbank%1:17:00::;1:14:00::",
    ]
    (sentence,) = read_semcor(written(tmp_path, "\n".join(lines) + "\n"))
    assert sentence.tokens == ['"', "watered", "down", "Bank"]
    assert sentence.spans == [(1, 3), (3, 4)]
    assert sentence.labels == [
        Target(("water_down", "v"), ("water_down%2:30:00::",), False),
        Target(BANK, ("bank%1:17:00::", "bank%1:14:00::"), True),
    ]


def test_the_vector_of_a_stretch_is_the_mean_of_its_tokens() -> None:
    tokens = np.array([[[1, 0]], [[3, 2]], [[5, 4]]], dtype=np.float32)
    assert _span_means(tokens, [(0, 1), (1, 3)]).tolist() == [[[1, 0]], [[4, 3]]]


def test_static_vectors_are_found_as_written_or_in_small_letters(tmp_path: Path) -> None:
    static = read_static(written(tmp_path, "2 2\nbank 1 2\nUS 3.5 -4\n"))
    sentences = [Labelled(["Bank", "US", "us", "bank"], [(0, 1), (1, 3), (2, 3), (1, 4)], list("abcd"))]
    assert static.layers(sentences).tolist() == [[[1, 2], [3.5, -4], [0, 0], [2.25, -1]]]
    assert static.coverage([Labelled(["Bank", "us"], [(0, 2)], ["a"])]) == 0.5


def test_a_probe_learns_what_a_line_parts() -> None:
    random = np.random.default_rng(1)
    vectors = torch.from_numpy(random.normal(size=(400, 3)).astype(np.float32))
    classes = (vectors @ torch.tensor([1.0, -2.0, 0.5]) > 0).long()
    probe = learn_probe((vectors[:300], classes[:300]), (vectors[300:], classes[300:]), 2)
    assert probe.dev_accuracy > 0.97
    assert torch.equal(probe.classes(vectors[:300]), classes[:300])


def test_new_words_are_those_that_training_lacks() -> None:
    train = [Labelled(["a", "b", "a"], [(0, 1), (1, 2), (2, 3)], ["X", "Y", "X"])]
    test = [Labelled(["a", "c"], [(0, 1), (1, 2)], ["X", "Y"])]
    task, numbers = make_task({"train": train, "dev": train, "test": test})
    assert numbers == {"X": 0, "Y": 1}
    assert task.is_new.tolist() == [False, True]
    assert task.accuracies(torch.tensor([0, 0])) == ("50.00%", "0.00%")


def test_a_word_has_its_most_frequent_tag_and_a_new_one_that_of_most_words() -> None:
    train = [Labelled(list("aaabc"), [(n, n + 1) for n in range(5)], ["X", "X", "Y", "Y", "Y"])]
    assert most_frequent_tags(train, ["a", "b", "new"]) == ["X", "Y", "Y"]


def test_the_first_sense_is_that_of_number_one(tmp_path: Path) -> None:
    table = "lemma\tpos\tsense_number\tsense_key\nBank\tn\t2\tbank%2\nBank\tn\t1\tbank%1\nbank\tv\t1\tbank%v\n"
    assert first_senses(written(tmp_path, table)) == {BANK: "bank%1", ("bank", "v"): "bank%v"}


def test_the_nearest_sense_is_the_one_of_the_largest_cosine_with_the_mean() -> None:
    vectors = np.array([[9, 1], [7, -1], [0, 1]], dtype=np.float32)
    means = SenseMeans([target("river"), target("river"), target("money")], vectors)
    assert means.nearest(BANK, np.array([1, 0.2], dtype=np.float32)) == "river"
    assert means.nearest(BANK, np.array([0.1, 1], dtype=np.float32)) == "money"
    assert means.nearest(("bank", "v"), np.array([1, 0], dtype=np.float32)) is None


def test_a_word_that_training_lacks_takes_its_first_sense() -> None:
    new = Target(("oak", "n"), ("oak%2",), False)
    task = Task([target("river")], [target("money"), new], {("oak", "n"): "oak%2"})
    row = task.nearest_row("x", np.ones((1, 2), np.float32), np.ones((2, 2), np.float32))
    assert row == ("x", "50.0", "50.0", "-", "-", "-", "-")


def test_the_most_frequent_sense_counts_every_right_one() -> None:
    assert most_frequent([target("river"), target("money", "river")]) == {BANK: "river"}


def test_names_are_counted_among_all_but_not_among_nouns() -> None:
    found = scores([target("a"), target("b", "a"), target("c", is_name=True)], ["a", "a", None])
    assert found == ["66.7", "100.0", "-", "-", "-", "0.0"]


def test_static_vectors_of_no_known_word_are_zeros() -> None:
    static = StaticVectors({"a": 0}, np.ones((1, 3), dtype=np.float32))
    assert static.layers([Labelled(["z"], [(0, 1)], ["X"])]).tolist() == [[[0, 0, 0]]]


@pytest.mark.parametrize("key", ["3:00:00::", "5:00:00:old:02"])
def test_satellite_adjectives_are_adjectives(tmp_path: Path, key: str) -> None:
    (sentence,) = read_semcor(written(tmp_path, f"old\told\tJJ\told%{key}\n"))
    assert sentence.labels[0].word == ("old", "a")
