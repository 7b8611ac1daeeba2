import pytest
import torch

from elmo_cli.bilm.char_cnn import _Largest


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_the_gradient_of_a_filter_goes_to_its_largest_responses_alone_in_equal_shares(dtype: torch.dtype) -> None:
    random = torch.Generator().manual_seed(5)
    responses = torch.randint(0, 4, (7, 9, 5), generator=random).to(dtype)  # many ties
    gradient = torch.randint(-8, 9, (7, 5), generator=random).to(dtype)
    ours, theirs = responses.clone().requires_grad_(), responses.double().requires_grad_()
    largest = _Largest.apply(ours)
    largest.backward(gradient)
    theirs.amax(dim=1).backward(gradient.double())
    assert torch.equal(largest, responses.amax(dim=1))
    torch.testing.assert_close(ours.grad.double(), theirs.grad, rtol=torch.finfo(dtype).eps, atol=0)


def test_the_gradient_agrees_with_small_differences() -> None:
    responses = torch.randn(3, 4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(_Largest.apply, responses)
