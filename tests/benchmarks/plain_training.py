"""The usual way to compute a biLM's training loss, to measure the package's own way against: nothing is saved up.

The formulas of Peters et al. (2018) as bilm-tf and AllenNLP carry them out: sentences padded to the longest, the char
CNN for every token, a loop over time steps of which autograd keeps every intermediate value, and a softmax over all
rows at once. Reads the weights of a `LanguageModel`, and runs none of its code.
"""

import math
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from elmo_cli.bilm.highway import Highway
from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.bilm.softmax import Negatives
from elmo_cli.text.characters import PADDING

_FORGET_BIAS = 1.0  # bilm-tf's


def plain_losses(
    model: LanguageModel, batch: Batch, negatives: tuple[Negatives, Negatives] | None
) -> tuple[Tensor, Tensor]:
    """Return the loss in nats of each forward and each backward target, sentence by sentence."""
    lengths = torch.tensor(batch.lengths)
    positions = torch.arange(int(lengths.max()))
    mask = positions < lengths[:, None]  # [sentences, steps]
    # Each sentence backwards in its own part of a row, the padding still behind it.
    mirrored = torch.where(mask, lengths[:, None] - 1 - positions, positions)
    chars = torch.full((*mask.shape, batch.chars.shape[1]), PADDING)
    chars[mask] = batch.chars[batch.tokens]
    targets = torch.zeros(mask.shape, dtype=torch.int64)
    targets[mask] = batch.targets
    x = encode(model, chars.flatten(0, 1)).view(*mask.shape, -1)
    losses = []
    for direction in (0, 1):
        h, wanted = x, targets
        if direction == 1:
            h = x.gather(1, mirrored[:, :, None].expand_as(x))
            wanted = targets.gather(1, mirrored)
        for number in range(model.bilm.config.lstm.layers):
            output = run_layer(model, number, direction, h)
            h = output + h if number and model.bilm.config.lstm.skip_connections else output
        read, predicted = h[:, :-1][mask[:, 1:]], wanted[:, 1:][mask[:, 1:]]
        if negatives is None:
            logits = read @ model.softmax.weight.t() + model.softmax.bias
            losses.append(F.cross_entropy(logits, predicted, reduction="none"))
        else:
            losses.append(sampled_loss(model, read, predicted, negatives[direction]))
    return losses[0], losses[1]


def encode(model: LanguageModel, chars: Tensor) -> Tensor:
    """Return the char CNN's vector [tokens, dim] of each row of character ids [tokens, characters]."""
    encoder = model.bilm.token_encoder
    x = F.embedding(chars, encoder.embedding.weight).transpose(1, 2)
    activation = torch.relu if encoder.config.activation == "relu" else torch.tanh
    convolutions = cast(list[nn.Conv1d], list(encoder.convolutions))
    pooled = [activation(F.conv1d(x, c.weight, c.bias).amax(dim=2)) for c in convolutions]
    h = torch.cat(pooled, dim=1)
    for highway in cast(list[Highway], list(encoder.highways)):
        gate = torch.sigmoid(F.linear(h, highway.gate.weight, highway.gate.bias))
        transformed = torch.relu(F.linear(h, highway.transform.weight, highway.transform.bias))
        h = gate * transformed + (1 - gate) * h
    return h if encoder.projection is None else F.linear(h, encoder.projection.weight, encoder.projection.bias)


def run_layer(model: LanguageModel, number: int, direction: int, x: Tensor) -> Tensor:
    """Return the hidden states [sentences, steps, dim] of one direction of a layer, step by step."""
    config, layer = model.bilm.config.lstm, model.bilm.lstm_layers[number]
    weight = torch.cat((layer.input_weight[direction], layer.recurrent_weight[direction]))
    bias = layer.bias[direction]
    h = x.new_zeros(len(x), config.projection_dim)
    c = x.new_zeros(len(x), config.cell_dim)
    outputs = []
    for t in range(x.shape[1]):
        i, f, o, j = (torch.cat((x[:, t], h), dim=1) @ weight + bias).chunk(4, dim=1)
        c = torch.sigmoid(f + _FORGET_BIAS) * c + torch.sigmoid(i) * torch.tanh(j)
        if config.cell_clip is not None:
            c = c.clamp(-config.cell_clip, config.cell_clip)
        h = torch.sigmoid(o) * torch.tanh(c)
        if layer.projection is not None:
            h = h @ layer.projection[direction]
            if config.projection_clip is not None:
                h = h.clamp(-config.projection_clip, config.projection_clip)
        outputs.append(h)
    return torch.stack(outputs, dim=1)


def sampled_loss(model: LanguageModel, read: Tensor, targets: Tensor, negatives: Negatives) -> Tensor:
    """Return the loss of each target against the sampled types alone, each logit less the log of its expected count."""
    weight, bias = model.softmax.weight, model.softmax.bias

    def rows(ids: Tensor) -> tuple[Tensor, Tensor]:
        # In float64, as (k + 2) / (k + 1) of a rare type is close to 1.
        p = torch.log((ids.double() + 2) / (ids.double() + 1)) / math.log(negatives.vocabulary_size + 1)
        expected = 1 - (1 - p) ** negatives.tries
        return F.embedding(ids, weight, sparse=model.softmax.sparse), bias[ids] - expected.log().float()

    own_weight, own_bias = rows(targets)
    other_weight, other_bias = rows(negatives.ids)
    own = (read * own_weight).sum(dim=1) + own_bias
    others = read @ other_weight.t() + other_bias
    others = others.masked_fill(targets[:, None] == negatives.ids, -math.inf)
    return torch.logsumexp(torch.cat((own[:, None], others), dim=1), dim=1) - own
