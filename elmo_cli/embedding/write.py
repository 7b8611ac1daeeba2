"""`elmo embed` from sentences to a sink: vectors pooled if asked, what the rows are, and the table of tokens."""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from jaxtyping import Float
from torch import Tensor

from elmo_cli.embedding.pooling import pool_tokens, take_tokens
from elmo_cli.embedding.selection import LayerChoice, kept_tokens, pooled_shape
from elmo_cli.reporting import Progress
from elmo_cli.storage.token_table import TokenTableWriter
from elmo_cli.storage.vectors import SentenceRows, VectorSink
from elmo_cli.text.sentence import Sentence

# Keys that say what this tool has found; the input's own of these names are left out, as they would be taken for ours.
OWN_KEYS = frozenset({"line", "tokens", "token_numbers", "offsets", "vectors", "vector"})


@dataclass(frozen=True, slots=True)
class WhatToWrite:
    """The form of the vectors of a sentence.

    Attributes:
        choice: layers of each token.
        pool: ``none`` for one row a token, else one row a sentence.
        skip_punct: leave out tokens without a letter or digit, from the rows or from the pool. The biLM reads them.
    """

    choice: LayerChoice
    pool: str
    skip_punct: bool = False

    def row_shape(self, vector_dim: int) -> tuple[int, ...]:
        """Return the shape of a row: (dim,), or (layers, dim) for several layers."""
        return pooled_shape(self.choice.row_shape(vector_dim), self.pool)


@runtime_checkable  # the types of arguments are checked in tests
class SentenceEmbedder(Protocol):
    """Computes vectors of sentences, in order: `Embedder`, or `StatefulEmbedder` to reproduce older tools."""

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[Float[Tensor, "tokens ..."]]:
        """Yield the chosen layers of each sentence's tokens."""


@dataclass(slots=True)
class Written:
    """What has been written so far, to one output or to several.

    Attributes:
        rows: of vectors.
        sentences: also those of no tokens.
        tokens: also those without a row.
    """

    rows: int = 0
    sentences: int = 0
    tokens: int = 0


def embed_into(
    sink: VectorSink,
    sentences: Iterable[Sentence],
    embedder: SentenceEmbedder,
    what: WhatToWrite,
    *,
    table: TokenTableWriter | None,
    progress: Progress,
    written: Written,
    status: str = "",
) -> None:
    """Embed sentences and write them, in order and in constant memory.

    Args:
        sink: takes the vectors.
        sentences: as read; counted from 1.
        embedder: computes the vectors.
        what: form of the vectors.
        table: takes a row for each row of vectors; None for no table.
        progress: told the number of tokens written.
        written: added to.
        status: told with the progress.
    """
    waiting: deque[Sentence] = deque()  # read ahead by the embedder, still without vectors

    def tokens() -> Iterator[list[str]]:
        for sentence in sentences:
            waiting.append(sentence)
            yield sentence.tokens

    for number, vectors in enumerate(embedder.embed(tokens(), what.choice), start=1):
        sentence = waiting.popleft()
        kept = kept_tokens(sentence.tokens, skip_punct=what.skip_punct)
        vectors = take_tokens(vectors, kept)
        if what.pool != "none":
            vectors = pool_tokens(vectors, what.pool)
        rows = _rows(number, sentence, kept)
        head = _head(number, sentence)
        if what.skip_punct:
            head |= _kept_head(head, rows)
        sink.write(head, vectors.numpy(), rows)
        if table is not None:
            table.write(rows)
        written.rows += len(kept) if what.pool == "none" else 1
        written.sentences += 1
        written.tokens += len(sentence.tokens)
        progress.update(written.tokens, status)


def _head(number: int, sentence: Sentence) -> dict[str, Any]:
    head: dict[str, Any] = {"id": number, "line": sentence.place.line}
    if sentence.text is not None:
        head["text"] = sentence.text
    head["tokens"] = sentence.tokens
    if sentence.spans is not None:
        head["offsets"] = sentence.spans
    # Last and in their own order; only an id replaces ours, where it stands.
    return head | {name: value for name, value in sentence.fields.items() if name not in OWN_KEYS}


def _kept_head(head: dict[str, Any], rows: SentenceRows) -> dict[str, Any]:
    """Return the fields that say which tokens are left, so that tokens and vectors of a line stay in step."""
    kept: dict[str, Any] = {"tokens": list(rows.tokens), "token_numbers": list(rows.numbers)}
    if "offsets" in head:
        kept["offsets"] = [head["offsets"][number - 1] for number in rows.numbers]
    return kept


def _rows(number: int, sentence: Sentence, kept: Sequence[int]) -> SentenceRows:
    places = sentence.positions
    return SentenceRows(
        sentence=number,
        line=sentence.place.line or 1,
        text=sentence.text if sentence.text is not None else " ".join(sentence.tokens),
        tokens=[sentence.tokens[token] for token in kept],
        numbers=[token + 1 for token in kept],
        places=[places[token] for token in kept],
    )
