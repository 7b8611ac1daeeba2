"""The weighted sum of layers of Peters et al. (2018), equation (1), against its formulas written out."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from sentence_batches import make_batch

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.scalar_mix import EPSILON, ScalarMix
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary

# Sums of some dozen float32 numbers of size 1.
FLOAT32 = 1e-6
# What is divided by a deviation of 0.3 is rounded three times as coarsely; values reach 4.
NORMALISED = 1e-5

Array = NDArray[np.float64]


def random_layers(layers: int, tokens: int, dim: int) -> torch.Tensor:
    """Return layers of different means and sizes."""
    generator = torch.Generator().manual_seed(1)
    sizes = torch.arange(1.0, layers + 1).reshape(-1, 1, 1)
    return torch.randn(layers, tokens, dim, generator=generator) * sizes + 0.5 * sizes


def set_weights(mix: ScalarMix, w: list[float], gamma: float) -> ScalarMix:
    with torch.no_grad():
        mix.w.copy_(torch.tensor(w))
        mix.gamma.fill_(gamma)
    return mix


def softmax(w: list[float]) -> Array:
    exponentials = np.exp(np.array(w))
    return exponentials / exponentials.sum()


def test_the_sum_is_that_of_equation_1() -> None:
    layers = torch.tensor([[[1.0, 2.0]], [[3.0, 5.0]], [[-1.0, 0.0]]])
    mix = set_weights(ScalarMix(3), [0.0, float(np.log(2)), float(np.log(5))], 4.0)
    # s = 1/8, 2/8, 5/8
    expected = [[4 * (1 + 6 - 5) / 8, 4 * (2 + 10 + 0) / 8]]
    torch.testing.assert_close(mix(layers), torch.tensor(expected), rtol=0, atol=FLOAT32)
    torch.testing.assert_close(mix.s, torch.tensor([0.125, 0.25, 0.625]), rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("layer_count", [1, 2, 3, 5])
def test_a_new_mix_is_the_average(layer_count: int) -> None:
    layers = random_layers(layer_count, 4, 6)
    torch.testing.assert_close(ScalarMix(layer_count)(layers), layers.mean(dim=0), rtol=0, atol=FLOAT32)


def test_a_mix_is_learned() -> None:
    layers, mix = random_layers(3, 4, 6), ScalarMix(3)
    mix(layers).square().sum().backward()
    assert [name for name, _ in mix.named_parameters()] == ["w", "gamma"]
    assert mix.w.grad is not None
    assert mix.gamma.grad is not None
    assert mix.w.grad.abs().min() > 0
    assert mix.gamma.grad.abs() > 0


def test_fixed_parameters_of_allennlp_choose_a_layer() -> None:
    layers = random_layers(3, 4, 6)
    mix = set_weights(ScalarMix(3), [-9e10, 1.0, -9e10], 1.0)
    torch.testing.assert_close(mix(layers), layers[1], rtol=0, atol=0)


@pytest.mark.parametrize("epsilon", [EPSILON, 0.1])
def test_layer_norm_of_tokens_brings_each_vector_to_mean_0_and_variance_1(epsilon: float) -> None:
    layers = random_layers(3, 4, 6)
    x = layers.numpy().astype(np.float64)
    normal = np.empty_like(x)
    for layer in range(3):
        for token in range(4):
            vector = x[layer, token]
            mean = vector.sum() / 6
            normal[layer, token] = (vector - mean) / np.sqrt(((vector - mean) ** 2).sum() / 6 + epsilon)
    w, gamma = [0.3, -0.2, 0.9], 1.5
    expected = gamma * sum(s * h for s, h in zip(softmax(w), normal, strict=True))
    mix = set_weights(ScalarMix(3, layer_norm="token", epsilon=epsilon), w, gamma)
    np.testing.assert_allclose(mix(layers).detach().numpy(), expected, rtol=0, atol=NORMALISED)


def test_layer_norm_of_tokens_does_not_look_at_other_tokens() -> None:
    layers, mix = random_layers(3, 4, 6), ScalarMix(3, layer_norm="token")
    torch.testing.assert_close(mix(layers)[1:2], mix(layers[:, 1:2]), rtol=0, atol=FLOAT32)


@pytest.mark.parametrize("epsilon", [EPSILON, 0.1])
def test_layer_norm_of_batches_has_one_mean_and_variance_a_layer(epsilon: float) -> None:
    layers = random_layers(3, 4, 6)
    x = layers.numpy().astype(np.float64)
    normal = np.empty_like(x)
    for layer in range(3):
        mean = x[layer].sum() / (4 * 6)
        normal[layer] = (x[layer] - mean) / np.sqrt(((x[layer] - mean) ** 2).sum() / (4 * 6) + epsilon)
    w, gamma = [0.3, -0.2, 0.9], 1.5
    expected = gamma * sum(s * h for s, h in zip(softmax(w), normal, strict=True))
    mix = set_weights(ScalarMix(3, layer_norm="batch", epsilon=epsilon), w, gamma)
    np.testing.assert_allclose(mix(layers).detach().numpy(), expected, rtol=0, atol=NORMALISED)


@dataclass(frozen=True)
class Padded:
    """A batch as AllenNLP and bilm-tf hold it.

    Attributes:
        layers: [layers, sentences, longest, dim], zero past a sentence's end.
        mask: [sentences, longest], 1 where there is a token.
    """

    layers: Array
    mask: Array

    def kept(self, mixed: Array) -> Array:
        """Return the rows [tokens, dim] of the tokens alone."""
        return mixed[self.mask.astype(bool)]


def padded(layers: torch.Tensor, lengths: list[int]) -> Padded:
    """Spread the rows of sentences that lie end to end over a padded batch."""
    longest = max(lengths)
    batch = np.zeros((len(layers), len(lengths), longest, layers.shape[-1]))
    mask = np.zeros((len(lengths), longest))
    at = 0
    for sentence, length in enumerate(lengths):
        batch[:, sentence, :length] = layers[:, at : at + length].numpy()
        mask[sentence, :length] = 1
        at += length
    return Padded(batch, mask)


def mixed_by_formula(batch: Padded, w: list[float], gamma: float, epsilon: float) -> Array:
    """Return the mix [sentences, longest, dim] of AllenNLP and bilm-tf with layer norm."""
    m = batch.mask[:, :, None]
    count = m.sum() * batch.layers.shape[-1]
    total = np.zeros(batch.layers.shape[1:])
    for s, x in zip(softmax(w), batch.layers, strict=True):
        mean = (x * m).sum() / count
        variance = (((x * m - mean) * m) ** 2).sum() / count
        total += s * (x - mean) / np.sqrt(variance + epsilon)
    return gamma * total


SENTENCES = [["The", "ferry", "left", "at", "7:45"], [], ["one"], ["It", "was", "late"]]
WEIGHTS, GAMMA = [0.4, -0.3, 0.8], 1.3


def layers_of_batch(bilm: BiLM, *, keep_markers: bool) -> torch.Tensor:
    batch = make_batch(SENTENCES, Vocabulary(SPECIALS), bilm.config.char_cnn.max_characters)
    with torch.no_grad():
        type_vectors = bilm.token_encoder(batch.chars)
    return bilm.embed(type_vectors, batch.tokens, batch.lengths, keep_markers=keep_markers)


def without_markers(rows: Array) -> Array:
    """Drop the first and the last row of each sentence."""
    ends = np.cumsum([len(sentence) + 2 for sentence in SENTENCES])
    parts = np.split(rows, ends[:-1])
    return np.concatenate([part[1:-1] for part in parts])


def test_statistics_over_markers_too_give_the_mix_of_allennlp(tiny_bilm: BiLM) -> None:
    layers = layers_of_batch(tiny_bilm, keep_markers=True)
    mix = set_weights(ScalarMix(3, layer_norm="batch", epsilon=1e-13), WEIGHTS, GAMMA)
    found = without_markers(mix(layers).detach().numpy())
    batch = padded(layers, [len(sentence) + 2 for sentence in SENTENCES])
    expected = without_markers(batch.kept(mixed_by_formula(batch, WEIGHTS, GAMMA, 1e-13)))
    assert found.shape == (9, 16)
    np.testing.assert_allclose(found, expected, rtol=0, atol=NORMALISED)


def test_statistics_over_tokens_alone_give_the_mix_of_bilm_tf(tiny_bilm: BiLM) -> None:
    layers = layers_of_batch(tiny_bilm, keep_markers=False)
    mix = set_weights(ScalarMix(3, layer_norm="batch", epsilon=1e-12), WEIGHTS, GAMMA)
    batch = padded(layers, [len(sentence) for sentence in SENTENCES])
    expected = batch.kept(mixed_by_formula(batch, WEIGHTS, GAMMA, 1e-12))
    np.testing.assert_allclose(mix(layers).detach().numpy(), expected, rtol=0, atol=NORMALISED)


def test_the_two_tools_mix_differently(tiny_bilm: BiLM) -> None:
    """So that the two comparisons above would notice statistics over the wrong rows."""
    mix = ScalarMix(3, layer_norm="batch")
    with_markers, without = (
        mix(layers_of_batch(tiny_bilm, keep_markers=keep)).detach().numpy() for keep in (True, False)
    )
    assert np.abs(without_markers(with_markers) - without).max() > 1000 * NORMALISED


def test_kept_markers_surround_the_rows_of_each_sentence(tiny_bilm: BiLM) -> None:
    all_rows, inner = (layers_of_batch(tiny_bilm, keep_markers=keep).numpy() for keep in (True, False))
    for with_markers, without in zip(all_rows, inner, strict=True):
        np.testing.assert_array_equal(without_markers(with_markers), without)


@pytest.mark.parametrize("layer_norm", ["none", "token", "batch"])
def test_no_tokens_give_no_vectors(layer_norm: str) -> None:
    mix = ScalarMix(3, layer_norm=layer_norm)  # type: ignore[arg-type]
    assert mix(torch.zeros(3, 0, 6)).shape == (0, 6)


@pytest.mark.parametrize("count", [2, 4])
def test_a_wrong_number_of_layers_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"^there are {count} layers and 3 weights$"):
        ScalarMix(3)(torch.zeros(count, 4, 6))
