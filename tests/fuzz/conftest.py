"""A model, a run and a mix that are sound, for the fuzzers to damage.

Nothing of `elmo_cli` is imported outside the fixtures, as in the conftest above.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from command_line import Answer

TYPES = ("<S>", "</S>", "<UNK>", "the", "A", "boat", "left")


@pytest.fixture(scope="session")
def sound_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model with a softmax, whose weights' file carries no sum, so that it may be changed."""
    from safetensors.torch import load_file, save_file
    from tiny_options import TINY_OPTIONS
    from twin import random_weights
    from weights import build_language_model

    from elmo_cli.storage.model_dir import ModelConfig, write_config, write_vocabulary
    from elmo_cli.storage.weights import write_weights
    from elmo_cli.text.vocabulary import Vocabulary

    folder = tmp_path_factory.mktemp("sound") / "model"
    folder.mkdir()
    weights = random_weights(TINY_OPTIONS, seed=1, vocabulary_size=len(TYPES))
    model = build_language_model(TINY_OPTIONS, weights)
    write_weights(folder, model, "float32")
    save_file(load_file(folder / "model.safetensors"), folder / "model.safetensors", metadata={"format": "pt"})
    write_config(folder, ModelConfig(model.bilm.config, {"name": "spacy", "language": "en"}, len(TYPES), {"seed": 1}))
    write_vocabulary(folder, Vocabulary(TYPES))
    return folder


@pytest.fixture
def model(sound_model: Path, tmp_path: Path) -> Path:
    """A copy of the sound model, without the sums of its files."""
    import json

    folder = tmp_path / "model"
    shutil.copytree(sound_model, folder)
    config = json.loads((folder / "config.json").read_text())
    config.pop("sums", None)
    (folder / "config.json").write_text(json.dumps(config))
    return folder


@pytest.fixture(scope="session")
def elmo() -> Callable[..., Answer]:
    """Run a command in this process."""
    from typer.testing import CliRunner

    from elmo_cli.commands.app import app

    def run(*arguments: object, stdin: bytes | None = None) -> Answer:
        result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout_bytes, result.stderr)

    return run
