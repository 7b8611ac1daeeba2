"""A sentence too long for one batch: in pieces, with the LSTMs' state carried exactly from piece to piece.

The forward stack reads the sentence from its start, the backward stack from its end, and neither needs the other. So
piece k of both is as long as it is in any sentence, but lies at opposite ends; each half of a vector is written where
its token stands as soon as it is known. The result is that of the whole sentence at once, and only the vectors
themselves grow with it: where they are large they lie in a temporary file that is mapped into memory.
"""

import contextlib
import mmap
import tempfile
from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.bilm import MARKERS_A_SENTENCE, BiLM
from elmo_cli.bilm.packing import pack
from elmo_cli.embedding.pooling import choose_layers
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import OutputError

LookUp = Callable[[Sequence[str]], Tensor]  # tokens to their encoder's vectors [tokens, dim]

_PIECE_TOKENS = 4096
_IN_MEMORY_BYTES = 1 << 26  # of a sentence's vectors; more go to a file
_CHUNK = 1 << 24  # bytes


@torch.inference_mode()
def embed_long(
    bilm: BiLM,
    look_up: LookUp,
    marked: Sequence[str],
    choice: LayerChoice,
    *,
    piece_tokens: int = _PIECE_TOKENS,
) -> Float[Tensor, "tokens ..."]:
    """Return the chosen layers of the tokens of one sentence, without those of its markers, on the CPU.

    Args:
        bilm: in inference mode.
        look_up: the token encoder.
        marked: the tokens between their two markers.
        choice: of layers.
        piece_tokens: tokens that go through the LSTMs at once.

    Raises:
        OutputError: there is no room for the temporary file.
    """
    count, dim = len(marked), bilm.config.lstm.projection_dim
    if choice.mix is not None and choice.mix.layer_norm:
        # The mean of a layer's vector needs both of its halves.
        every = LayerChoice(tuple(range(bilm.config.layer_count)))
        return _mixed(embed_long(bilm, look_up, marked, every, piece_tokens=piece_tokens), choice, piece_tokens)
    vectors = _room(count - MARKERS_A_SENTENCE, *choice.row_shape(2 * dim))
    states = [layer.zero_state(1) for layer in bilm.lstm_layers]
    for start in range(0, count, piece_tokens):
        end = min(start + piece_tokens, count)
        x = torch.stack((look_up(marked[start:end]), look_up(marked[count - end : count - start]).flip(0)))
        packing = pack([end - start]).to(x.device)
        layers = torch.stack((x, *bilm.run_stacks(x, packing, states)), dim=1)
        forward, backward = (choose_layers(direction, choice).cpu() for direction in layers)
        _fill(vectors[..., :dim], forward, start)
        _fill(vectors[..., dim:], backward.flip(0), count - end)
    return vectors


def _mixed(
    layers: Float[Tensor, "tokens layers dim"], choice: LayerChoice, piece_tokens: int
) -> Float[Tensor, "tokens dim"]:
    vectors = _room(len(layers), layers.shape[-1])
    for start in range(0, len(layers), piece_tokens):
        piece = layers[start : start + piece_tokens].transpose(0, 1)
        vectors[start : start + piece.shape[1]] = choose_layers(piece, choice)
    return vectors


def _fill(half: Float[Tensor, "tokens ..."], rows: Float[Tensor, "marked ..."], first: int) -> None:
    """Write the rows of marked positions ``first`` and following; the markers' have no place in the result."""
    start, end = max(first - 1, 0), min(first - 1 + len(rows), len(half))
    half[start:end] = rows[start - (first - 1) : end - (first - 1)]


def _room(*shape: int) -> Float[Tensor, "..."]:
    """Return an uninitialised tensor of float32, in a file of its own if it is large."""
    size = int(np.prod(shape)) * 4
    if size <= _IN_MEMORY_BYTES:
        return torch.empty(shape)
    try:
        with tempfile.TemporaryFile(prefix="elmo-") as file:
            # Written out, not just stretched: in a file with holes a full disk would kill the process later.
            for written in range(0, size, _CHUNK):
                file.write(bytes(min(_CHUNK, size - written)))
            file.flush()
            mapped = mmap.mmap(file.fileno(), size)
    except OSError as error:
        raise OutputError(
            f"cannot keep the vectors of a long sentence in a temporary file: {error.strerror}",
            fix="set TMPDIR to a folder with more room",
        ) from error
    with contextlib.suppress(AttributeError, OSError):  # where the system has no such advice
        mapped.madvise(mmap.MADV_SEQUENTIAL)
    return torch.frombuffer(mapped, dtype=torch.float32).view(shape)
