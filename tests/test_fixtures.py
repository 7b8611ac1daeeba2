"""Weights and vectors published with the first ELMo tools: whether ours are the same numbers.

They belong to others, so they are no part of this project; where they lie is said by $ELMO_FIXTURES, or they lie in
``shared/fixtures`` beside the project. There they stand in folders named ``allennlp``, ``bilm-tf``, ``fast-elmo`` and
``allennlp-multilingual``, copies of the test fixtures of those projects.
"""

import json
import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import h5py
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.round_trip import largest_difference
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.embedding.stateful import StatefulEmbedder
from elmo_cli.storage.convert import export_model, import_model
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.weights import load_bilm

# Read now: for the tests themselves all variables of ours are taken away.
FIXTURES = Path(os.environ.get("ELMO_FIXTURES") or Path(__file__).parents[2] / "shared" / "fixtures")

pytestmark = pytest.mark.skipif(
    not FIXTURES.is_dir(), reason="the published fixtures are not here; name their folder in ELMO_FIXTURES"
)

# The stored numbers are float32 of another order of summation: exact arithmetic differs from them by 1e-6.
AS_PUBLISHED = 5e-6

LANGUAGES = ("es", "fr", "it")
ALLENNLP, BILM_TF = Path("allennlp"), Path("bilm-tf", "model")
WEIGHTS = {
    "allennlp": (ALLENNLP / "options.json", ALLENNLP / "lm_weights.hdf5"),
    "bilm-tf": (BILM_TF / "options.json", BILM_TF / "lm_weights.hdf5"),
    # Options with 261 characters; the weights are AllenNLP's.
    "fast-elmo": (Path("fast-elmo", "options.json"), ALLENNLP / "lm_weights.hdf5"),
    **{
        code: (Path("allennlp-multilingual", code, "options.json"), Path("allennlp-multilingual", code, "weights.hdf5"))
        for code in LANGUAGES
    },
}
Models = Callable[[str], Path]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Models:
    """Convert published weights, each once."""
    root = tmp_path_factory.mktemp("published")

    def convert(name: str) -> Path:
        if not (root / name).exists():
            sources = [FIXTURES / part for part in WEIGHTS[name]]
            import_model(sources, root / name, language="en", replace=False)
        return root / name

    return convert


def token_layer(model: Path, types: list[str]) -> NDArray[np.float32]:
    """Return the forward half of layer 0 of each word type."""
    config = read_config(model)
    embedder = Embedder(load_bilm(model, config), torch.device("cpu"))
    (vectors,) = embedder.embed([types], LayerChoice((0,)))
    forward, backward = vectors.numpy().reshape(len(types), 2, -1).transpose(1, 0, 2)
    np.testing.assert_array_equal(forward, backward)
    return forward


@pytest.mark.parametrize(
    ("name", "sentences_file"),
    [("allennlp", ALLENNLP / "sentences.json"), ("bilm-tf", BILM_TF / "lm_embeddings_sentences.json")],
)
def test_top_layers_with_carried_state_are_those_published(models: Models, name: str, sentences_file: Path) -> None:
    """Batch i holds sentence i of each of the three lists."""
    folder = models(name)
    lists = json.loads((FIXTURES / sentences_file).read_text(encoding="utf-8"))
    batches = [[sentence.split() for sentence in batch] for batch in zip(*lists, strict=True)]
    config = read_config(folder)
    embedder = StatefulEmbedder(load_bilm(folder, config), torch.device("cpu"), batch_size=3)
    found = list(embedder.embed(chain.from_iterable(batches), LayerChoice((2,))))
    assert len(found) == 30
    for row in range(3):
        with h5py.File((FIXTURES / sentences_file).parent / f"lm_embeddings_{row}.hdf5") as stored:
            for batch in range(10):
                expected = np.concatenate(stored[str(batch)], axis=-1)  # [forward, backward] side by side
                np.testing.assert_allclose(found[3 * batch + row].numpy(), expected, rtol=0, atol=AS_PUBLISHED)


@pytest.mark.parametrize("name", ["allennlp", "bilm-tf"])
def test_a_whole_folder_is_converted_in_spite_of_the_vectors_in_it(models: Models, tmp_path: Path, name: str) -> None:
    source = FIXTURES / WEIGHTS[name][0].parent
    import_model([source], tmp_path / "ours", language="en", replace=False)
    weights = [folder / "model.safetensors" for folder in (tmp_path / "ours", models(name))]
    assert weights[0].read_bytes() == weights[1].read_bytes()


def test_the_token_layer_of_a_vocabulary_is_that_published(models: Models) -> None:
    types = (FIXTURES / ALLENNLP / "vocab_test.txt").read_text(encoding="utf-8").splitlines()
    with h5py.File(FIXTURES / ALLENNLP / "elmo_token_embeddings.hdf5") as stored:
        expected = stored["embedding"][()]
    assert expected.shape == (458, 16)
    np.testing.assert_allclose(token_layer(models("allennlp"), types), expected, rtol=0, atol=AS_PUBLISHED)


def test_the_word_vectors_of_fast_elmo_are_those_published(models: Models) -> None:
    lines = (FIXTURES / "fast-elmo" / "lm_embd.txt").read_text(encoding="utf-8").splitlines()
    types = [line.split(" ")[0] for line in lines]
    assert types == (FIXTURES / "fast-elmo" / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert types[:3] == ["<S>", "</S>", "<UNK>"]
    expected = np.array([line.split(" ")[1:] for line in lines], dtype=np.float64)
    np.testing.assert_allclose(token_layer(models("fast-elmo"), types), expected, rtol=0, atol=AS_PUBLISHED)


def datasets(path: Path) -> dict[str, tuple[str, tuple[int, ...], bytes]]:
    """Return type, shape and bytes of every dataset of a file."""
    found = {}

    def note(name: str, node: h5py.Dataset | h5py.Group) -> None:
        if isinstance(node, h5py.Dataset):
            found[name] = (node.dtype.str, node.shape, node[()].tobytes())

    with h5py.File(path) as file:
        file.visititems(note)
    return found


@pytest.mark.parametrize("name", WEIGHTS)
def test_published_weights_come_back_bit_by_bit(models: Models, tmp_path: Path, name: str) -> None:
    export_model(models(name), tmp_path / "back", replace=False)
    back, stored = (datasets(path) for path in (tmp_path / "back" / "weights.hdf5", FIXTURES / WEIGHTS[name][1]))
    assert back == stored


@pytest.mark.parametrize("code", LANGUAGES)
def test_multilingual_models_survive_the_round_trip(models: Models, code: str) -> None:
    shape = read_config(models(code)).bilm
    assert (shape.layer_count, shape.vector_dim, shape.lstm.cell_dim, shape.char_cnn.highway_layers) == (3, 32, 64, 2)
    assert largest_difference(models(code)) == 0
