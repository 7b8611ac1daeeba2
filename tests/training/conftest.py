"""Small prepared corpora, and whole training runs over them in a folder of the test.

Nothing of `elmo_cli` is imported outside the fixtures, as in the conftest above.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from elmo_cli.text.corpus import Corpus

DATA = Path(__file__).parent.parent / "data"


@pytest.fixture(scope="session")
def corpus_of(tmp_path_factory: pytest.TempPathFactory) -> "Callable[..., Corpus]":
    """Prepare sentences of tokens: lines of text, each with a space between tokens."""
    from elmo_cli.reporting import SilentReporter
    from elmo_cli.text.prepare import prepare_corpus
    from elmo_cli.text.reader import TextOptions

    folder = tmp_path_factory.mktemp("corpora")

    def prepare(*lines: str) -> "Corpus":
        source = folder / "text.txt"
        source.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        options = TextOptions(mode="tokens")
        return prepare_corpus([str(source)], options, cache=folder / "cache", workers=1, reporter=SilentReporter())

    return prepare


@pytest.fixture(scope="session")
def twenty(corpus_of: "Callable[..., Corpus]") -> "Corpus":
    """Twenty sentences of distinct first words: 145 tokens."""
    return corpus_of(*(DATA / "twenty.txt").read_text(encoding="utf-8").splitlines())
