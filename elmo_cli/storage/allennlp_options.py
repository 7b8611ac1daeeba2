"""``options.json`` of bilm-tf and AllenNLP: read into a shape, and written from one."""

from typing import Any, Final

from elmo_cli.config import ACTIVATIONS, BiLMConfig, CharCNNConfig, LSTMConfig
from elmo_cli.errors import ConfigError, ModelError, Place

INFERENCE_CHARACTERS: Final = 262  # with the id that stands for "no token"; training code counts 261


def config_from_options(options: dict[str, Any], source: str) -> BiLMConfig:
    """Return the shape that options describe.

    Both counts of characters are taken, 261 (as training writes it) and 262 (as inference asks for): the weights are
    the same. A key that is absent means what it means in bilm-tf.

    Args:
        options: the parsed file.
        source: its name, for messages.

    Raises:
        ModelError: a key that is needed is missing, or a value is none that such a model can have.
    """
    place = Place(source)
    if "char_cnn" not in options:
        raise ModelError(
            "describes a model of whole-word ids, without a char_cnn, which elmo does not read", where=place
        )
    if options.get("bidirectional", True) is False:
        raise ModelError("describes a model of one direction, which is no ELMo", where=place)
    try:
        lstm, cnn = options["lstm"], options["char_cnn"]
        characters = cnn.get("n_characters", INFERENCE_CHARACTERS)
        if characters not in (INFERENCE_CHARACTERS - 1, INFERENCE_CHARACTERS):
            raise ModelError(f"char_cnn.n_characters is {characters}; byte characters number 261 or 262", where=place)
        for key, clip in (("cell_clip", lstm.get("cell_clip")), ("proj_clip", lstm.get("proj_clip"))):
            if clip is not None and clip <= 0:
                raise ModelError(
                    f"lstm.{key} is {clip}: AllenNLP takes it for no clipping, bilm-tf would set everything to 0",
                    where=place,
                    fix="write null for no clipping",
                )
        return BiLMConfig(
            char_cnn=CharCNNConfig(
                embedding_dim=int(cnn["embedding"]["dim"]),
                filters=tuple((int(width), int(count)) for width, count in cnn["filters"]),
                activation=_activation(cnn["activation"], place),
                highway_layers=int(cnn.get("n_highway") or 0),
                max_characters=int(cnn["max_characters_per_token"]),
            ),
            lstm=LSTMConfig(
                cell_dim=int(lstm["dim"]),
                projection_dim=int(lstm["projection_dim"]),
                layers=int(lstm.get("n_layers", 1)),
                cell_clip=_float_or_none(lstm.get("cell_clip")),
                projection_clip=_float_or_none(lstm.get("proj_clip")),
                skip_connections=bool(lstm.get("use_skip_connections", False)),
            ),
        )
    except KeyError as error:
        raise ModelError(f"has no key {error}, so it is not the options.json of an ELMo model", where=place) from error
    except (TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelError(f"is not the options.json of an ELMo model: {error}", where=place) from error
    except ConfigError as error:
        raise ModelError(error.message, where=place) from error


def options_from_config(config: BiLMConfig) -> dict[str, Any]:
    """Return options that bilm-tf and AllenNLP read."""
    cnn, lstm = config.char_cnn, config.lstm
    return {
        "lstm": {
            "use_skip_connections": lstm.skip_connections,
            "projection_dim": lstm.projection_dim,
            "cell_clip": lstm.cell_clip,
            "proj_clip": lstm.projection_clip,
            "dim": lstm.cell_dim,
            "n_layers": lstm.layers,
        },
        "char_cnn": {
            "activation": cnn.activation,
            "filters": [list(pair) for pair in cnn.filters],
            "n_highway": cnn.highway_layers,
            "embedding": {"dim": cnn.embedding_dim},
            "n_characters": INFERENCE_CHARACTERS,
            "max_characters_per_token": cnn.max_characters,
        },
    }


def _activation(value: object, place: Place) -> str:
    if value not in ACTIVATIONS:
        raise ModelError(f"char_cnn.activation is {value!r}, not relu or tanh", where=place)
    return str(value)


def _float_or_none(value: float | None) -> float | None:
    return None if value is None else float(value)
