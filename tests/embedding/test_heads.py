"""What the input says of a sentence stands beside its vectors, and never where this tool's own findings stand."""

import io
import json
from collections.abc import Iterable, Iterator, Sequence

import pytest
import torch

from elmo_cli.embedding.selection import LayerChoice, parse_layers
from elmo_cli.embedding.write import WhatToWrite, Written, embed_into
from elmo_cli.errors import Place
from elmo_cli.reporting import SilentProgress
from elmo_cli.storage.jsonl_vectors import JsonlWriter
from elmo_cli.text.sentence import RawJson, Sentence


class ZeroEmbedder:
    """Gives each token the vector [0, 0]."""

    def embed(self, sentences: Iterable[Sequence[str]], choice: LayerChoice) -> Iterator[torch.Tensor]:
        return (torch.zeros(len(tokens), 2) for tokens in sentences)


def written(sentence: Sentence, *, pool: str = "none", skip_punct: bool = False) -> str:
    stream = io.BytesIO()
    with JsonlWriter(stream, pooled=pool != "none") as sink:
        what = WhatToWrite(parse_layers("average", 3), pool, skip_punct)
        embed_into(sink, [sentence], ZeroEmbedder(), what, table=None, progress=SilentProgress(), written=Written())
    return stream.getvalue().decode()


def test_fields_follow_ours_in_their_order() -> None:
    sentence = Sentence(["a"], Place("f", 5), "a", [(0, 1)], ((0, 5, 0),), fields={"z": "é", "b": RawJson("[1.0]")})
    assert written(sentence) == (
        '{"id": 1, "line": 5, "text": "a", "tokens": ["a"], "offsets": [[0, 1]], "z": "é", "b": [1.0], '
        '"vectors": [[0,0]]}\n'
    )


@pytest.mark.parametrize("identity", ["x", RawJson("17"), RawJson('{"doc": 1e5}'), RawJson("null")])
def test_an_id_replaces_ours_where_it_stands(identity: str) -> None:
    line = written(Sentence([], Place("f", 1), places=[], fields={"a": "b", "id": identity}))
    text = identity if isinstance(identity, RawJson) else f'"{identity}"'
    assert line.startswith(f'{{"id": {text}, "line": 1, "tokens": [], "a": "b", "vectors"')


@pytest.mark.parametrize("pool", ["none", "mean"])
def test_keys_of_our_own_findings_are_left_out(pool: str) -> None:
    own = dict.fromkeys(["line", "tokens", "token_numbers", "offsets", "vectors", "vector"], "theirs")
    line = written(Sentence(["a", "."], Place("f", 1), places=[(1, None, None)] * 2, fields=own), pool=pool)
    assert "theirs" not in line
    key = "vectors" if pool == "none" else "vector"
    assert list(json.loads(line)) == ["id", "line", "tokens", key]


def test_fields_stay_where_punctuation_is_skipped() -> None:
    sentence = Sentence(["a", "."], Place("f", 1), places=[(1, None, None)] * 2, fields={"offsets": "x", "n": "y"})
    found = json.loads(written(sentence, skip_punct=True))
    assert (found["tokens"], found["n"], "offsets" in found) == (["a"], "y", False)
