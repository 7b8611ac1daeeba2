"""Losses of tokens: the float64 twin's, whatever stands in the same batch, in order and in bounded memory."""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
import torch
from hard_sentences import SENTENCES
from twin import Twin

from elmo_cli.bilm import language_model, softmax
from elmo_cli.errors import ModelError
from elmo_cli.evaluation.losses import Predictor, SentenceLosses
from elmo_cli.evaluation.perplexity import text_perplexity, total_perplexity
from elmo_cli.reporting import SilentProgress

# Rounding to float32 is 6e-8 of a value; sums of some dozen products over 40 steps take it to 2e-6, and on processors
# that add in another order, with these wild weights, to 3.3e-6 of the value.
FLOAT32 = 1e-5


def types_of(predictor: Predictor) -> list[str]:
    return list(predictor.vocabulary.types)


def with_batches_of(predictor: Predictor, batch_tokens: int) -> Predictor:
    return Predictor(predictor.model, predictor.vocabulary, predictor.device, batch_tokens=batch_tokens)


def losses_of(predictor: Predictor, sentences: list[list[str]]) -> list[SentenceLosses]:
    return list(predictor.losses(sentences))


def test_each_token_has_the_loss_that_the_twin_gives_it(predictor: Predictor, twin: Twin) -> None:
    found = losses_of(predictor, SENTENCES)
    assert len(found) == len(SENTENCES)
    for sentence, losses in zip(SENTENCES, found, strict=True):
        if sentence:
            forward, backward = twin.log_probabilities(sentence, types_of(predictor))
            np.testing.assert_allclose(losses.forward, np.negative(forward), atol=FLOAT32, rtol=FLOAT32)
            np.testing.assert_allclose(losses.backward, np.negative(backward), atol=FLOAT32, rtol=FLOAT32)


def test_a_sentence_of_no_tokens_predicts_nothing(predictor: Predictor) -> None:
    (losses,) = losses_of(predictor, [[]])
    assert (len(losses.forward), len(losses.backward), len(losses.known)) == (0, 0, 0)


def test_known_are_the_tokens_of_the_vocabulary(predictor: Predictor) -> None:
    (losses,) = losses_of(predictor, [["the", "unheard", "<UNK>", "née", "The"]])
    assert losses.known.tolist() == [True, False, False, True, False]


@pytest.mark.parametrize("batch_tokens", [1, 7, 4096])
def test_batches_do_not_change_a_loss(predictor: Predictor, batch_tokens: int) -> None:
    other = losses_of(with_batches_of(predictor, batch_tokens), SENTENCES)
    for losses, expected in zip(other, losses_of(predictor, SENTENCES), strict=True):
        np.testing.assert_allclose(losses.forward, expected.forward, atol=FLOAT32)
        np.testing.assert_allclose(losses.backward, expected.backward, atol=FLOAT32)


def test_no_more_than_a_window_is_read_ahead(predictor: Predictor) -> None:
    read = 0

    def endless() -> Iterator[list[str]]:
        nonlocal read
        while True:
            read += 1
            yield ["the", "ferry"]

    assert len(list(islice(predictor.losses(endless()), 3))) == 3
    assert read == 16  # four batches of 16 tokens, two marks a sentence


def test_word_types_go_through_the_encoder_in_parts(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [[f"word{number}" for number in range(40)]]
    (expected,) = losses_of(predictor, sentences)
    sizes: list[int] = []
    predictor.model.bilm.token_encoder.register_forward_hook(lambda _, given, __: sizes.append(len(given[0])))
    monkeypatch.setattr(language_model, "_TYPES_AT_ONCE", 16)
    (losses,) = losses_of(predictor, sentences)
    assert sizes == [16, 16, 10]
    np.testing.assert_allclose(losses.forward, expected.forward, atol=FLOAT32)


def test_all_blocks_of_logits_share_one_piece_of_memory(predictor: Predictor, monkeypatch: pytest.MonkeyPatch) -> None:
    """Made anew for each block, they left holes between what stays: gigabytes for a line of 100,000 tokens."""
    (expected,) = losses_of(predictor, [["the", "ferry", "left"] * 4])
    monkeypatch.setattr(softmax, "_BLOCK_LOGITS", 3 * len(predictor.vocabulary))
    outputs: list[torch.Tensor] = []
    addmm = torch.addmm

    def watched(*arguments: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        if out is not None:
            outputs.append(out)
        return addmm(*arguments) if out is None else addmm(*arguments, out=out)

    monkeypatch.setattr(torch, "addmm", watched)
    (losses,) = losses_of(predictor, [["the", "ferry", "left"] * 4])
    of_vocabulary = [output for output in outputs if output.shape[1] == len(predictor.vocabulary)]
    assert [len(output) for output in of_vocabulary] == [3, 3, 3, 3, 1] * 2
    assert len({output.data_ptr() for output in of_vocabulary}) <= 2  # one a direction
    np.testing.assert_allclose(losses.forward, expected.forward, atol=FLOAT32)


def test_a_loss_that_is_no_number_is_an_error(predictor: Predictor) -> None:
    broken = Predictor(predictor.model, predictor.vocabulary, predictor.device)
    bias = predictor.model.softmax.bias
    before = bias.detach().clone()
    with torch.no_grad():
        bias[3] = float("nan")
    try:
        with pytest.raises(ModelError, match="a probability that is no number"):
            losses_of(broken, [["the"]])
    finally:
        with torch.no_grad():
            bias.copy_(before)


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_the_perplexity_of_a_text_is_the_twins(predictor: Predictor, twin: Twin, batch_tokens: int) -> None:
    found = text_perplexity(with_batches_of(predictor, batch_tokens), SENTENCES, SilentProgress())
    full = [sentence for sentence in SENTENCES if sentence]
    expected = twin.perplexities(full, types_of(predictor))
    assert (found.forward, found.backward, found.both) == pytest.approx(expected, rel=1e-5)
    assert (found.sentences, found.tokens) == (len(full), sum(map(len, full)))


def test_bits_a_byte_count_the_tokens_with_a_space_or_line_end_behind_each(predictor: Predictor, twin: Twin) -> None:
    sentences = [["née", "the", "."], [], ["left"]]
    written = "née the .\n" + "left\n"
    nats = (
        -sum(sum(map(sum, twin.log_probabilities(tokens, types_of(predictor)))) for tokens in sentences if tokens) / 2
    )
    found = text_perplexity(predictor, sentences, SilentProgress())
    assert found.bits_per_byte == pytest.approx(nats / np.log(2) / len(written.encode()), rel=1e-5)


def test_the_total_of_parts_is_the_perplexity_of_the_whole(predictor: Predictor) -> None:
    parts = [text_perplexity(predictor, part, SilentProgress()) for part in (SENTENCES[:3], SENTENCES[3:], [])]
    whole = text_perplexity(predictor, SENTENCES, SilentProgress())
    total = total_perplexity(parts)
    assert total.to_json() == pytest.approx(whole.to_json(), rel=1e-6)
    assert (total.sentences, total.text_bytes) == (whole.sentences, whole.text_bytes)
