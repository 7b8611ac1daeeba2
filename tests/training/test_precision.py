"""Training in fewer bits: near the whole figures, refused where it cannot be done, scaled where it must be."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from lives import place_of, start
from safetensors.torch import load_file
from test_resume import FULL, SAMPLED, Stopping

from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import ConfigError, Interrupted
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage.run_dir import RunDir
from elmo_cli.training import precision as precision_module
from elmo_cli.training import run as run_module
from elmo_cli.training.precision import LossScale, check_training_precision
from elmo_cli.training.run import resume_training


def curve_of(folder: Path) -> list[float]:
    return [line["heldout"]["both"] for line in RunDir(folder).metrics() if "heldout" in line]


@pytest.fixture
def _bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take bfloat16 for fast: it is right on every processor."""
    monkeypatch.setattr(precision_module, "has_bfloat16", lambda: True)


@pytest.mark.usefixtures("_bfloat16")
@pytest.mark.parametrize("settings", [FULL, SAMPLED], ids=["full", "sampled"])
def test_bfloat16_learns_nearly_as_float32_does(settings: TrainingSettings, tmp_path: Path) -> None:
    start(tmp_path / "whole", settings, SilentReporter())
    start(tmp_path / "half", replace(settings, precision="bfloat16"), SilentReporter())
    whole, half = curve_of(tmp_path / "whole"), curve_of(tmp_path / "half")
    assert half[0] == whole[0]  # measured in float32
    assert half[-1] != whole[-1]
    assert half == pytest.approx(whole, rel=0.02)
    assert load_file(tmp_path / "half" / "model.safetensors")["softmax.weight"].dtype == torch.float32


@pytest.mark.usefixtures("_bfloat16")
def test_a_run_in_bfloat16_goes_on_bit_for_bit(tmp_path: Path) -> None:
    settings = replace(SAMPLED, precision="bfloat16")
    start(tmp_path / "whole", settings, SilentReporter())
    with pytest.raises(Interrupted):
        start(tmp_path / "stopped", settings, Stopping(7))
    resume_training(tmp_path / "stopped", place_of(tmp_path / "stopped", SilentReporter()), Limits())
    files = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("whole", "stopped")]
    assert files[0] == files[1]


def test_float16_scales_the_loss_leaves_out_overflows_and_learns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "check_training_precision", lambda *_: None)  # slow on a processor, but as right
    monkeypatch.setattr(precision_module, "_FIRST_SCALE", 2.0**40)  # so that the first steps overflow
    settings = replace(FULL, max_steps=60, learning_rate=0.03, precision="float16")
    start(tmp_path / "half", settings, SilentReporter())
    curve = curve_of(tmp_path / "half")
    assert curve[1] == curve[0]  # the first steps were left out
    losses = [line["loss_nats"] for line in RunDir(tmp_path / "half").metrics() if "loss_nats" in line]
    assert losses[-1] < 0.8 * math.log(curve[0])
    newest = RunDir(tmp_path / "half").load_newest()
    assert newest is not None
    assert 1 < newest[0].values["loss_scale"]["value"] < 2.0**40
    assert newest[0].values["health"]["rate_scale"] == 1


def test_float16_is_for_a_gpu() -> None:
    with pytest.raises(ConfigError) as caught:
        check_training_precision("float16", torch.device("cpu"))
    assert str(caught.value) == ("float16 is for training on a GPU\n  fix: choose --precision float32 or bfloat16")


def test_bfloat16_is_refused_where_a_processor_is_slow_at_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precision_module, "has_bfloat16", lambda: False)
    with pytest.raises(ConfigError) as caught:
        check_training_precision("bfloat16", torch.device("cpu"))
    assert str(caught.value) == ("this processor has no instructions for bfloat16\n  fix: choose --precision float32")


def test_the_scale_falls_with_each_overflow_and_rises_after_many_steps_without_one() -> None:
    scale = LossScale.of("float16")
    assert scale.value == 65536
    for norm in (math.inf, math.nan):
        assert scale.explains(norm)
        scale.note(norm)
    assert scale.value == 16384
    for _ in range(2000):
        assert not scale.explains(1.0)
        scale.note(1.0)
    assert scale.value == 32768


def test_a_scale_of_one_explains_no_overflow() -> None:
    assert not LossScale.of("float32").explains(math.inf)
    assert not LossScale(1.0, is_fixed=False).explains(math.inf)


def test_in_other_precisions_the_scale_stays_one() -> None:
    scale = LossScale.of("bfloat16")
    for norm in [1.0] * 3000 + [math.inf]:
        scale.note(norm)
    assert scale.value == 1
