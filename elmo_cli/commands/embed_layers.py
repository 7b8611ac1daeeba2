"""Which layers of which model `elmo embed` takes: as named, or by a learned mix."""

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from elmo_cli.commands.file_settings import origin_of
from elmo_cli.commands.options import is_named
from elmo_cli.embedding.selection import LayerChoice, parse_layers
from elmo_cli.errors import ConfigError, Place
from elmo_cli.storage.registry import find_model

if TYPE_CHECKING:
    from elmo_cli.storage.model_dir import ModelConfig


def choose_model_and_layers(
    ctx: typer.Context, model: str, layers: str, mix: Path | None
) -> "tuple[Path, ModelConfig, LayerChoice]":
    """Return the model's folder, its config and the choice of layers.

    Where a mix is given and no model is named, the model is the mix's own.

    Raises:
        ConfigError: ``--layers`` and ``--mix`` are both given, or the mix is one of static vectors.
        ModelError: there is no such model, or the mix was learned with another one.
    """
    from elmo_cli.storage.model_dir import read_config

    if mix is None:
        folder = find_model(model)
        config = read_config(folder)
        return folder, config, parse_layers(layers, config.bilm.layer_count)
    from elmo_cli.commands.mix_options import find_identity
    from elmo_cli.storage.mix_file import read_mix

    learned = read_mix(mix)
    if origin_of(ctx, "layers") == "COMMANDLINE":
        raise ConfigError("--layers and --mix both say what is taken of the layers", fix="give one of the two")
    if learned.encoder.kind != "bilm":
        raise ConfigError(
            f"the mix was learned with the vectors {learned.encoder}, not with a model",
            where=Place(str(mix)),
            fix="learn a mix with -m",
        )
    named = model if is_named(ctx, "model") else None
    found = find_identity(learned.encoder, named, None, Place(str(mix)))
    if found is None:
        raise ValueError("a mix of a model has a model")
    return found, read_config(found), LayerChoice(None, learned.weights)
