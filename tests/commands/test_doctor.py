"""`elmo doctor`: every usual trouble is found and told with its remedy; nothing that is broken breaks the doctor."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from command_line import Answer

Elmo = Callable[..., Answer]

TORCH = {
    "version": "2.13.0",
    "threads": 1,
    "instructions": "AVX2",
    "onednn": True,
    "bfloat16": False,
    "int8": True,
    "built_for_cuda": None,
    "cuda": [],
    "mps": False,
    "refused": {},
}


class QuickProbe:
    """Answers at once, as if torch and spaCy were in order; what models are is looked up here."""

    def __init__(self, name: str, arguments: Sequence[str] = ()) -> None:
        self._name, self._arguments = name, arguments

    def __enter__(self) -> "QuickProbe":
        return self

    def __exit__(self, *exception: object) -> None:
        return None

    def result(self) -> Any:  # noqa: ANN401 (imported late, as everything of elmo_cli here)
        from elmo_cli.storage.probes import probe_models
        from elmo_cli.storage.probing import Probed

        facts = {"torch": TORCH, "tokenizer": {"refused": {}}}.get(self._name)
        return Probed(probe_models(*self._arguments) if facts is None else facts)


@pytest.fixture
def ward(here: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with the model harbour, the default one, where all is in order and libraries are not tried."""
    shutil.copytree(model, here / "models" / "harbour", ignore=shutil.ignore_patterns("run"))
    monkeypatch.setattr("elmo_cli.storage.checkup.Probe", QuickProbe)
    monkeypatch.setattr("elmo_cli.settings._shipped_folders", list)
    monkeypatch.setattr("elmo_cli.storage.checkup_places._LITTLE_ROOM", 0)
    monkeypatch.setenv("ELMO_MODEL", "harbour")
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"):
        monkeypatch.delenv(name, raising=False)
    return here


def problems_of(answer: Answer) -> list[tuple[str | None, str, str]]:
    found = json.loads(answer.stdout)
    assert found["ok"] == (not found["problems"])
    assert answer.code == (1 if found["problems"] else 0)
    return [(each["where"], each["problem"], each["fix"]) for each in found["problems"]]


def test_where_all_is_in_order_the_doctor_says_so(elmo: Elmo, ward: Path) -> None:
    answer = elmo("doctor")
    assert (answer.code, answer.stderr) == (0, "")
    lines = answer.text.splitlines()
    assert lines[-1] == "no problem found"
    assert [line for line in lines if line and line[0] != " "] == [
        *("versions", "extras", "devices", "threads", "models", "folders", "variables"),
        "no problem found",
    ]
    assert any(line.startswith("    harbour: opens, 64 numbers, en, ") for line in lines)
    assert max(map(len, lines)) < 200


def test_the_json_holds_what_the_table_says(elmo: Elmo, ward: Path) -> None:
    found = json.loads(elmo("doctor", "--json").stdout)
    assert list(found) == [
        *("ok", "problems", "versions", "extras", "devices", "threads", "models", "folders", "variables")
    ]
    assert found["devices"]["cpu"]["instructions"] == "AVX2"
    [model] = found["models"][0]["models"]
    assert (model["name"], model["opens"], model["dim"], model["hidden"]) == ("harbour", True, 64, False)
    cache = found["folders"][0]
    assert (cache["name"], cache["folder"], cache["writable"]) == ("cache", os.environ["ELMO_CACHE"], True)


def test_the_libraries_are_tried_in_earnest(elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli.storage.probing import Probe

    monkeypatch.setattr("elmo_cli.storage.checkup.Probe", Probe)
    answer = elmo("doctor", "--json")
    assert problems_of(answer) == []
    assert json.loads(answer.stdout)["threads"]["torch"] >= 1


@pytest.mark.parametrize(
    ("body", "failure"),
    [
        ("raise OSError('libtorch.so: cannot open')", "OSError: libtorch.so: cannot open"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "ended by SIGSEGV"),
        ("import os; os._exit(7)", "ended with exit code 7"),
    ],
)
def test_a_torch_that_does_not_load_is_told_and_not_met(
    elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch, body: str, failure: str
) -> None:
    from elmo_cli.storage.probing import Probe

    broken = ward / "broken"
    broken.mkdir()
    (broken / "torch.py").write_text(body)
    monkeypatch.setenv("PYTHONPATH", str(broken))
    monkeypatch.setattr(
        "elmo_cli.storage.checkup.Probe",
        lambda name, arguments=(): (Probe if name == "torch" else QuickProbe)(name, arguments),
    )
    answer = elmo("doctor", "--json")
    assert problems_of(answer) == [("torch", f"does not load: {failure}", "pip install --force-reinstall torch")]
    assert "unknown" in elmo("doctor").text


def test_a_file_of_the_working_folder_is_not_taken_for_a_library(ward: Path) -> None:
    from elmo_cli.storage.probing import Probe

    (ward / "colorsys.py").write_text("raise OSError('not this one')")
    with Probe("module", ["colorsys"]) as probe:
        assert probe.result().failure is None


def test_a_broken_model_is_told_with_what_is_wrong(elmo: Elmo, ward: Path) -> None:
    weights = ward / "models" / "harbour" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    [(where, problem, fix)] = problems_of(elmo("doctor", "--json"))
    assert where == "models/harbour/model.safetensors"
    assert problem
    assert fix
    assert "    harbour: does not open" in elmo("doctor").text.splitlines()


def test_weights_of_which_a_bit_has_changed_are_told(elmo: Elmo, ward: Path) -> None:
    weights = ward / "models" / "harbour" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-100] ^= 1
    weights.write_bytes(content)
    assert problems_of(elmo("doctor", "--json")) == [
        (
            "models/harbour/model.safetensors",
            "is damaged: the weights are not as they were written",
            "copy or train the model again, or remove models/harbour",
        )
    ]


def test_no_model_at_all_is_told_with_the_way_to_one(elmo: Elmo, ward: Path) -> None:
    shutil.rmtree(ward / "models")
    assert problems_of(elmo("doctor", "--json")) == [
        (
            None,
            "the default model is not there: no model 'harbour'; there is none yet",
            "train one with `elmo train`, or name the folder of one",
        )
    ]


def test_a_folder_of_the_search_path_that_is_gone_is_told(
    elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ELMO_MODELS", f"{ward / 'gone'}{os.pathsep}{ward / 'models'}")
    problem = "ELMO_MODELS names it, but no such folder"
    assert problems_of(elmo("doctor", "--json")) == [(str(ward / "gone"), problem, "take it out, or mend it")]


def test_of_two_models_of_one_name_the_second_is_shown_as_hidden(
    elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(ward / "models", ward / "more")
    monkeypatch.setenv("ELMO_MODELS", str(ward / "more"))
    places = json.loads(elmo("doctor", "--json").stdout)["models"]
    assert [model["hidden"] for place in places for model in place["models"]] == [False, True]


@pytest.mark.parametrize(
    ("variable", "value", "problem", "fix"),
    [
        ("OMP_NUM_THREADS", "0", "'0' is no number of threads", "unset OMP_NUM_THREADS"),
        ("MKL_NUM_THREADS", "many", "'many' is no number of threads", "unset MKL_NUM_THREADS"),
        (
            "OMP_WAIT_POLICY",
            "ACTIVE",
            "ACTIVE makes idle threads spin, which costs many times the time on a busy machine",
            "unset OMP_WAIT_POLICY",
        ),
        ("ELMO_MODLES", "x", "elmo has no such variable", "did you mean ELMO_MODELS?"),
        ("ELMO_COLOUR", "x", "elmo has no such variable", "unset ELMO_COLOUR"),
    ],
)
def test_a_variable_that_hurts_is_told(
    elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, problem: str, fix: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert problems_of(elmo("doctor", "--json")) == [(variable, problem, fix)]


def test_more_threads_than_processors_are_told(elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli import settings

    monkeypatch.setattr(settings, "available_cpus", lambda: 2)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    assert problems_of(elmo("doctor", "--json")) == [
        (
            "OMP_NUM_THREADS",
            "8 threads on 2 processors wait for each other",
            "unset OMP_NUM_THREADS, or set it to 2 at most",
        )
    ]


def test_a_cache_that_cannot_be_written_is_told(elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (ward / "file").touch()
    monkeypatch.setenv("ELMO_CACHE", str(ward / "file" / "cache"))
    [(where, problem, fix)] = problems_of(elmo("doctor", "--json"))
    assert where == str(ward / "file" / "cache")
    assert problem == "the cache folder cannot be written: Not a directory"
    assert fix == "set ELMO_CACHE to a folder that can be written"


def test_little_room_is_told_with_what_can_be_removed(elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = ward / "cache"
    for name, size in (("corpora", 3_000_000), ("layers", 1_000_000), ("neighbors", 0), ("not ours", 5_000_000)):
        (cache / name).mkdir(parents=True)
        (cache / name / "x").write_bytes(bytes(size))
    monkeypatch.setenv("ELMO_CACHE", str(cache))
    monkeypatch.setattr("elmo_cli.storage.checkup_places._LITTLE_ROOM", 10**18)
    where, problem, fix = problems_of(elmo("doctor", "--json"))[0]
    assert where == str(cache)
    assert problem.endswith(" MB are free on the disk of the cache folder")
    assert fix == f"rm -r {cache}/corpora {cache}/layers frees 4 MB, which elmo makes again"


def test_a_working_folder_that_is_gone_breaks_nothing(elmo: Elmo, ward: Path) -> None:
    (ward / "gone").mkdir()
    os.chdir(ward / "gone")
    (ward / "gone").rmdir()
    found = json.loads(elmo("doctor", "--json").stdout)
    assert [folder["writable"] for folder in found["folders"]] == [True, True, False]


def test_a_python_that_may_not_be_executed_is_told(elmo: Elmo, ward: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from elmo_cli.storage.probing import Probe

    (ward / "python").touch(mode=0o644)
    monkeypatch.setattr("elmo_cli.storage.checkup.Probe", Probe)
    monkeypatch.setattr("sys.executable", str(ward / "python"))
    problem = "cannot be started, so no library was tried: Permission denied"
    fix = "allow it to be executed, or install Python again"
    assert problems_of(elmo("doctor", "--json")) == [(str(ward / "python"), problem, fix)]
    assert "    harbour: could not be tried" in elmo("doctor").text.splitlines()
