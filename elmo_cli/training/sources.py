"""The texts of a training run. Needs no torch, so that a command can look for its files first."""

from dataclasses import dataclass

from elmo_cli.text.reader import TextOptions


@dataclass(frozen=True, slots=True)
class TextSources:
    """Which texts a run reads, and how.

    Attributes:
        corpora: files to train on, as `sources.find_sources` returns them.
        heldout: files to measure on; empty to hold out a part of the corpora.
        options: how all are read.
        general: files to measure on before and after fine-tuning, to see what is forgotten.
    """

    corpora: tuple[str, ...]
    heldout: tuple[str, ...]
    options: TextOptions
    general: tuple[str, ...] = ()
