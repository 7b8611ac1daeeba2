"""The softmax, whole and sampled, against sums written out by hand, and the sampler against its distribution."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from elmo_cli.bilm import softmax as softmax_module
from elmo_cli.bilm.softmax import Negatives, Softmax, draw_negatives

VOCABULARY_SIZE = 40
DIM = 5
# Float32 sums of a few dozen terms of size 1.
FLOAT32 = 1e-5
# Expected counts are returned as float32, whatever is computed with them.
EXPECTED_COUNTS_IN_FLOAT32 = 1e-6


def make_softmax(*, sparse: bool = False, dtype: torch.dtype = torch.float64) -> Softmax:
    softmax = Softmax(VOCABULARY_SIZE, DIM, sparse=sparse).to(dtype)
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        softmax.weight.copy_(torch.randn(VOCABULARY_SIZE, DIM, generator=generator, dtype=torch.float64))
        softmax.bias.copy_(torch.randn(VOCABULARY_SIZE, generator=generator, dtype=torch.float64))
    return softmax


def make_rows(count: int = 12, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Return hidden states and targets; some targets occur twice."""
    generator = torch.Generator().manual_seed(3)
    h = torch.randn(count, DIM, generator=generator, dtype=torch.float64).to(dtype)
    return h, torch.randint(0, VOCABULARY_SIZE // 2, (count,), generator=generator)


def log_uniform(k: int, vocabulary_size: int) -> float:
    """Return the probability of id k in one draw."""
    return math.log((k + 2) / (k + 1)) / math.log(vocabulary_size + 1)


def expected_count(k: int, negatives: Negatives) -> float:
    """Return the expected count of id k in a sample that took so many draws."""
    return 1 - (1 - log_uniform(k, negatives.vocabulary_size)) ** negatives.tries


def sampled_loss_by_hand(softmax: Softmax, h: Tensor, target: int, negatives: Negatives) -> float:
    """Return the loss of one row, one candidate at a time."""

    def logit(k: int) -> float:
        score = sum(a * b for a, b in zip(h.tolist(), softmax.weight[k].tolist(), strict=True))
        return score + softmax.bias[k].item() - math.log(expected_count(k, negatives))

    own = logit(target)
    others = [logit(k) for k in negatives.ids.tolist() if k != target]
    return math.log(sum(math.exp(each) for each in [own, *others])) - own


@pytest.mark.parametrize("with_gradient", [True, False])
@pytest.mark.parametrize("block_logits", [1, 3 * VOCABULARY_SIZE, 1 << 24])
def test_full_loss_is_the_negative_log_likelihood_in_any_blocks(
    block_logits: int, with_gradient: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(softmax_module, "_BLOCK_LOGITS", block_logits)
    softmax = make_softmax()
    h, targets = make_rows()
    expected = []
    for row, target in zip(h, targets.tolist(), strict=True):
        logits = [(row @ softmax.weight[k] + softmax.bias[k]).item() for k in range(VOCABULARY_SIZE)]
        expected.append(math.log(sum(map(math.exp, logits))) - logits[target])
    with torch.set_grad_enabled(with_gradient):
        found = softmax.full_loss(h, targets)
    assert found.requires_grad is with_gradient
    # Float64 sums of 40 terms.
    np.testing.assert_allclose(found.tolist(), expected, rtol=0, atol=1e-12)


@torch.no_grad()
def test_full_loss_holds_where_logits_are_far_from_zero() -> None:
    softmax = make_softmax(dtype=torch.float32)
    softmax.bias.add_(1e4)  # exp of it is infinite
    h, targets = make_rows(dtype=torch.float32)
    expected = make_softmax().full_loss(h.double(), targets)
    # Of a logit of 10,000, float32 keeps 1/1024.
    torch.testing.assert_close(softmax.full_loss(h, targets).double(), expected, rtol=0, atol=0.01)


def test_full_loss_of_no_row_is_empty() -> None:
    softmax = make_softmax()
    assert softmax.full_loss(torch.zeros(0, DIM).double(), torch.zeros(0, dtype=torch.int64)).shape == (0,)


def test_probabilities_of_all_words_sum_to_one() -> None:
    softmax = make_softmax()
    h, _ = make_rows(1)
    losses = softmax.full_loss(h.expand(VOCABULARY_SIZE, DIM), torch.arange(VOCABULARY_SIZE))
    assert torch.exp(-losses).sum().item() == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("vocabulary_size", [1, 7, 50_003])
def test_probabilities_of_a_draw_sum_to_one(vocabulary_size: int) -> None:
    one_try = Negatives(torch.zeros(0, dtype=torch.int64), 1, vocabulary_size)
    p = one_try.log_expected_counts(torch.arange(vocabulary_size)).double().exp()
    # Each is rounded to float32, relatively.
    assert float(p.sum()) == pytest.approx(1.0, rel=EXPECTED_COUNTS_IN_FLOAT32)


@pytest.mark.parametrize("tries", [1, 9, 3000])
def test_expected_counts_follow_the_formula(tries: int) -> None:
    negatives = Negatives(torch.tensor([0]), tries, 20_000)
    ids = torch.tensor([0, 1, 2, 10, 500, 19_999])
    expected = [math.log(expected_count(k, negatives)) for k in ids.tolist()]
    found = negatives.log_expected_counts(ids)
    np.testing.assert_allclose(found.tolist(), expected, rtol=EXPECTED_COUNTS_IN_FLOAT32, atol=1e-9)


@given(st.integers(2, 300), st.data())
def test_negatives_are_distinct_and_in_range(vocabulary_size: int, data: st.DataObject) -> None:
    count = data.draw(st.integers(1, vocabulary_size - 1))
    negatives = draw_negatives(vocabulary_size, count, np.random.default_rng(data.draw(st.integers(0, 1000))))
    ids = negatives.ids.tolist()
    assert len(set(ids)) == len(ids) == count
    assert min(ids) >= 0
    assert max(ids) < vocabulary_size
    assert negatives.tries >= count
    assert negatives.vocabulary_size == vocabulary_size


@pytest.mark.parametrize("count", [1, 6, 39])
def test_negatives_are_the_first_distinct_draws(count: int) -> None:
    negatives = draw_negatives(VOCABULARY_SIZE, count, np.random.default_rng(5))
    random = np.random.default_rng(5)
    found: list[int] = []
    tries = 0
    while len(found) < count:
        # The inverse of the cumulative distribution ln(k + 1) / ln(V + 1), one number after the other.
        k = int((VOCABULARY_SIZE + 1) ** random.random()) - 1
        tries += 1
        if k not in found:
            found.append(k)
    assert (negatives.ids.tolist(), negatives.tries) == (found, tries)


def test_frequencies_of_single_draws_are_log_uniform() -> None:
    vocabulary_size, draws = 12, 8000
    random = np.random.default_rng(8)
    drawn = [int(draw_negatives(vocabulary_size, 1, random).ids) for _ in range(draws)]
    found = np.bincount(drawn, minlength=vocabulary_size) / draws
    expected = np.array([log_uniform(k, vocabulary_size) for k in range(vocabulary_size)])
    # Four standard errors: of 12 ids, one in a thousand seeds would exceed them.
    np.testing.assert_array_less(np.abs(found - expected), 4 * np.sqrt(expected * (1 - expected) / draws))


def test_shares_of_samples_are_near_the_expected_counts() -> None:
    count, samples = 8, 2000
    random = np.random.default_rng(9)
    drawn = [draw_negatives(VOCABULARY_SIZE, count, random) for _ in range(samples)]
    share = np.bincount(torch.cat([each.ids for each in drawn]).numpy(), minlength=VOCABULARY_SIZE) / samples
    ids = torch.arange(VOCABULARY_SIZE)
    expected = np.mean([each.log_expected_counts(ids).double().exp().numpy() for each in drawn], axis=0)
    # The formula takes the number of tries as given, though it depends on the draws; 2,000 samples add 0.01.
    np.testing.assert_allclose(share, expected, rtol=0, atol=0.03)


@pytest.mark.parametrize("count", [VOCABULARY_SIZE, VOCABULARY_SIZE + 1])
def test_more_negatives_than_other_words_are_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"^cannot draw {count} distinct types out of 40; use the full softmax$"):
        draw_negatives(VOCABULARY_SIZE, count, np.random.default_rng(0))


@pytest.mark.parametrize("count", [1, 10, 39])
def test_sampled_loss_follows_the_formula(count: int) -> None:
    softmax = make_softmax()
    h, targets = make_rows()
    negatives = draw_negatives(VOCABULARY_SIZE, count, np.random.default_rng(1))
    found = softmax.sampled_loss(h, targets, negatives)
    expected = [
        sampled_loss_by_hand(softmax, row, target, negatives) for row, target in zip(h, targets.tolist(), strict=True)
    ]
    np.testing.assert_allclose(found.tolist(), expected, rtol=0, atol=EXPECTED_COUNTS_IN_FLOAT32)


def test_a_negative_that_is_the_target_does_not_count() -> None:
    softmax = make_softmax()
    h, _ = make_rows(1)
    target = torch.tensor([7])
    hit = Negatives(torch.tensor([3, 7, 20]), 5, VOCABULARY_SIZE)
    without = Negatives(torch.tensor([3, 20]), 5, VOCABULARY_SIZE)
    # The same terms but for exp(-inf) = 0.
    torch.testing.assert_close(softmax.sampled_loss(h, target, hit), softmax.sampled_loss(h, target, without))
    alone = Negatives(torch.tensor([7]), 1, VOCABULARY_SIZE)
    assert softmax.sampled_loss(h, target, alone).tolist() == [0.0]


def sampled_gradients(softmax: Softmax, h: Tensor, targets: Tensor) -> list[Tensor]:
    """Return the gradients of the mean sampled loss, those of sparse form made dense."""
    negatives = draw_negatives(VOCABULARY_SIZE, 15, np.random.default_rng(1))
    h = h.clone().requires_grad_()
    softmax.sampled_loss(h, targets, negatives).mean().backward()
    assert softmax.weight.grad is not None
    assert softmax.weight.grad.is_sparse is softmax.sparse
    return [gradient.to_dense() for gradient in (softmax.weight.grad, softmax.bias.grad, h.grad)]


def test_sparse_and_dense_gradients_are_equal() -> None:
    h, targets = make_rows(dtype=torch.float32)
    dense = sampled_gradients(make_softmax(dtype=torch.float32), h, targets)
    sparse = sampled_gradients(make_softmax(sparse=True, dtype=torch.float32), h, targets)
    torch.testing.assert_close(sparse, dense, rtol=FLOAT32, atol=FLOAT32)


def test_gradients_are_finite_where_the_target_is_among_the_negatives() -> None:
    softmax = make_softmax()
    h, targets = make_rows()
    softmax.sampled_loss(h, targets, draw_negatives(VOCABULARY_SIZE, 39, np.random.default_rng(1))).sum().backward()
    assert bool(softmax.weight.grad.isfinite().all())


def test_sampled_gradients_are_near_the_full_gradient_on_average() -> None:
    softmax = make_softmax()
    h, targets = make_rows(200)
    (full,) = torch.autograd.grad(softmax.full_loss(h, targets).mean(), softmax.weight)
    random = np.random.default_rng(6)
    total = torch.zeros_like(full)
    for _ in range(200):
        negatives = draw_negatives(VOCABULARY_SIZE, 25, random)
        total += torch.autograd.grad(softmax.sampled_loss(h, targets, negatives).mean(), softmax.weight)[0]
    cosine = torch.nn.functional.cosine_similarity((total / 200).flatten(), full.flatten(), dim=0)
    # A sample of finite size is biased towards fewer competitors: the directions agree, the lengths only roughly.
    assert float(cosine) > 0.98
