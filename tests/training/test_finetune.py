"""Fine-tuning: what it starts from, what it keeps, what it measures, and that it goes on bit for bit."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from finetuning import (
    DATA,
    DOMAIN,
    SETTINGS,
    STEPS,
    finetune,
    make_base,
    place_of,
    provenance_of,
    result_of,
    resume,
    weights_of,
    without_softmax,
)
from stopping import Stopping

from elmo_cli.config import FinetuneSettings, Limits, TrainingSettings
from elmo_cli.errors import ConfigError, Interrupted, ModelError
from elmo_cli.evaluation.losses import load_predictor
from elmo_cli.evaluation.perplexity import text_perplexity
from elmo_cli.reporting import SilentProgress
from elmo_cli.storage.model_dir import read_config
from elmo_cli.training import softmax_stage
from elmo_cli.training.finetune import resume_finetuning
from elmo_cli.training.run import resume_training

EVERYTHING = FinetuneSettings(freeze="encoder", l2sp=2.0, extend_vocab=5)
SAMPLED = TrainingSettings(max_steps=STEPS, batch_tokens=60, sampled_above=10, negatives=30)


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "general")


@pytest.fixture(scope="module")
def bare(base: Path) -> Path:
    return without_softmax(base, base.parent / "bare")


def test_a_stopped_run_ends_as_if_never_stopped(base: Path, tmp_path: Path) -> None:
    finetune(tmp_path / "whole", base, SAMPLED, EVERYTHING)
    with pytest.raises(Interrupted) as caught:
        finetune(tmp_path / "model", base, SAMPLED, EVERYTHING, reporter=Stopping(3))
    assert caught.value.fix == f"go on with: elmo finetune --resume {tmp_path / 'model'}"
    resume(tmp_path / "model")
    assert result_of(tmp_path / "model") == result_of(tmp_path / "whole")


def test_two_stages_go_on_from_either(bare: Path, tmp_path: Path) -> None:
    adaptation = FinetuneSettings(l2sp=1.0)
    finetune(tmp_path / "whole", bare, adaptation=adaptation)
    reporter = Stopping(2)
    with pytest.raises(Interrupted):
        finetune(tmp_path / "model", bare, adaptation=adaptation, reporter=reporter)
    assert reporter.said[0] == "stage 1 of 2: bare has no softmax; a new one learns, all else is frozen"
    assert not (tmp_path / "model" / "config.json").exists()  # it was the first stage that was stopped
    later = Stopping(2, skip=1)
    with pytest.raises(Interrupted):
        resume(tmp_path / "model", later)
    assert "stage 2 of 2: all weights learn" in later.said
    resume(tmp_path / "model")
    assert result_of(tmp_path / "model") == result_of(tmp_path / "whole")


def test_a_finished_first_stage_is_read_and_not_made_again(
    bare: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(Interrupted):
        finetune(tmp_path / "model", bare, reporter=Stopping(2, skip=1))
    for name in ("divide_text", "counted_vocabulary", "model_with_fresh_softmax"):
        monkeypatch.delattr(softmax_stage, name)
    assert resume(tmp_path / "model") is not None


@pytest.mark.parametrize("limits", [Limits(max_steps=2), Limits(max_time_s=0.001)], ids=["steps", "time"])
def test_limits_that_leave_the_last_stage_nothing_to_do_are_refused(limits: Limits, bare: Path, tmp_path: Path) -> None:
    finetune(tmp_path / "model", bare)
    settings = (tmp_path / "model" / "run" / "settings.toml").read_text()
    with pytest.raises(ConfigError, match=r"the run is at step 3 .*, and with these limits it ends at step "):
        resume_finetuning(tmp_path / "model", place_of(tmp_path / "model"), limits)
    assert (tmp_path / "model" / "run" / "settings.toml").read_text() == settings


def test_the_first_stage_learns_a_softmax_over_the_text_and_leaves_all_else_as_it_is(
    bare: Path, tmp_path: Path
) -> None:
    result = finetune(tmp_path / "model", bare)
    softmax = tmp_path / "model" / "run" / "softmax"
    before, after = weights_of(bare), weights_of(softmax)
    assert {name for name in after if name not in before} == {"softmax.weight", "softmax.bias"}
    assert all(torch.equal(weight, after[name]) for name, weight in before.items())
    assert "Orchard" in (softmax / "vocab.txt").read_text(encoding="utf-8").split("\n")
    assert result.domain.base is None
    assert result.domain.start is not None
    assert provenance_of(softmax)["heldout"]["both"] == pytest.approx(result.domain.start.both, rel=1e-6)


def test_the_stages_share_the_steps(bare: Path, tmp_path: Path) -> None:
    finetune(tmp_path / "model", bare, TrainingSettings(max_steps=5, batch_tokens=60))
    stages = [tmp_path / "model" / "run" / "softmax", tmp_path / "model"]
    assert [provenance_of(folder)["training"]["steps"] for folder in stages] == [2, 3]


def test_perplexity_before_is_that_of_the_base(base: Path, tmp_path: Path) -> None:
    heldout, general = str(DOMAIN), str(DATA / "twenty.txt")
    result = finetune(tmp_path / "model", base, heldout=(heldout,), general=(general,))
    predictor = load_predictor(base, read_config(base), torch.device("cpu"))
    for path, found in ((heldout, result.domain), (general, result.general)):
        sentences = (line.split() for line in Path(path).read_text(encoding="utf-8").splitlines())
        expected = text_perplexity(predictor, sentences, SilentProgress())
        assert found is not None
        assert found.base is not None
        assert found.start is None
        assert found.base.both == pytest.approx(expected.both, rel=1e-5)  # float32, in other batches
        assert found.base.oov_rate == expected.oov_rate


def test_perplexity_after_is_that_of_the_model_as_stored(base: Path, tmp_path: Path) -> None:
    general = DATA / "twenty.txt"
    settings = TrainingSettings(max_steps=STEPS, batch_tokens=60, weights_dtype="float16")
    result = finetune(tmp_path / "model", base, settings, general=(str(general),))
    predictor = load_predictor(tmp_path / "model", read_config(tmp_path / "model"), torch.device("cpu"))
    sentences = (line.split() for line in general.read_text(encoding="utf-8").splitlines())
    expected = text_perplexity(predictor, sentences, SilentProgress())
    assert result.general is not None
    assert result.general.after is not None
    assert result.general.after.both == pytest.approx(expected.both, rel=1e-5)


def test_where_no_step_is_better_the_model_is_the_base(base: Path, tmp_path: Path) -> None:
    result = finetune(tmp_path / "model", base, TrainingSettings(max_steps=2, batch_tokens=60, learning_rate=5.0))
    assert result.best_step == 0
    assert (tmp_path / "model" / "model.safetensors").read_bytes() == (base / "model.safetensors").read_bytes()
    assert "No step was better than the base" in (tmp_path / "model" / "README.md").read_text(encoding="utf-8")


def test_the_config_names_parent_words_added_and_perplexities(base: Path, tmp_path: Path) -> None:
    result = finetune(tmp_path / "model", base, adaptation=FinetuneSettings(extend_vocab=5))
    provenance = provenance_of(tmp_path / "model")
    sha256 = hashlib.sha256((base / "model.safetensors").read_bytes()).hexdigest()
    assert provenance["parent"] == {"name": "general", "sha256": sha256}
    assert [source["name"] for source in provenance["corpora"]] == [DOMAIN.name]
    assert provenance["finetuning"]["words_added"] == 5
    found = provenance["finetuning"]["perplexity"]["domain"]
    assert list(found) == ["base", "start", "after"]
    assert found["start"]["oov_rate"] < found["base"]["oov_rate"]
    assert result.domain.after is not None
    assert found["after"] == result.domain.after.to_json()
    base_types = (base / "vocab.txt").read_text(encoding="utf-8")
    types = (tmp_path / "model" / "vocab.txt").read_text(encoding="utf-8")
    assert types.startswith(base_types)
    assert len(types.splitlines()) == len(base_types.splitlines()) + 5


def test_a_strong_pull_keeps_the_weights_near_the_base(base: Path, tmp_path: Path) -> None:
    distances = []
    for l2sp in (0.0, 100.0):
        folder = tmp_path / str(l2sp)
        finetune(folder, base, adaptation=FinetuneSettings(l2sp=l2sp))
        before, after = weights_of(base), weights_of(folder)
        distances.append(sum(float((after[name] - before[name]).square().sum()) for name in before))
    assert 0 < distances[1] < 0.7 * distances[0]


def test_a_base_that_has_changed_is_refused(base: Path, tmp_path: Path) -> None:
    other = make_copy(base, tmp_path / "other")
    with pytest.raises(Interrupted):
        finetune(tmp_path / "model", other, reporter=Stopping(1))
    weights = bytearray((other / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (other / "model.safetensors").write_bytes(weights)
    with pytest.raises(ModelError, match="the base has changed since the run began"):
        resume(tmp_path / "model")


def test_a_model_is_not_its_own_base(base: Path) -> None:
    with pytest.raises(ConfigError, match="would replace its base"):
        finetune(base, base)


def test_a_base_without_softmax_has_none_to_extend(bare: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no softmax to extend"):
        finetune(tmp_path / "model", bare, adaptation=FinetuneSettings(extend_vocab=5))
    assert not (tmp_path / "model").exists()


def test_each_kind_of_run_names_the_command_that_goes_on_with_the_other(base: Path, tmp_path: Path) -> None:
    finetune(tmp_path / "model", base, TrainingSettings(max_steps=1))
    with pytest.raises(ConfigError) as caught:
        resume_training(tmp_path / "model", place_of(tmp_path / "model"), Limits())
    assert caught.value.fix == f"elmo finetune --resume {tmp_path / 'model'}"
    with pytest.raises(ConfigError) as caught:
        resume(base)
    assert caught.value.fix == f"elmo train --resume {base}"


def test_text_that_comes_tokenized_leaves_the_tokenizer_of_the_base(base: Path, tmp_path: Path) -> None:
    other = make_copy(base, tmp_path / "other")
    config = json.loads((other / "config.json").read_text())
    config["tokenizer"] = {"name": "spacy", "language": "de", "version": "3"}
    (other / "config.json").write_text(json.dumps(config))
    finetune(tmp_path / "model", other, TrainingSettings(max_steps=1))
    assert read_config(tmp_path / "model").tokenizer == config["tokenizer"]


def test_the_rate_rises_over_a_tenth_of_a_short_run(base: Path, tmp_path: Path) -> None:
    finetune(tmp_path / "model", base, SETTINGS)
    assert provenance_of(tmp_path / "model")["settings"]["warmup_steps"] == 1


def make_copy(base: Path, folder: Path) -> Path:
    folder.mkdir()
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        (folder / name).write_bytes((base / name).read_bytes())
    return folder
