"""Products prepared for many calls, and LSTMs that stand on them, against plain ones."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from elmo_cli.bilm import products
from elmo_cli.bilm.lstm import BiLSTMLayer, LSTMState
from elmo_cli.bilm.lstm_graph import PreparedPair
from elmo_cli.bilm.packing import pack
from elmo_cli.bilm.products import prepare_product
from elmo_cli.config import LSTMConfig, Precision
from elmo_cli.errors import ConfigError

# Of sums of some 20 products of size 1, by precision: rounding, 8 bits, and 7 bits a factor.
TOLERANCES: dict[Precision, float] = {"float32": 1e-5, "bfloat16": 0.1, "int8": 0.2}


needs_bfloat16 = pytest.mark.skipif(not products.has_bfloat16(), reason="this processor has no bfloat16 products")
PRECISIONS = ["float32", pytest.param("bfloat16", marks=needs_bfloat16), "int8"]


@pytest.fixture(autouse=True)
def _no_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


@pytest.fixture(params=[True, False], ids=["oneDNN", "without oneDNN"])
def _either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not request.param:
        monkeypatch.setattr(products, "has_onednn", lambda: False)


@pytest.mark.usefixtures("_either_way")
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("sigmoid", [False, True])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("rows", [1, 7, 130])
def test_a_prepared_product_is_the_product(precision: Precision, sigmoid: bool, has_bias: bool, rows: int) -> None:
    random = torch.Generator().manual_seed(rows)
    weight, x = torch.randn(20, 12, generator=random), torch.randn(rows, 20, generator=random)
    bias = torch.randn(12, generator=random) if has_bias else None
    before = x.clone()
    found = prepare_product(weight, bias, precision, sigmoid=sigmoid)(x)
    expected = x.double() @ weight.double() + (0 if bias is None else bias.double())
    expected = torch.sigmoid(expected) if sigmoid else expected
    torch.testing.assert_close(found, expected.float(), rtol=0, atol=TOLERANCES[precision])
    assert found.dtype == torch.float32
    assert torch.equal(x, before)


@settings(max_examples=20)
@given(st.integers(0, 30), st.floats(0.001, 1000.0))
def test_a_row_of_whole_numbers_knows_nothing_of_its_neighbours(seed: int, size: float) -> None:
    random = torch.Generator().manual_seed(seed)
    product = prepare_product(torch.randn(20, 12, generator=random), torch.randn(12, generator=random), "int8")
    rows = torch.randn(5, 20, generator=random)
    neighbours = size * torch.randn(3, 20, generator=random)
    torch.testing.assert_close(product(torch.cat((rows, neighbours)))[:5], product(rows), rtol=0, atol=1e-6)


def test_a_row_of_zeros_gives_the_bias() -> None:
    bias = torch.tensor([1.0, -2.0])
    assert prepare_product(torch.ones(3, 2), bias, "int8")(torch.zeros(1, 3)).tolist() == [[1.0, -2.0]]


def layer_of(config: LSTMConfig) -> BiLSTMLayer:
    layer = BiLSTMLayer(config).eval().requires_grad_(False)
    random = torch.Generator().manual_seed(3)
    for parameter in layer.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=random))
    return layer


# 40 sentences at first, then fewer than the 24 from which a prepared product pays.
LENGTHS = [1 + number // 4 for number in range(40)]
CONFIGS = {
    "projection and clips": LSTMConfig(cell_dim=12, projection_dim=8, cell_clip=0.7, projection_clip=0.3),
    "neither": LSTMConfig(cell_dim=8, projection_dim=8, cell_clip=None, projection_clip=None),
}


def test_a_processor_without_bfloat16_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_bfloat16", lambda: False)
    with pytest.raises(ConfigError, match="bfloat16"):
        products.check_precision("bfloat16", torch.device("cpu"))


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("carried", [False, True])
def test_a_prepared_layer_gives_what_the_plain_one_gives(config: LSTMConfig, threads: int, carried: bool) -> None:
    torch.set_num_threads(threads)
    random = torch.Generator().manual_seed(1)
    packing = pack(LENGTHS)
    x = torch.randn(2, sum(LENGTHS), config.projection_dim, generator=random)
    hidden = torch.rand(2, len(LENGTHS), config.projection_dim, generator=random) / 4
    cell = torch.rand(2, len(LENGTHS), config.cell_dim, generator=random) / 2
    results = []
    for prepared in (False, True):
        layer = layer_of(config)
        if prepared:
            layer.prepare("float32")
        state = LSTMState(hidden.clone(), cell.clone()) if carried else None
        output = layer(x, packing, state)
        results.append((output, *((state.hidden, state.cell) if state else ())))
    torch.testing.assert_close(results[1], results[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_recorded_steps_give_what_the_plain_layer_gives(config: LSTMConfig, precision: Precision, device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        pytest.skip("this machine has no CUDA device")
    random = torch.Generator().manual_seed(1)
    packing = pack(LENGTHS)
    x = torch.randn(2, sum(LENGTHS), config.projection_dim, generator=random)
    layer = layer_of(config)
    for parameter in layer.parameters():
        parameter.mul_(0.3)
    states = [layer.zero_state(len(LENGTHS)) for _ in range(2)]
    plain = layer(x, packing, states[0])
    pair = PreparedPair(
        *(weight.to(device) for weight in (layer.input_weight, layer.recurrent_weight, layer.run_time_bias())),
        None if layer.projection is None else layer.projection.to(device),
        (config.cell_clip, config.projection_clip),
        precision,
    )
    hidden, cell = states[1].hidden.to(device), states[1].cell.to(device)
    tolerance = 1e-5 if precision == "float32" else 0.03
    for _ in range(2):  # the second time by steps that were recorded before
        hidden.zero_(), cell.zero_()
        found = pair.run(x.to(device), packing.step_sizes, hidden, cell).cpu()
        torch.testing.assert_close(found, plain, rtol=0, atol=tolerance)
        torch.testing.assert_close(hidden.cpu(), states[0].hidden, rtol=0, atol=tolerance)
        torch.testing.assert_close(cell.cpu(), states[0].cell, rtol=0, atol=tolerance)


@pytest.mark.parametrize("precision", PRECISIONS[1:])
def test_fewer_bits_deviate_but_little(precision: Precision) -> None:
    config = LSTMConfig(cell_dim=12, projection_dim=8)
    plain, layer = layer_of(config), layer_of(config)
    for parameter in (*plain.parameters(), *layer.parameters()):
        parameter.mul_(0.2)
    layer.prepare(precision)
    packing = pack(LENGTHS)
    x = torch.randn(2, sum(LENGTHS), 8, generator=torch.Generator().manual_seed(1))
    difference = (layer(x, packing) - plain(x, packing)).abs().max()
    assert 0 < difference < 0.05
