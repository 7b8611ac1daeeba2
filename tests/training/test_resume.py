"""A run that was stopped goes on bit for bit, and a run that diverges keeps what it had."""

import json
import shutil
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from outcomes import result_of

from elmo_cli.bilm.dropout import SeededDropout
from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.config import Limits, TrainingSettings
from elmo_cli.errors import DataError, Interrupted, ModelError, TrainingDiverged
from elmo_cli.reporting import SilentProgress, SilentReporter
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.weights import load_language_model
from elmo_cli.text.reader import TextOptions
from elmo_cli.training.run import TrainingResult, Workplace, resume_training, start_training
from elmo_cli.training.sources import TextSources

TWENTY = (Path(__file__).parent.parent / "data" / "twenty.txt").read_text(encoding="utf-8")
STEPS = 15
FULL = TrainingSettings(preset="tiny", max_steps=STEPS, batch_tokens=36, warmup_steps=5)  # 6 steps an epoch
SAMPLED = TrainingSettings(
    preset="tiny", max_steps=STEPS, batch_tokens=36, warmup_steps=5, sampled_above=10, negatives=30
)
STREAM = replace(SAMPLED, stream=True, batch_tokens=80, recipe="bilm-tf", learning_rate=0.2, clip_norm=10.0)


class Stopping(SilentReporter):
    """A reporter that sends a signal at a step of the training, and remembers what is said."""

    def __init__(self, step: int | None = None, number: int = signal.SIGINT) -> None:
        self.step, self.number = step, number
        self.said: list[str] = []

    def note(self, text: str) -> None:
        self.said.append(text)

    def warn(self, text: str) -> None:
        self.said.append(f"warning: {text}")

    def progress(self, title: str, total: float | None, unit: str) -> SilentProgress:
        reporter = self

        class _Progress(SilentProgress):
            def update(self, done: float, status: str = "") -> None:
                if title == "training" and done == reporter.step:
                    signal.raise_signal(reporter.number)

        return _Progress()


def place_of(folder: Path, reporter: SilentReporter) -> Workplace:
    return Workplace(torch.device("cpu"), folder.parent / "cache", 1, reporter)


def start(folder: Path, settings: TrainingSettings, reporter: SilentReporter | None = None) -> TrainingResult:
    text = folder.parent / "text.txt"
    text.write_text(TWENTY, encoding="utf-8")
    sources = TextSources((str(text),), (), TextOptions(mode="tokens"))
    return start_training(folder, sources, settings, place_of(folder, reporter or SilentReporter()))


def resume(folder: Path, reporter: SilentReporter | None = None, limits: Limits | None = None) -> TrainingResult:
    return resume_training(folder, place_of(folder, reporter or SilentReporter()), limits or Limits())


def interrupt(folder: Path, settings: TrainingSettings, steps: Sequence[int]) -> None:
    """Start a run that is stopped at the first step, resume it up to the second, and so on."""
    for number, step in enumerate(steps):
        with pytest.raises(Interrupted):
            resume(folder, Stopping(step)) if number else start(folder, settings, Stopping(step))


@pytest.fixture(scope="module", params=[FULL, SAMPLED, STREAM], ids=["full", "sampled", "stream"])
def settings(request: pytest.FixtureRequest) -> TrainingSettings:
    return request.param


@pytest.fixture(scope="module")
def uninterrupted(settings: TrainingSettings, tmp_path_factory: pytest.TempPathFactory) -> dict[str, object]:
    folder = tmp_path_factory.mktemp("uninterrupted") / "model"
    start(folder, settings)
    return result_of(folder)


@pytest.mark.parametrize("steps", [[4], [6, 7, 13], [STEPS]], ids=["once", "often", "at the end"])
def test_a_run_that_was_stopped_ends_as_if_never_stopped(
    steps: list[int], settings: TrainingSettings, uninterrupted: dict[str, object], tmp_path: Path
) -> None:
    interrupt(tmp_path / "model", settings, steps)
    resume(tmp_path / "model")
    assert result_of(tmp_path / "model") == uninterrupted


def test_two_runs_with_one_seed_are_the_same(
    settings: TrainingSettings, uninterrupted: dict[str, object], tmp_path: Path
) -> None:
    torch.manual_seed(99)  # the global generator must not matter
    start(tmp_path / "model", settings)
    assert result_of(tmp_path / "model") == uninterrupted


def test_another_seed_makes_another_model(tmp_path: Path) -> None:
    files = []
    for seed in (1, 2):
        start(tmp_path / str(seed), TrainingSettings(preset="tiny", max_steps=1, seed=seed))
        files.append((tmp_path / str(seed) / "model.safetensors").read_bytes())
    assert files[0] != files[1]


def test_every_step_draws_dropout_masks_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds: list[int] = []
    seed = SeededDropout.seed

    def recorded(dropout: SeededDropout, number: int, device: torch.device) -> None:
        seeds.append(number)
        seed(dropout, number, device)

    monkeypatch.setattr(SeededDropout, "seed", recorded)
    start(tmp_path / "model", FULL)
    assert len(set(seeds)) == len(seeds) == STEPS


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_finishes_the_step_saves_and_says_how_to_go_on(number: int, code: int, tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as caught:
        start(tmp_path / "model", FULL, Stopping(3, number))
    assert str(caught.value) == (
        f"stopped at step 3 of 15; everything is saved\n  fix: go on with: elmo train --resume {tmp_path / 'model'}"
    )
    assert caught.value.exit_code == code
    assert (tmp_path / "model" / "run" / "checkpoint-000000003").is_dir()


def test_a_damaged_newest_checkpoint_costs_only_the_steps_since_the_one_before(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    interrupt(folder, FULL, [4, 9])
    (folder / "run" / "checkpoint-000000009" / "tensors.safetensors").write_bytes(b"")
    reporter = Stopping()
    resume(folder, reporter)
    start(tmp_path / "whole", FULL)
    assert "warning: checkpoint-000000009 is damaged; going on from the checkpoint before it" in reporter.said
    assert "going on from step 4" in reporter.said
    assert result_of(folder) == result_of(tmp_path / "whole")


def test_a_run_without_a_checkpoint_starts_from_the_beginning(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    interrupt(folder, FULL, [1])
    shutil.rmtree(folder / "run" / "checkpoint-000000000")
    (folder / "run" / "checkpoint-000000001" / "values.json").unlink()
    (folder / "run" / "checkpoint-000000001").rename(folder / "run" / ".checkpoint-000000001.part")
    reporter = Stopping()
    resume(folder, reporter, Limits(max_steps=2))
    steps = [json.loads(line)["step"] for line in (folder / "run" / "metrics.jsonl").read_text().splitlines()]
    assert "the run has no checkpoint yet: it starts from the beginning" in reporter.said
    assert sorted(set(steps)) == [0, 1, 2]
    assert steps.count(0) == 1


def test_a_run_can_be_resumed_for_more_steps_than_it_was_started_for(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    start(folder, TrainingSettings(preset="tiny", max_steps=2, batch_tokens=36))
    assert resume(folder, limits=Limits(max_steps=12)).position.step == 12


def test_a_finished_run_has_nothing_left_to_do(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    start(folder, FULL)
    before = result_of(folder)
    assert resume(folder).position.step == STEPS
    assert result_of(folder) == before


def test_a_text_that_has_changed_is_not_gone_on_with(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    interrupt(folder, FULL, [1])
    for prepared in (tmp_path / "cache").iterdir():
        (prepared / "corpus.json").unlink()
    text = tmp_path / "text.txt"
    text.write_text("another text\n")
    with pytest.raises(DataError) as caught:
        resume(folder)
    assert str(caught.value) == f"{text}: the text has changed since the run began"


def test_damaged_settings_name_what_is_missing(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    interrupt(folder, FULL, [1])
    (folder / "run" / "settings.toml").write_text("[training]\nseed = 1\n")
    with pytest.raises(ModelError) as caught:
        resume(folder)
    assert str(caught.value) == f"{folder / 'run'}: the run's settings are damaged: 'text'"


def diverge_after(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the loss of training NaN after some steps; measuring is not touched."""
    losses = LanguageModel.losses
    made = 0

    def with_nan(model: LanguageModel, *arguments: object) -> tuple[torch.Tensor, torch.Tensor]:
        nonlocal made
        forward, backward = losses(model, *arguments)
        if model.training:
            made += 1
            if made > steps:
                forward = forward * float("nan")
        return forward, backward

    monkeypatch.setattr(LanguageModel, "losses", with_nan)


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_best_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "model"
    diverge_after(4, monkeypatch)
    with pytest.raises(TrainingDiverged) as caught:
        start(folder, FULL)
    assert str(caught.value) == (
        "the loss is nan and its gradient nan at step 0, after 3 returns at ever lower rates; "
        "the best model so far is kept\n"
        "  fix: train again with a lower --learning-rate"
    )
    weights = load_language_model(folder, read_config(folder)).state_dict()
    assert all(bool(tensor.isfinite().all()) for tensor in weights.values())


def test_a_run_that_diverges_at_once_keeps_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    diverge_after(0, monkeypatch)
    with pytest.raises(TrainingDiverged) as caught:
        start(tmp_path / "model", FULL)
    assert caught.value.message == (
        "the loss is nan and its gradient nan at step 0, after 3 returns at ever lower rates; no model is kept yet"
    )
    assert not (tmp_path / "model" / "config.json").exists()
