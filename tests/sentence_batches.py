"""Sentences of text to what the torch modules read, without the package's own batching."""

from collections.abc import Sequence

import torch

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.language_model import Batch
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START, character_ids
from elmo_cli.text.vocabulary import Vocabulary


def make_batch(sentences: Sequence[Sequence[str]], vocabulary: Vocabulary, max_characters: int) -> Batch:
    """Lay sentences end to end, markers around each, in the order given."""
    marked = [[SENTENCE_START, *sentence, SENTENCE_END] for sentence in sentences]
    flat = [token for sentence in marked for token in sentence]
    types = list(dict.fromkeys(flat))
    row = {token: number for number, token in enumerate(types)}
    return Batch(
        chars=torch.from_numpy(character_ids(types, max_characters)),
        tokens=torch.tensor([row[token] for token in flat], dtype=torch.int64),
        targets=torch.from_numpy(vocabulary.ids(flat)),
        lengths=tuple(len(sentence) for sentence in marked),
    )


def layers_of(bilm: BiLM, sentences: Sequence[Sequence[str]]) -> list[torch.Tensor]:
    """Return the layers [L + 1, n, 2P] of each sentence, all sentences in one batch."""
    no_words = Vocabulary(("<S>", "</S>", "<UNK>"))
    batch = make_batch(sentences, no_words, bilm.config.char_cnn.max_characters)
    with torch.no_grad():
        type_vectors = bilm.token_encoder(batch.chars)
    layers = bilm.embed(type_vectors, batch.tokens, batch.lengths)
    return list(layers.split([len(sentence) for sentence in sentences], dim=1))
