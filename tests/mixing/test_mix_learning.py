"""Learning: the layer that tells is found, the average is kept under a large penalty, and a seed is a seed."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up_encoder import DIM, MadeUpEncoder

from elmo_cli.errors import ConfigError, DataError, Place
from elmo_cli.mixing.label_sets import has_json_labels
from elmo_cli.mixing.labelled import Example, LabelledText
from elmo_cli.mixing.layer_cache import LayerCache
from elmo_cli.mixing.layouts import Layout
from elmo_cli.mixing.learn import LearnTask, learn_mix
from elmo_cli.mixing.learn_settings import FitSettings, LearnSettings, choose_head
from elmo_cli.mixing.predict import Predictor
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.mix_file import MixFile, read_mix, write_mix

QUICK = LearnSettings(
    "linear", batch_tokens=64, dropout=0.0, fit=FitSettings(epochs=12, patience=12, learning_rate=0.03)
)
WORDS = ["at", "be", "cu", "do", "eg", "fa"]


def made_up_text(count: int, *, seed: int = 1, unit: str = "token") -> LabelledText:
    """Return sentences whose tokens are labelled by their first letter: vowels V, others C; or by that of the first."""
    random = np.random.default_rng(seed)
    examples = []
    for number in range(count):
        tokens = [str(token) for token in random.choice(WORDS, size=random.integers(1, 7))]
        labels = ["V" if token[0] in "ae" else "C" for token in tokens]
        examples.append(
            Example(tokens, tuple(labels if unit == "token" else labels[:1]), unit, Place("made up", number + 1))
        )
    return LabelledText("made up", examples)


def learn(encoder: MadeUpEncoder, how: LearnSettings, *, seeds: range = range(1, 2), compare: bool = False) -> MixFile:
    task = LearnTask(made_up_text(60), made_up_text(20, seed=2), Layout("conll"), "en", how, seeds, compare)
    return learn_mix(task, encoder, LayerCache(None, "float32", SilentReporter()), SilentReporter())


@pytest.mark.parametrize("telling", [0, 1, 2])
def test_the_layer_that_tells_gets_the_largest_weight(telling: int) -> None:
    mix = learn(MadeUpEncoder(telling), QUICK)
    assert int(np.argmax(mix.weights.s)) == telling
    assert mix.weights.s[telling] > 0.5
    assert sum(mix.weights.s) == pytest.approx(1, abs=1e-6)
    assert mix.weights.s == pytest.approx(np.exp(mix.w) / np.exp(mix.w).sum(), abs=1e-6)


def test_a_large_penalty_keeps_the_average() -> None:
    mix = learn(MadeUpEncoder(1), replace(QUICK, strength=100.0))
    assert mix.weights.s == pytest.approx([1 / 3] * 3, abs=0.03)


def test_the_mix_is_told_beside_the_average_and_each_layer_over_all_seeds() -> None:
    mix = learn(MadeUpEncoder(1), QUICK, seeds=range(4, 6), compare=True)
    assert [row.name for row in mix.scores] == ["mix", "average", "layer 2 (top)", "layer 1", "layer 0"]
    assert {len(row.values) for row in mix.scores} == {2}
    scores = {row.name: row.mean for row in mix.scores}
    assert scores["layer 1"] == 1.0
    assert scores["mix"] > scores["layer 2 (top)"]
    assert [row.s[0] for row in mix.scores[1:3]] == [pytest.approx((1 / 3,) * 3), (1.0,)]
    assert mix.seeds == (4, 5)
    assert mix.kept == mix.seeds[int(np.argmax(mix.scores[0].values))]


@pytest.mark.parametrize("head", ["linear", "bilstm"])
def test_the_same_seed_gives_the_same_file(tmp_path: Path, head: str) -> None:
    how = replace(QUICK, head=head, dropout=0.2, fit=FitSettings(epochs=2))
    for name in ("a", "b"):
        write_mix(tmp_path / name, learn(MadeUpEncoder(1), how))
    write_mix(tmp_path / "c", learn(MadeUpEncoder(1), how, seeds=range(2, 3)))
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


@pytest.mark.parametrize("head", ["linear", "bilstm"])
def test_a_stored_mix_predicts_what_was_scored(tmp_path: Path, head: str) -> None:
    encoder, dev = MadeUpEncoder(1), made_up_text(20, seed=2)
    write_mix(tmp_path / "a", learn(encoder, replace(QUICK, head=head, layer_norm=True)))
    mix = read_mix(tmp_path / "a")
    predicted = [label for labels in Predictor(mix, encoder).labels(dev.tokens) for label in labels]
    gold = [label for example in dev.examples for label in example.labels]
    right = sum(one == other for one, other in zip(gold, predicted, strict=True))
    assert right / len(gold) == pytest.approx(mix.scores[0].values[0])


def test_labels_of_sentences_are_learned_by_the_pooled_head() -> None:
    train = made_up_text(80, unit="sentence")
    how = replace(QUICK, head="pooled")
    task = LearnTask(train, None, Layout("tsv"), "en", how, range(1, 2), compare=False)
    mix = learn_mix(task, MadeUpEncoder(1), LayerCache(None, "float32", SilentReporter()), SilentReporter())
    assert mix.scores[0].mean > 0.7
    assert list(mix.scores[0].others) == ["macro_f1"]
    assert mix.data["dev"] == {"held_out_of_train": 8}
    assert mix.data["train"]["learned_on"] == 72
    assert [len(labels) for labels in Predictor(mix, MadeUpEncoder(1)).labels([[], ["at", "be"]])] == [1, 1]


@pytest.mark.parametrize("layer_norm", [False, True])
def test_empty_texts_are_learned_scored_and_predicted_alike(layer_norm: bool) -> None:
    empty = [Example([], ("E",), "sentence", Place("made up", 99))]
    text = made_up_text(40, unit="sentence")
    train = LabelledText("made up", [*empty * 20, *text.examples, *empty * 20])
    how = replace(QUICK, head="pooled", layer_norm=layer_norm, batch_tokens=16)  # some batches hold no token at all
    task = LearnTask(train, train, Layout("tsv"), "en", how, range(1, 2), compare=False)
    mix = learn_mix(task, MadeUpEncoder(1), LayerCache(None, "float32", SilentReporter()), SilentReporter())
    predicted = list(Predictor(mix, MadeUpEncoder(1)).labels(train.tokens))
    assert [list(labels) for labels in predicted[:20] + predicted[-20:]] == [["E"]] * 40
    pairs = zip(train.examples, predicted, strict=True)
    right = sum(list(example.labels) == list(labels) for example, labels in pairs)
    assert right / len(predicted) == pytest.approx(mix.scores[0].values[0])


def test_a_mix_knows_that_its_labels_are_json(tmp_path: Path) -> None:
    for is_json in (False, True):
        examples = [replace(example, is_json=is_json) for example in made_up_text(20, unit="sentence").examples]
        train = LabelledText("made up", examples)
        task = LearnTask(train, None, Layout("jsonl"), "en", replace(QUICK, head="pooled"), range(1, 2), compare=False)
        mix = learn_mix(task, MadeUpEncoder(1), LayerCache(None, "float32", SilentReporter()), SilentReporter())
        write_mix(tmp_path / "a", mix)
        assert has_json_labels(read_mix(tmp_path / "a")) is is_json


def test_a_dev_label_that_was_never_learned_is_an_error_of_the_mix() -> None:
    dev = LabelledText("dev", [Example(["at", "be"], ("V", "new"), "token", Place("dev", 1))])
    task = LearnTask(made_up_text(60), dev, Layout("conll"), "en", QUICK, range(1, 2), compare=False)
    mix = learn_mix(task, MadeUpEncoder(1), LayerCache(None, "float32", SilentReporter()), SilentReporter())
    assert mix.scores[0].mean == 0.5


def test_one_label_alone_is_nothing_to_learn() -> None:
    text = LabelledText("all O", [Example(["at"], ("O",), "token", Place("x", 1))] * 3)
    task = LearnTask(text, text, Layout("conll"), "en", QUICK, range(1, 2))
    with pytest.raises(DataError, match="all O: all labels are 'O': there is nothing to learn"):
        learn_mix(task, MadeUpEncoder(1), LayerCache(None, "float32", SilentReporter()), SilentReporter())


def test_the_head_is_chosen_by_the_labels() -> None:
    spans = LabelledText("spans", [Example(["a"], ("B-X",), "token", Place("x", 1))])
    assert choose_head(None, spans) == "bilstm"
    assert choose_head(None, made_up_text(3)) == "linear"
    assert choose_head(None, made_up_text(3, unit="sentence")) == "pooled"
    with pytest.raises(ConfigError, match="--head pooled does not fit: in made up each token has a label"):
        choose_head("pooled", made_up_text(3))


def test_the_width_of_layers_is_the_encoders() -> None:
    assert MadeUpEncoder().identity.dim == DIM
