"""State carried on: a text read in pieces, each from where the last one ended, equals the text read at once."""

import pytest
import torch
from sentence_batches import layers_of, make_batch
from twin import Options, Twin, random_weights

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.lstm import BiLSTMLayer
from elmo_cli.bilm.packing import pack
from elmo_cli.config import LSTMConfig
from elmo_cli.text.vocabulary import Vocabulary

# The same steps in batches of other shapes, whose float32 sums run in another order.
REORDERED_SUMS = 1e-6

NO_WORDS = Vocabulary(("<S>", "</S>", "<UNK>"))
CONFIGS = {
    "clipped": LSTMConfig(cell_dim=6, projection_dim=4, cell_clip=0.7, projection_clip=0.5),
    "no projection": LSTMConfig(cell_dim=4, projection_dim=4),
}


@pytest.fixture(params=CONFIGS)
def layer(request: pytest.FixtureRequest) -> BiLSTMLayer:
    made = BiLSTMLayer(CONFIGS[request.param])
    generator = torch.Generator().manual_seed(1)
    for parameter in made.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return made


@pytest.mark.parametrize("threads", [1, 2])
@torch.no_grad()
def test_two_pieces_from_carried_state_equal_the_whole(layer: BiLSTMLayer, threads: int) -> None:
    torch.set_num_threads(threads)
    x = torch.randn(2, 9, 4, generator=torch.Generator().manual_seed(2))
    state = layer.zero_state(1)
    pieces = [layer(x[:, part], pack([n]), state) for part, n in ((slice(0, 5), 5), (slice(5, 9), 4))]
    torch.testing.assert_close(torch.cat(pieces, 1), layer(x, pack([9])), rtol=0, atol=REORDERED_SUMS)


@torch.no_grad()
def test_a_zero_state_is_where_every_sentence_starts(layer: BiLSTMLayer) -> None:
    packing = pack([3, 5])
    x = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(2))
    torch.testing.assert_close(layer(x, packing, layer.zero_state(2)), layer(x, packing), rtol=0, atol=REORDERED_SUMS)


@torch.no_grad()
def test_a_sentence_that_has_ended_keeps_its_state(layer: BiLSTMLayer) -> None:
    x = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(2))
    packing = pack([5, 1])  # rows 0 and 1 are the first tokens of the two
    state, alone = layer.zero_state(2), layer.zero_state(1)
    output = layer(x, packing, state)
    layer(x[:, 1:2], pack([1]), alone)
    torch.testing.assert_close(state.hidden[:, 0], output[:, 5], rtol=0, atol=0)
    torch.testing.assert_close(state.hidden[:, 1:], alone.hidden, rtol=0, atol=REORDERED_SUMS)
    torch.testing.assert_close(state.cell[:, 1:], alone.cell, rtol=0, atol=REORDERED_SUMS)


def test_states_stay_in_the_order_of_the_sentences_as_given(tiny_bilm: BiLM) -> None:
    # The second batch is sorted in another order than the first.
    batches = [[["a"], ["the", "ship", "sails"]], [["the", "harbour", "."], ["b", "c"]]]
    max_characters = tiny_bilm.config.char_cnn.max_characters

    def embed(sentences: list[list[list[str]]]) -> list[torch.Tensor]:
        """Return the layers of the last batch, after all before it."""
        states = [layer.zero_state(len(sentences[0])) for layer in tiny_bilm.lstm_layers]
        for each in sentences:
            batch = make_batch(each, NO_WORDS, max_characters)
            with torch.no_grad():
                types = tiny_bilm.token_encoder(batch.chars)
            layers = tiny_bilm.embed(types, batch.tokens, batch.lengths, states)
        return list(layers.split([len(sentence) for sentence in sentences[-1]], dim=1))

    together = embed(batches)
    for row, found in enumerate(together):
        (expected,) = embed([[batch[row]] for batch in batches])
        torch.testing.assert_close(found, expected, rtol=0, atol=REORDERED_SUMS)
    assert not torch.allclose(together[0], layers_of(tiny_bilm, batches[1])[0], atol=0.01)


def test_markers_are_kept_where_that_is_asked_for(tiny_options: Options, tiny_bilm: BiLM) -> None:
    sentences = [["the", "ship"], [], ["a"]]
    batch = make_batch(sentences, NO_WORDS, tiny_bilm.config.char_cnn.max_characters)
    with torch.no_grad():
        types = tiny_bilm.token_encoder(batch.chars)
    found = tiny_bilm.embed(types, batch.tokens, batch.lengths, keep_markers=True).split(batch.lengths, dim=1)
    twin = Twin(tiny_options, random_weights(tiny_options, seed=1, scale=2.0))
    for layers, sentence in zip(found, sentences, strict=True):
        expected = torch.from_numpy(twin.marked_layers(sentence)).float()
        torch.testing.assert_close(layers, expected, rtol=0, atol=1e-5)  # float32 against float64
