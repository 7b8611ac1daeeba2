"""A tiny biLM's embedder and indexes of small texts. Nothing of `elmo_cli` is imported outside the fixtures."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from elmo_cli.bilm.bilm import BiLM
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.neighbors.index import Index, Work
    from elmo_cli.neighbors.index_info import IndexInfo

LINES = (
    "the kids play outside",
    "",
    "he wrote a play about Rome",
    "Play it again , Sam",
    "they play a play in a play",
    "do n't play , do n't",
    "the bank of the river",
)


@pytest.fixture(scope="session")
def embedder(tiny_bilm: "BiLM") -> "Embedder":
    import torch

    from elmo_cli.embedding.embedder import Embedder

    return Embedder(tiny_bilm, torch.device("cpu"))


@pytest.fixture(scope="session")
def info(tiny_bilm: "BiLM") -> "IndexInfo":
    """What an index of the tiny biLM's says of itself, without parts: layers 1 and 2 of tokenized text."""
    from elmo_cli.neighbors.corpus_text import Reading
    from elmo_cli.neighbors.index_info import IndexInfo, ModelMark

    return IndexInfo(ModelMark("tiny", "f" * 64), (1, 2), tiny_bilm.config.vector_dim, Reading("tokens"))


@pytest.fixture
def work(embedder: "Embedder", tmp_path: Path) -> Callable[..., "Work"]:
    """Return what makes an index of some lines, written to a file of this name."""
    from elmo_cli.neighbors.corpus_text import CorpusText, Reading
    from elmo_cli.neighbors.index import Work
    from elmo_cli.neighbors.selecting import TokenSelection

    def make(lines: Sequence[str] = LINES, name: str = "corpus.txt", **selection: Any) -> "Work":  # noqa: ANN401
        (tmp_path / name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        text = CorpusText([str(tmp_path / name)], Reading("tokens"))
        return Work(text, None, embedder, TokenSelection(**selection))

    return make


@pytest.fixture
def make_index(info: "IndexInfo", work: Callable[..., "Work"], tmp_path: Path) -> Callable[..., "Index"]:
    """Return what makes an index of some lines."""
    from elmo_cli.neighbors.index import create_index
    from elmo_cli.reporting import SilentReporter

    def make(lines: Sequence[str] = LINES, folder: str = "test.idx", **selection: Any) -> "Index":  # noqa: ANN401
        made = work(lines, **selection)
        return create_index(tmp_path / folder, info, made, force=False, reporter=SilentReporter())

    return make
