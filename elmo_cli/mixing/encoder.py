"""What gives layers to tokens: a biLM, or anything else that does."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import ModelError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.storage.fingerprints import fingerprint
from elmo_cli.storage.mix_file import EncoderIdentity
from elmo_cli.storage.model_dir import WEIGHTS_FILE, ModelConfig
from elmo_cli.storage.weights import load_bilm


@runtime_checkable  # the types of arguments are checked in tests
class Encoder(Protocol):
    """Computes the layers of tokens; its own weights never change."""

    @property
    def identity(self) -> EncoderIdentity:
        """By what a mix knows it again, its number of layers and their width among it."""

    def layers(self, sentences: Iterable[Sequence[str]]) -> Iterator[Float[Tensor, "layers tokens dim"]]:
        """Yield the layers of each sentence's tokens, in order, on the CPU; no more than a window is read ahead."""


class BilmEncoder:
    """A biLM as an `Encoder`: the char CNN's layer and one for each biLSTM layer.

    Args:
        identity: of the model.
        embedder: holds the biLM.
    """

    def __init__(self, identity: EncoderIdentity, embedder: Embedder) -> None:
        self.identity = identity
        self._embedder = embedder

    def layers(self, sentences: Iterable[Sequence[str]]) -> Iterator[Float[Tensor, "layers tokens dim"]]:
        """Yield the layers of each sentence's tokens."""
        every = LayerChoice(tuple(range(self.identity.layer_count)))
        for vectors in self._embedder.embed(sentences, every):
            yield vectors.transpose(0, 1)


def bilm_identity(folder: Path, config: ModelConfig, source: str) -> EncoderIdentity:
    """Return by what a mix knows a model: the sum of its shape and weights.

    Raises:
        ModelError: the weights cannot be read.
    """
    return EncoderIdentity(
        kind="bilm",
        name=folder.resolve().name,
        source=source,
        fingerprint=fingerprint(folder / WEIGHTS_FILE, config.bilm),
        layer_count=config.bilm.layer_count,
        dim=config.bilm.vector_dim,
    )


def load_bilm_encoder(
    folder: Path, config: ModelConfig, identity: EncoderIdentity, device: torch.device, reporter: Reporter
) -> BilmEncoder:
    """Return a model as an encoder.

    Raises:
        ModelError: its weights cannot be read.
    """
    return BilmEncoder(identity, Embedder(load_bilm(folder, config), device, reporter=reporter))


def check_identity(wanted: EncoderIdentity, found: EncoderIdentity, place: Place) -> None:
    """Refuse an encoder that a mix was not learned with.

    Args:
        wanted: of the mix.
        found: of the encoder at hand.
        place: of the mix.

    Raises:
        ModelError: with both names.
    """
    if (wanted.kind, wanted.fingerprint) == (found.kind, found.fingerprint):
        return
    option = "-m" if wanted.kind == "bilm" else "--encoder"
    fix = f"choose the one it was learned with: {option} {wanted.source}, or learn a mix for {found.name}"
    if (wanted.kind, wanted.name) == (found.kind, found.name):
        fix = f"{wanted.name} has changed since: learn the mix again"
    raise ModelError(f"the mix was learned with {wanted}, this is {found}", where=place, fix=fix)
