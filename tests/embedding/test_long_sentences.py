"""A sentence in pieces gives the vectors that it gives as a whole."""

from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding import embedder as embedder_module
from elmo_cli.embedding import long_sentences
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import OutputError

CPU = torch.device("cpu")
CHOICES = [LayerChoice(None), LayerChoice((0, 1, 2)), LayerChoice((2,))]


def pieces_of(bilm: BiLM, sentence: list[str], choice: LayerChoice, piece_tokens: int) -> torch.Tensor:
    marked = ["<S>", *sentence, "</S>"]
    look_up = Embedder(bilm, CPU)._look_up
    return long_sentences.embed_long(bilm, look_up, marked, choice, piece_tokens=piece_tokens)


@settings(max_examples=25)
@given(st.lists(st.sampled_from(["the", "ship", "sails", ".", ""]), min_size=1, max_size=40), st.integers(1, 45))
def test_pieces_of_any_length_give_the_whole(tiny_bilm: BiLM, sentence: list[str], piece_tokens: int) -> None:
    for choice in CHOICES:
        whole = next(iter(Embedder(tiny_bilm, CPU).embed([sentence], choice)))
        found = pieces_of(tiny_bilm, sentence, choice, piece_tokens)
        torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)


@pytest.mark.parametrize("threads", [1, 2])
def test_the_embedder_cuts_long_sentences_alone(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    torch.set_num_threads(threads)
    sentences = [["a"], [f"word{n % 7}" for n in range(300)], [], ["b", "c"]]
    whole = list(Embedder(tiny_bilm, CPU).embed(sentences, CHOICES[1]))
    monkeypatch.setattr(embedder_module, "_WINDOW_TOKENS", 50)
    monkeypatch.setattr(long_sentences, "_IN_MEMORY_BYTES", 1000)  # into a file
    found = list(Embedder(tiny_bilm, CPU).embed(sentences, CHOICES[1]))
    torch.testing.assert_close(found, whole, rtol=0, atol=1e-5)


def test_no_room_for_the_vectors_is_said(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(long_sentences, "_IN_MEMORY_BYTES", 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(OutputError, match="long sentence"):
        pieces_of(tiny_bilm, ["a", "b"], CHOICES[0], 2)
