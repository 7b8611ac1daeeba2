"""`elmo embed` from sentences to a sink: vectors pooled if asked, heads and the table of tokens beside them."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from elmo_cli.embedding.pooling import pool_tokens
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.reporting import Reporter
from elmo_cli.storage.vectors import TokenTableWriter, VectorSink
from elmo_cli.text.reader import Sentence


@dataclass(frozen=True, slots=True)
class WhatToWrite:
    """The form of the vectors of a sentence.

    Attributes:
        choice: layers of each token.
        pool: ``none`` for one row a token, else one row a sentence.
    """

    choice: LayerChoice
    pool: str


@runtime_checkable  # the types of arguments are checked in tests
class SentenceEmbedder(Protocol):
    """Computes vectors of sentences, in order: `Embedder`, or `StatefulEmbedder` to reproduce older tools."""

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[Float[Tensor, "tokens ..."]]:
        """Yield the chosen layers of each sentence's tokens."""


def embed_into(
    sink: VectorSink,
    sentences: Iterable[Sentence],
    embedder: SentenceEmbedder,
    what: WhatToWrite,
    *,
    table: TokenTableWriter | None,
    reporter: Reporter,
) -> None:
    """Embed sentences and write them, in order and in constant memory.

    Args:
        sink: takes the vectors.
        sentences: as read.
        embedder: computes the vectors and counts what went through it.
        what: form of the vectors.
        table: takes a row for each row of vectors; None for no table.
        reporter: told about progress.
    """
    waiting: deque[Sentence] = deque()  # read ahead by the embedder, still without vectors

    def tokens() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence.tokens

    with reporter.progress("embedding", None, "tokens") as progress:
        done = 0
        for number, vectors in enumerate(embedder.embed(tokens(), what.choice), start=1):
            sentence = waiting.popleft()
            done += len(sentence.tokens)
            if what.pool != "none":
                vectors = pool_tokens(vectors, what.pool)
            sink.write(_head(number, sentence), vectors.numpy())
            if table is not None:
                _add_rows(table, number, sentence, what.pool)
            progress.update(done)


def _head(number: int, sentence: Sentence) -> dict[str, Any]:
    head: dict[str, Any] = {"id": number, "line": sentence.place.line}
    if sentence.text is not None:
        head["text"] = sentence.text
    head["tokens"] = sentence.tokens
    if sentence.spans is not None:
        head["offsets"] = sentence.spans
    return head


def _add_rows(table: TokenTableWriter, number: int, sentence: Sentence, pool: str) -> None:
    if pool == "none":
        table.write(number, sentence.tokens, sentence.positions)
    else:
        text = sentence.text if sentence.text is not None else " ".join(sentence.tokens)
        table.write_pooled(sentence.place.line or 1, number, text)
