"""The model that a command was asked to use, loaded bit by bit as it is needed."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from elmo_cli.commands.options import use_threads
from elmo_cli.config import Precision
from elmo_cli.errors import ModelError
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.neighbors.index import Index
    from elmo_cli.neighbors.index_info import ModelMark
    from elmo_cli.storage.model_dir import ModelConfig


@dataclass
class AskedModel:
    """A model by name or folder.

    Attributes:
        name: name or folder.
        named: whether it was asked for, or is the default.
        device: to compute on.
        threads: of arithmetic, if it was said.
        reporter: takes notes.
        precision: of the LSTMs' products.
    """

    name: str
    named: bool
    device: str
    threads: int | None
    reporter: Reporter
    precision: Precision = "float32"

    @cached_property
    def folder(self) -> Path:
        """The model's folder."""
        from elmo_cli.storage.registry import find_model

        return find_model(self.name)

    @cached_property
    def config(self) -> "ModelConfig":
        """The model's config."""
        from elmo_cli.storage.model_dir import read_config

        return read_config(self.folder)

    @cached_property
    def mark(self) -> "ModelMark":
        """Which model it is."""
        from elmo_cli.neighbors.index_info import mark_model

        return mark_model(self.folder, self.config)

    @cached_property
    def embedder(self) -> "Embedder":
        """What computes vectors; loads torch and the weights."""
        from elmo_cli.bilm.device import choose_device
        from elmo_cli.embedding.embedder import Embedder
        from elmo_cli.storage.weights import load_bilm

        use_threads(self.threads)
        device = choose_device(self.device)
        return Embedder(load_bilm(self.folder, self.config), device, self.precision, self.reporter)

    def fit(self, index: "Index") -> None:
        """Take the model of an index where none was named and it is found by name; refuse any other.

        Raises:
            ModelError: the index is of another model.
        """
        from elmo_cli.storage.registry import find_model

        if not self.named and self.mark.fingerprint != index.info.model.fingerprint:
            try:
                find_model(index.info.model.name)
            except ModelError:
                pass  # told below, with both names
            else:
                self.name = index.info.model.name
                for name in ("folder", "config", "mark"):
                    del self.__dict__[name]
        index.require_model(self.mark)
