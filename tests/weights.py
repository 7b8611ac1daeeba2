"""bilm-tf's options and weights, which the twin computes with, as a config and the parameters of the torch modules."""

import numpy as np
import torch
from torch import Tensor
from twin import BACKWARD, FORWARD, Options, Vector, Weights, cell_name

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import GATES, BiLMConfig, CharCNNConfig, LSTMConfig

# Blocks of columns in bilm-tf's W_0 and B: i, j, f, o.
_BILM_TF_GATES = ("input", "candidate", "forget", "output")


def config_from_options(options: Options) -> BiLMConfig:
    """Return the shape that an options.json describes; what is absent means what it means to bilm-tf."""
    char_cnn, lstm = options["char_cnn"], options["lstm"]
    return BiLMConfig(
        char_cnn=CharCNNConfig(
            embedding_dim=char_cnn["embedding"]["dim"],
            filters=tuple((width, count) for width, count in char_cnn["filters"]),
            activation=char_cnn["activation"],
            highway_layers=char_cnn.get("n_highway") or 0,
            max_characters=char_cnn["max_characters_per_token"],
        ),
        lstm=LSTMConfig(
            cell_dim=lstm["dim"],
            projection_dim=lstm["projection_dim"],
            layers=lstm.get("n_layers", 1),
            cell_clip=_clip(lstm, "cell_clip"),
            projection_clip=_clip(lstm, "proj_clip"),
            skip_connections=lstm.get("use_skip_connections", False),
        ),
    )


def _clip(lstm: Options, key: str) -> float | None:
    return None if lstm.get(key) is None else float(lstm[key])  # bilm-tf writes a whole number


def build_bilm(options: Options, weights: Weights, *, dtype: torch.dtype = torch.float32) -> BiLM:
    """Return a biLM with the twin's weights, ready for inference."""
    bilm = BiLM(config_from_options(options)).to(dtype).eval()
    bilm.load_state_dict(_bilm_state(bilm.config, weights))  # strict: every parameter is set, and nothing is left over
    return bilm


def build_language_model(options: Options, weights: Weights, *, dtype: torch.dtype = torch.float32) -> LanguageModel:
    """Return a biLM and its softmax with the twin's weights, ready for inference."""
    config = config_from_options(options)
    model = LanguageModel(config, len(weights["softmax/b"])).to(dtype).eval()
    model.bilm.load_state_dict(_bilm_state(config, weights))
    softmax = {"weight": torch.from_numpy(weights["softmax/W"]), "bias": torch.from_numpy(weights["softmax/b"])}
    model.softmax.load_state_dict(softmax)
    return model


def _bilm_state(config: BiLMConfig, weights: Weights) -> dict[str, Tensor]:
    arrays = {f"token_encoder.{name}": value for name, value in _encoder_arrays(config, weights).items()}
    for layer in range(config.lstm.layers):
        arrays.update({f"layers.{layer}.{name}": value for name, value in _lstm_arrays(config, weights, layer).items()})
    return {name: torch.from_numpy(np.ascontiguousarray(value)) for name, value in arrays.items()}


def _encoder_arrays(config: BiLMConfig, weights: Weights) -> dict[str, Vector]:
    arrays = {"embedding.weight": weights["char_embed"]}
    for k in range(len(config.char_cnn.filters)):
        # [1, width, E, n] -> [n, E, width]
        arrays[f"convolutions.{k}.weight"] = weights[f"CNN/W_cnn_{k}"][0].transpose(2, 1, 0)
        arrays[f"convolutions.{k}.bias"] = weights[f"CNN/b_cnn_{k}"]
    for k in range(config.char_cnn.highway_layers):
        for ours, theirs in (("gate", "carry"), ("transform", "transform")):
            arrays[f"highways.{k}.{ours}.weight"] = weights[f"CNN_high_{k}/W_{theirs}"].T
            arrays[f"highways.{k}.{ours}.bias"] = weights[f"CNN_high_{k}/b_{theirs}"]
    if "CNN_proj/W_proj" in weights:
        arrays["projection.weight"] = weights["CNN_proj/W_proj"].T
        arrays["projection.bias"] = weights["CNN_proj/b_proj"]
    return arrays


def _lstm_arrays(config: BiLMConfig, weights: Weights, layer: int) -> dict[str, Vector]:
    """Return both directions of a layer, stacked on axis 0."""
    names = [cell_name(direction, layer) for direction in (FORWARD, BACKWARD)]
    kernels = np.stack([_our_gates(weights[name + "W_0"]) for name in names])
    dim = config.lstm.projection_dim
    arrays = {
        "input_weight": kernels[:, :dim],
        "recurrent_weight": kernels[:, dim:],
        "bias": np.stack([_our_gates(weights[name + "B"]) for name in names]),
    }
    if names[0] + "W_P_0" in weights:
        arrays["projection"] = np.stack([weights[name + "W_P_0"] for name in names])
    return arrays


def _our_gates(columns: Vector) -> Vector:
    """Return the four blocks of the last axis in the order of `GATES`."""
    blocks = dict(zip(_BILM_TF_GATES, np.split(columns, 4, axis=-1), strict=True))
    return np.concatenate([blocks[gate] for gate in GATES], axis=-1)
