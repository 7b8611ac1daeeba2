"""Heads: a sentence's labels do not depend on its neighbours, and the pooled head is mean and maximum."""

import numpy as np
import pytest
import torch

from elmo_cli.errors import ModelError
from elmo_cli.mixing.heads import build_head, initialise, restore_head, store_head

LENGTHS = [3, 0, 1, 5]


@pytest.fixture(params=["linear", "bilstm", "pooled"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def made(kind: str) -> torch.nn.Module:
    head = build_head(kind, 4, 3, hidden_dim=5)
    initialise(head, torch.Generator().manual_seed(1))
    return head.eval()


def test_a_sentence_has_the_same_scores_in_any_batch(kind: str) -> None:
    head, vectors = made(kind), torch.randn(sum(LENGTHS), 4, generator=torch.Generator().manual_seed(2))
    together = head(vectors, LENGTHS)
    alone = torch.cat([head(part, [len(part)]) for part in vectors.split(LENGTHS)])
    assert together.shape == (len(LENGTHS) if kind == "pooled" else sum(LENGTHS), 3)
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_the_pooled_head_sees_mean_and_maximum_and_zeros_of_nothing() -> None:
    head, vectors = made("pooled"), torch.randn(9, 4, generator=torch.Generator().manual_seed(2))
    parts = [part.numpy() for part in vectors.split(LENGTHS)]
    pooled = [np.concatenate((part.mean(0), part.max(0))) if len(part) else np.zeros(8) for part in parts]
    weight, bias = (tensor.detach().numpy() for tensor in head.output.parameters())
    np.testing.assert_allclose(head(vectors, LENGTHS).detach().numpy(), np.array(pooled) @ weight.T + bias, atol=1e-6)


def test_a_stored_head_is_the_same(kind: str) -> None:
    head, vectors = made(kind), torch.randn(9, 4, generator=torch.Generator().manual_seed(2))
    again = restore_head(store_head(kind, 5, head), 4, 3)
    torch.testing.assert_close(again(vectors, LENGTHS), head(vectors, LENGTHS), rtol=0, atol=0)


def test_a_head_of_another_shape_is_refused(kind: str) -> None:
    with pytest.raises(ModelError, match="the head of the mix does not fit"):
        restore_head(store_head(kind, 5, made(kind)), 4, 2)
