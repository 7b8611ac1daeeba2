"""`--freeze`: which parts it names, and that what is frozen stays as it is."""

from pathlib import Path

import pytest
import torch
from finetuning import finetune, make_base, weights_of

from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import BiLMConfig, FinetuneSettings
from elmo_cli.errors import ConfigError
from elmo_cli.evaluation.losses import make_batch
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary
from elmo_cli.training.freeze import Frozen, read_frozen

ENCODER, FIRST, SECOND, SOFTMAX = "token_encoder.", "layers.0.", "layers.1.", "softmax."


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "general")


@pytest.mark.parametrize(
    ("text", "layers", "softmax"),
    [
        ("none", [], False),
        ("encoder", [0], False),
        ("lstm", [1, 2, 3], False),
        ("softmax", [], True),
        ("all-but-softmax", [0, 1, 2, 3], False),
        ("0, 2", [0, 2], False),
        ("encoder,3,softmax", [0, 3], True),
    ],
)
def test_parts_have_names_and_layers_numbers(text: str, layers: list[int], softmax: bool) -> None:
    assert read_frozen(text, 3) == Frozen(frozenset(layers), softmax)


@pytest.mark.parametrize("name", ["3", "-1", "decoder", "", "²", "9" * 5000], ids=lambda name: name[:9])
def test_another_part_is_refused_with_the_ones_there_are(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_frozen(name, 2)
    assert str(caught.value) == (
        f"--freeze {name!r} is no part of the model\n"
        "  fix: choose from none, encoder, lstm, all-but-softmax, softmax, and layers 0 to 2"
    )


def test_something_has_to_be_left_to_train() -> None:
    with pytest.raises(ConfigError, match="nothing to train"):
        read_frozen("encoder,lstm,softmax", 2)


@pytest.mark.parametrize(
    ("text", "frozen"),
    [
        ("none", ()),
        ("encoder", (ENCODER,)),
        ("lstm", (FIRST, SECOND)),
        ("2,softmax", (SECOND, SOFTMAX)),
        ("all-but-softmax", (ENCODER, FIRST, SECOND)),
    ],
)
def test_frozen_parts_keep_every_bit_and_the_others_learn(
    text: str, frozen: tuple[str, ...], base: Path, tmp_path: Path
) -> None:
    finetune(tmp_path / "model", base, adaptation=FinetuneSettings(freeze=text))
    before, after = weights_of(base), weights_of(tmp_path / "model")
    kept = {name for name, weight in before.items() if torch.equal(weight, after[name])}
    assert kept == {name for name in before if name.startswith(frozen) and frozen}


@pytest.mark.parametrize(("text", "expected"), [("all-but-softmax", False), ("lstm", True), ("none", True)])
def test_a_bilm_that_learns_nothing_is_run_without_gradient(text: str, expected: bool, tiny_config: BiLMConfig) -> None:
    vocabulary = Vocabulary((*SPECIALS, "a", "b"))
    model = LanguageModel(tiny_config, len(vocabulary))
    generator = torch.Generator().manual_seed(1)
    model.bilm.initialise(generator)
    model.softmax.initialise(generator, torch.zeros(len(vocabulary)))
    read_frozen(text, tiny_config.lstm.layers).apply(model)
    seen: list[bool] = []
    model.bilm.token_encoder.register_forward_hook(lambda *_: seen.append(torch.is_grad_enabled()))
    batch = make_batch([["a", "b"], ["b"]], vocabulary, tiny_config.char_cnn.max_characters)
    forward, backward = model.losses(batch)
    (forward.mean() + backward.mean()).backward()
    assert seen == [expected]
    assert model.softmax.weight.grad is not None
    assert all(p.grad is None for p in model.bilm.lstm_layers[0].parameters()) == (text != "none")
