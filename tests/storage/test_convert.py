"""Models of bilm-tf into ours and back: the same numbers as an independent float64 twin, and the same bits again."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from foreign_models import (
    ForeignFiles,
    options_with,
    read_datasets,
    types_of,
    write_model,
    zip_folder,
)
from sentence_batches import make_batch
from tiny_options import FILTER_COUNT
from twin import Options, Twin, Vector, Weights, random_weights
from weights import config_from_options as shape_of

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.round_trip import largest_difference
from elmo_cli.embedding.selection import parse_layers
from elmo_cli.errors import ModelError
from elmo_cli.storage.allennlp_options import config_from_options
from elmo_cli.storage.convert import export_model, import_model
from elmo_cli.storage.foreign import foreign_model, read_options
from elmo_cli.storage.model_dir import read_config, read_vocabulary
from elmo_cli.storage.weights import load_bilm, load_language_model

# Rounding to float32 is 6e-8 of a value; sums of some dozen products and 300 steps take it to 2e-6.
FLOAT32 = 1e-5


@dataclass(frozen=True)
class Case:
    """A model as bilm-tf writes it.

    Attributes:
        options: the content of options.json.
        scale: of the LSTM weights.
        softmax: word types of its softmax; None for no softmax.
        unnumbered: whether the single LSTM layer's datasets lack the number of the cell.
    """

    options: Options
    scale: float = 1.0
    softmax: int | None = None
    unnumbered: bool = False


CASES: dict[str, Case] = {
    "262-characters": Case(options_with()),
    "261-characters-softmax-training-keys": Case(options_with(n_characters=261, training=True), softmax=12),
    "characters-uncounted": Case(options_with("n_characters"), softmax=3),
    "P-equals-D": Case(options_with(projection_dim=16), softmax=7),
    "N-equals-P": Case(options_with(projection_dim=FILTER_COUNT, dim=24)),
    "N-equals-P-equals-D": Case(options_with(projection_dim=FILTER_COUNT, dim=FILTER_COUNT), softmax=5),
    "no-highway": Case(options_with(n_highway=0)),
    "highway-absent": Case(options_with("n_highway")),
    "two-highways": Case(options_with(n_highway=2, n_characters=261)),
    "no-skip": Case(options_with(use_skip_connections=False)),
    "skip-absent": Case(options_with("use_skip_connections")),
    "20-ids-a-token": Case(options_with(max_characters_per_token=20)),
    "60-ids-a-token": Case(options_with(max_characters_per_token=60, n_characters=261)),
    "tanh": Case(options_with(activation="tanh")),
    "clips-absent": Case(options_with("cell_clip", "proj_clip"), scale=1.5),
    "clips-null": Case(options_with(cell_clip=None, proj_clip=None), scale=1.5),
    "tight-clips": Case(options_with(cell_clip=0.7, proj_clip=0.5), scale=1.5),
    "one-layer": Case(options_with(n_layers=1)),
    "one-layer-unnumbered": Case(options_with("n_layers"), softmax=4, unnumbered=True),
    "three-layers": Case(options_with(n_layers=3)),
    "filters-unsorted": Case(options_with(filters=[[7, 5], [1, 4], [3, 2], [7, 1], [2, 3]])),
}

WORDS = ["the", "Ferry", "left", "at", "7:45", "a.m.", "naïve", "Zürich", "."]


def sentences_for(max_characters: int) -> list[list[str]]:
    """Return sentences whose words are hard for a model that reads so many ids a token."""
    split = "a" * (max_characters - 3) + "é"  # its first byte is the last one that is read
    return [
        ["x" * 60, split, split + "b", "a" * 47 + "é"],
        ["👩‍👩‍👧", "مرحبا", "بالعالم", "你好", "，", "世界", "e\u0301"],
        ["<S>", "inside", "</S>", "<UNK>", "<s>"],
        ["before", "", "after"],
        ["one"],
        [""],
        [],
        [WORDS[k] for k in np.random.default_rng(0).integers(0, len(WORDS), 300)],
    ]


@dataclass(frozen=True)
class Converted:
    """A model, its files and the folder they were converted into."""

    case: Case
    weights: Weights
    files: ForeignFiles
    ours: Path


@pytest.fixture(scope="module", params=CASES)
def converted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Converted:
    case, root = CASES[request.param], tmp_path_factory.mktemp("converted")
    weights = random_weights(case.options, seed=11, scale=case.scale, vocabulary_size=case.softmax)
    types = None if case.softmax is None else types_of(case.softmax)
    files = write_model(root / "theirs", case.options, weights, types=types, unnumbered=case.unnumbered)
    import_model([files.folder], root / "ours", language="en", replace=False)
    return Converted(case, weights, files, root / "ours")


def embed_all(folder: Path, sentences: list[list[str]]) -> list[Vector]:
    """Return the layers [L + 1, n, 2P] of each sentence."""
    config = read_config(folder)
    choice = parse_layers("all", config.bilm.layer_count)
    embedder = Embedder(load_bilm(folder, config), torch.device("cpu"))
    return [vectors.transpose(0, 1).numpy() for vectors in embedder.embed(sentences, choice)]


def twin_layers(options: Options, weights: Weights, sentences: list[list[str]]) -> list[Vector]:
    twin = Twin(options, weights)
    twin.token_vector = cache(twin.token_vector)
    return [twin.layers(sentence) for sentence in sentences]


def test_all_layers_equal_the_twins(converted: Converted) -> None:
    options = converted.case.options
    sentences = sentences_for(options["char_cnn"]["max_characters_per_token"])
    expected = twin_layers(options, converted.weights, sentences)
    for found, wanted in zip(embed_all(converted.ours, sentences), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=0, atol=FLOAT32)


def test_an_exported_model_has_the_same_datasets_bit_by_bit(converted: Converted, tmp_path: Path) -> None:
    export_model(converted.ours, tmp_path / "back", replace=False)
    back = read_datasets(tmp_path / "back" / "weights.hdf5")
    # Back with its number, which all readers know, where bilm-tf's own dump leaves it out.
    assert back.keys() == converted.weights.keys()
    for name, found in back.items():
        wanted = converted.weights[name].astype(np.float32)
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        assert found.tobytes() == wanted.tobytes(), name


def test_exported_options_describe_the_same_shape(converted: Converted, tmp_path: Path) -> None:
    shape = shape_of(converted.case.options)
    assert read_config(converted.ours).bilm == shape
    export_model(converted.ours, tmp_path / "back", replace=False)
    exported = read_options(tmp_path / "back" / "options.json")
    assert config_from_options(exported, "options.json") == shape
    assert exported["char_cnn"]["n_characters"] == 262


def test_a_second_round_gives_the_same_file(converted: Converted, tmp_path: Path) -> None:
    export_model(converted.ours, tmp_path / "back", replace=False)
    import_model([tmp_path / "back"], tmp_path / "again", language="en", replace=False)
    first, second = (folder / "model.safetensors" for folder in (converted.ours, tmp_path / "again"))
    assert first.read_bytes() == second.read_bytes()


CHANGES: dict[str, Callable[[Options], object]] = {
    "no-skip": lambda options: options["lstm"].update(use_skip_connections=True),
    "skip-absent": lambda options: options["lstm"].update(use_skip_connections=True),
    "tanh": lambda options: options["char_cnn"].update(activation="relu"),
    "tight-clips": lambda options: options["lstm"].pop("cell_clip"),
    "20-ids-a-token": lambda options: options["char_cnn"].update(max_characters_per_token=21),
}


@pytest.mark.parametrize("name", CHANGES)
def test_another_option_would_give_other_vectors(name: str) -> None:
    """So the comparison with the twin tells whether the option was read."""
    case = CASES[name]
    weights = random_weights(case.options, seed=11, scale=case.scale)
    changed = json.loads(json.dumps(case.options))
    CHANGES[name](changed)
    sentence = [["one", "very-long-word" * 5, "after", "the", "other"]]
    (expected,), (other,) = (twin_layers(options, weights, sentence) for options in (case.options, changed))
    assert np.abs(expected - other).max() > 1000 * FLOAT32


def test_a_softmax_predicts_like_the_twins(tmp_path: Path) -> None:
    case = CASES["261-characters-softmax-training-keys"]
    types = types_of(12)
    weights = random_weights(case.options, seed=3, vocabulary_size=12)
    files = write_model(tmp_path / "theirs", case.options, weights, types=types)
    config = import_model([files.folder], tmp_path / "ours", language="en", replace=False)
    vocabulary = read_vocabulary(tmp_path / "ours", config)
    sentence = ["word1", "unheard", "word8"]
    with torch.no_grad():
        losses = load_language_model(tmp_path / "ours", config).losses(make_batch([sentence], vocabulary, 50))
    for found, expected in zip(losses, Twin(case.options, weights).log_probabilities(sentence, types), strict=True):
        np.testing.assert_allclose(found.numpy(), -np.array(expected), rtol=0, atol=FLOAT32)


@pytest.fixture
def files(tmp_path: Path) -> ForeignFiles:
    names = ("options.json", "model.hdf5", "vocab.txt.gz")
    return write_model(tmp_path / "simple_elmo", options_with(n_characters=261), types=types_of(6), names=names)


def assert_same_model(sources: list[Path], files: ForeignFiles, tmp_path: Path) -> None:
    config = import_model(sources, tmp_path / "ours", language="nb", replace=False)
    assert (config.vocabulary_size, config.language) == (6, "nb")
    assert config.provenance["converted_from"] == [source.name for source in sources]
    export_model(tmp_path / "ours", tmp_path / "back", replace=False)
    back, wanted = read_datasets(tmp_path / "back" / "weights.hdf5"), read_datasets(files.weights)
    assert {name: array.tobytes() for name, array in back.items()} == {
        name: array.tobytes() for name, array in wanted.items()
    }
    assert (tmp_path / "back" / "vocab.txt").read_text().split("\n") == [*types_of(6), ""]


def test_a_folder_is_a_model(files: ForeignFiles, tmp_path: Path) -> None:
    assert_same_model([files.folder], files, tmp_path)


@pytest.mark.parametrize("inside", ["", "193/", "a/b/"])
def test_a_zip_is_a_model_wherever_its_files_lie_in_it(files: ForeignFiles, tmp_path: Path, inside: str) -> None:
    assert_same_model([zip_folder(files.folder, tmp_path / "193.zip", inside=inside)], files, tmp_path)


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_bare_files_come_in_any_order(files: ForeignFiles, tmp_path: Path, order: tuple[int, ...]) -> None:
    named = [path for path in (files.options, files.weights, files.vocabulary) if path is not None]
    assert_same_model([named[place] for place in order], files, tmp_path)


def test_options_are_found_beside_weights_named_alone(tmp_path: Path) -> None:
    files = write_model(tmp_path / "theirs", options_with(), names=("elmo_small_options.json", "elmo.h5", ""))
    config = import_model([files.weights], tmp_path / "ours", language="en", replace=False)
    assert config.bilm == shape_of(options_with())


def test_a_vocabulary_without_a_softmax_is_left_out(tmp_path: Path) -> None:
    options = options_with()
    files = write_model(tmp_path / "theirs", options, random_weights(options, seed=1), types=types_of(6))
    assert import_model([files.folder], tmp_path / "ours", language="en", replace=False).vocabulary_size is None
    assert {path.name for path in (tmp_path / "ours").iterdir()} == {"config.json", "model.safetensors", "README.md"}


def test_the_card_says_whether_there_is_a_softmax(converted: Converted) -> None:
    softmax = "without" if converted.case.softmax is None else "with"
    assert f"char CNN and biLSTM, {softmax} softmax |" in (converted.ours / "README.md").read_text(encoding="utf-8")


def test_a_vocabulary_that_ends_in_the_empty_word_keeps_it(tmp_path: Path) -> None:
    options, types = options_with(), [*types_of(5), "!!!MAXTERMID", ""]  # the placeholder is no type
    weights = random_weights(options, seed=1, vocabulary_size=6)
    files = write_model(tmp_path / "theirs", options, weights, types=types)
    config = import_model([files.folder], tmp_path / "ours", language="en", replace=False)
    assert read_vocabulary(tmp_path / "ours", config).types == (*types_of(5), "")


@pytest.mark.parametrize("names", [["model.ckpt-8750", "model.ckpt-10000"], ["model.ckpt-3", "model.ckpt-20"]])
def test_of_several_checkpoints_the_latest_is_taken(tmp_path: Path, names: list[str]) -> None:
    (tmp_path / "options.json").write_text("{}")
    for name in names:
        (tmp_path / f"{name}.index").touch()
    with foreign_model([tmp_path]) as model:
        assert model.checkpoint == tmp_path / names[1]


@pytest.mark.parametrize("key", ["cell_clip", "proj_clip"])
@pytest.mark.parametrize("clip", [0, 0.0, -1, -0.5])
def test_a_clip_of_zero_or_less_is_refused(key: str, clip: float) -> None:
    with pytest.raises(ModelError) as caught:
        config_from_options(options_with(**{key: clip}), "here/options.json")
    assert str(caught.value) == (
        f"here/options.json: lstm.{key} is {clip}: AllenNLP takes it for no clipping, bilm-tf would set everything "
        "to 0\n  fix: write null for no clipping"
    )


def test_a_round_trip_leaves_no_difference(files: ForeignFiles, tmp_path: Path) -> None:
    import_model([files.folder], tmp_path / "ours", language="en", replace=False)
    assert largest_difference(tmp_path / "ours") == 0
