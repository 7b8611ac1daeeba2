"""Matrix products with a weight that stays for many calls: on a CPU laid out for the processor, or in fewer bits."""

import warnings
from collections.abc import Callable
from functools import cache, partial

import torch
from jaxtyping import Float
from torch import Tensor

from elmo_cli.bilm.directions import add_product
from elmo_cli.config import Precision
from elmo_cli.errors import ConfigError

Product = Callable[[Tensor], Tensor]  # [rows, in] to [rows, out]

# From how many rows on a prepared product is faster than a plain one, by the precision and by whether the weight is
# larger than the processor's cache (measured: 512 x 2,048 to 1,024 x 16,384 on Zen 3). A layout for many rows at once
# serves a single one badly; but what spends its time reading a weight reads one of fewer bits the sooner.
_LARGE_BYTES = 1 << 25
_FEWEST_ROWS = {"float32": (24, 3), "bfloat16": (8, 1), "int8": (8, 1)}


def fewest_rows(precision: Precision, weight_bytes: int) -> int:
    """Return from how many rows on a prepared product is faster than a plain one.

    Args:
        precision: of the product.
        weight_bytes: of the weight in float32.
    """
    return _FEWEST_ROWS[precision][weight_bytes >= _LARGE_BYTES]


def prepare_product(
    weight: Float[Tensor, "*directions in out"],
    bias: Float[Tensor, "*directions out"] | None,
    precision: Precision,
    *,
    sigmoid: bool = False,
) -> Product:
    """Return ``x -> x @ weight + bias``, with a sigmoid over it if asked, prepared for many calls.

    Args:
        weight: a pair of them for an input that is a pair, too. What is not a matrix of float32 on a CPU is multiplied
            as it is.
        bias: None for none.
        precision: of weight and input inside the product; the sums are of at least 32 bits.
        sigmoid: whether the result goes through a sigmoid, at nearly no cost where oneDNN does it.
    """
    is_plain = weight.dim() != 2 or weight.dtype != torch.float32 or weight.device.type != "cpu"
    if not is_plain and precision == "int8":
        return _int8_product(weight, bias, sigmoid=sigmoid)
    if is_plain or not has_onednn():
        return partial(_plain_product, weight, bias, sigmoid)
    dtype = torch.float32 if precision == "float32" else torch.bfloat16
    # The number of rows is a hint of what to lay the weight out for; others are as right.
    laid_out = torch.ops.mkldnn._reorder_linear_weight(weight.t().to(dtype).contiguous(), 128)
    offset = None if bias is None else bias.to(dtype)
    activation = "sigmoid" if sigmoid else "none"

    def multiply(x: Tensor) -> Tensor:
        product: Tensor = torch.ops.mkldnn._linear_pointwise(x.to(dtype), laid_out, offset, activation, [], "")
        return product.float()

    return multiply


def prepare_gates(
    input_weight: Float[Tensor, "*directions dim gates"],
    recurrent_weight: Float[Tensor, "*directions dim gates"],
    bias: Float[Tensor, "*directions gates"],
    precision: Precision = "float32",
) -> Product:
    """Return ``[x ; h]`` to the gates after a sigmoid over all four of them, in the order of `config.GATES`.

    The candidate's input is doubled, for ``tanh(j) = 2 sigmoid(2 j) - 1``: one sigmoid, which comes with the product,
    and torch's tanh takes three times as long.
    """
    double = torch.ones_like(bias)
    double[..., 3 * (bias.shape[-1] // 4) :] = 2
    weight = torch.cat((input_weight, recurrent_weight), dim=-2).mul_(double.unsqueeze(-2))
    return prepare_product(weight, bias * double, precision, sigmoid=True)


@cache
def has_onednn() -> bool:
    """Tell whether this torch has the two operators of oneDNN, which are no public interface and may change."""
    try:
        weight = torch.ops.mkldnn._reorder_linear_weight(torch.eye(16), 16)
        product = torch.ops.mkldnn._linear_pointwise(torch.zeros(16, 16), weight, torch.zeros(16), "sigmoid", [], "")
        return bool((product == 0.5).all())
    except (AttributeError, RuntimeError):
        return False


def has_bfloat16() -> bool:
    """Tell whether this processor multiplies in bfloat16 by instructions of its own."""
    try:
        return has_onednn() and bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def check_precision(precision: Precision, device: torch.device) -> None:
    """Refuse what the processor cannot do, or what only a processor does.

    Raises:
        ConfigError: with what to choose instead.
    """
    if precision == "bfloat16" and device.type == "cpu" and not has_bfloat16():
        raise ConfigError("this processor has no instructions for bfloat16", fix="choose --precision float32 or int8")
    if precision == "float16" and device.type == "cpu":
        raise ConfigError("float16 is for a GPU, not for a CPU", fix="choose --precision float32 or int8")
    if precision == "int8" and device.type != "cpu":
        raise ConfigError(f"int8 is for a CPU, not for {device}", fix="choose --precision float32 or bfloat16")


def _plain_product(weight: Tensor, bias: Tensor | None, sigmoid: bool, x: Tensor) -> Tensor:
    product = x @ weight if bias is None else add_product(bias.unsqueeze(-2), x, weight)
    return product.sigmoid_() if sigmoid else product


def _int8_product(weight: Float[Tensor, "in out"], bias: Float[Tensor, " out"] | None, *, sigmoid: bool) -> Product:
    """Return a product of whole numbers: one scale for each column of the weight and for each row of the input.

    torch finds one scale for all rows of an input, so that a sentence's vectors would depend on the sentences beside
    it. Hence each row is divided by its largest value, and two further columns, 1 and -1 against a weight of 0, fix
    the range that torch finds.
    """
    rows = torch.cat((weight.t(), weight.new_zeros(weight.shape[1], 2)), dim=1)
    scales = rows.abs().amax(dim=1).clamp_min(torch.finfo(torch.float32).tiny) / 127
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch announces another package for quantized models
        zeros = torch.zeros(len(rows), dtype=torch.int64)
        packed = torch.ops.quantized.linear_prepack(
            torch.quantize_per_channel(rows, scales, zeros, axis=0, dtype=torch.qint8), None
        )
    ends = torch.tensor([[1.0, -1.0]])
    offset = torch.zeros(()) if bias is None else bias

    def multiply(x: Tensor) -> Tensor:
        largest = x.abs().amax(dim=1, keepdim=True).clamp_min_(torch.finfo(torch.float32).tiny)
        scaled = torch.cat((x / largest, ends.expand(len(x), 2)), dim=1)
        # True: 7 bits for the input, so that sums of pairs stay within 16 bits where the processor adds them so.
        product = torch.ops.quantized.linear_dynamic(scaled, packed, True)
        product = torch.addcmul(offset, product, largest)
        return product.sigmoid_() if sigmoid else product

    return multiply
