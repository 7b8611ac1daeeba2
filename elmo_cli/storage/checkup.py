"""Whether all that elmo stands on is in order: packages, devices, threads, models, folders.

Nothing is mended here and nothing left behind; each problem is told with its remedy.
"""

import difflib
import sys
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from elmo_cli import settings
from elmo_cli.storage.checkup_places import check_folders, check_models, found_models
from elmo_cli.storage.packages import Package, packages, programs, python_is_too_old
from elmo_cli.storage.probing import Probe, Probed

_READ_HERE = ("ELMO_MODELS", "ELMO_CACHE")  # by `settings`, not by an option


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not in order.

    Attributes:
        message: what it is.
        fix: what to do about it.
        where: the file, folder or variable, where there is one.
    """

    message: str
    fix: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was found.

    Attributes:
        facts: by section (``versions``, ``extras``, ``devices``, ``threads``, ``models``, ``folders``, ``variables``);
            plain values.
        problems: in the order of the sections.
    """

    facts: dict[str, Any]
    problems: list[Problem] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return plain values under stable names."""
        told = [{"where": p.where, "problem": p.message, "fix": p.fix} for p in self.problems]
        return {"ok": not told, "problems": told, **self.facts}


def check_up(default_model: str, device: str, variables: Collection[str]) -> Checkup:
    """Look at everything. Takes as long as torch and spaCy take to load, side by side.

    Args:
        default_model: the model that commands take when none is named.
        device: the same of the device.
        variables: of the environment that are the values of options.
    """
    models = found_models()
    with ExitStack() as running:
        torch = running.enter_context(Probe("torch", [device]))
        opened = running.enter_context(Probe("models", [str(path) for path in models])).result()
        languages = sorted({"en", *(str(found["language"]) for found in opened.facts.values() if "language" in found)})
        tokenizer = running.enter_context(Probe("tokenizer", languages)).result()
        found_torch = torch.result()
        facts: dict[str, Any] = {"versions": programs()}
        problems: list[Problem] = []
        _check_packages(facts, problems, {"torch": found_torch, "spacy": tokenizer, "safetensors": opened})
        _check_devices(facts, problems, found_torch)
        _check_threads(facts, problems)
        problems += _told(tokenizer.facts.get("refused", {}))
        for section, (found, told) in {
            "models": check_models(models, opened.facts, default_model),
            "folders": check_folders(),
        }.items():
            facts[section] = found
            problems += [Problem(**each) for each in told]
        _check_variables(facts, problems, (*variables, *_READ_HERE))
    return Checkup(facts, problems)


def _told(refused: dict[str, dict[str, str | None]]) -> list[Problem]:
    """Return what a probe was refused, as problems."""
    return [Problem(str(e["problem"]), e["fix"] or "see `elmo --help`", e["where"]) for e in refused.values()]


def _check_packages(facts: dict[str, Any], problems: list[Problem], probed: dict[str, Probed]) -> None:
    """Look at versions; and at packages that were needed for the probes and did not load."""
    found = packages()
    if python_is_too_old():
        problems.append(Problem(f"Python {facts['versions']['python']} is too old", "install Python 3.11 or later"))
    if not found:
        problems.append(Problem("elmo is not installed as a package", "pip install elmo-cli"))
    facts["versions"] |= {package.name: package.version for package in found if package.extra is None}
    facts["extras"] = {
        f"{package.extra}: {package.name}": package.version for package in found if package.extra is not None
    }
    for package in found:
        if package.is_missing:
            problems.append(Problem(f"the package {package.name} is missing", package.install))
        elif package.is_out_of_bounds:
            problems.append(_out_of_bounds(package))
    missing = {package.name for package in found if package.is_missing}
    stopped = [result.failure for result in probed.values() if not result.started]
    if stopped:
        message = f"cannot be started, so no library was tried: {stopped[0]}"
        fix = "allow it to be executed, or install Python again"
        problems.append(Problem(message, fix, sys.executable or "python"))
    for name, result in probed.items():
        if result.started and result.failure is not None and name not in missing:
            problems.append(Problem(f"does not load: {result.failure}", f"pip install --force-reinstall {name}", name))


def _out_of_bounds(package: Package) -> Problem:
    return Problem(f"{package.name} {package.version} is not within {package.bounds}", package.install)


def _check_devices(facts: dict[str, Any], problems: list[Problem], torch: Probed) -> None:
    cpus = settings.available_cpus()
    found = torch.facts
    facts["devices"] = {
        "cpu": {"processors": cpus, **{key: found.get(key) for key in ("instructions", "onednn", "bfloat16", "int8")}},
        "cuda": found.get("cuda", []),
        "mps": found.get("mps", False),
    }
    facts["threads"] = {"torch": found.get("threads")}
    problems += _told(found.get("refused", {}))
    if found and not found["cuda"] and Path("/proc/driver/nvidia/version").exists():
        built = f"built for CUDA {found['built_for_cuda']}" if found["built_for_cuda"] else "built without CUDA"
        problems.append(
            Problem(
                f"there is a GPU by NVIDIA, but torch {found['version']}, {built}, cannot use it",
                "install a torch for your driver: https://pytorch.org/get-started/locally/",
            )
        )


def _check_threads(facts: dict[str, Any], problems: list[Problem]) -> None:
    """Look for settings that make threads wait for each other."""
    cpus = settings.available_cpus()
    variables = settings.thread_variables()
    facts["threads"] |= {"available": cpus, **variables}
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS"):
        value = variables.get(name, "1").split(",")[0]
        if not value.isdecimal() or int(value) < 1:
            problems.append(Problem(f"{value!r} is no number of threads", f"unset {name}", name))
        elif int(value) > cpus:
            message = f"{value} threads on {cpus} processors wait for each other"
            problems.append(Problem(message, f"unset {name}, or set it to {cpus} at most", name))
    waiting = {
        "OMP_WAIT_POLICY": ("active",),
        "KMP_BLOCKTIME": ("infinite",),
        "GOMP_SPINCOUNT": ("infinite", "infinity"),
    }
    for name, values in waiting.items():
        if variables.get(name, "").lower() in values:
            message = f"{variables[name]} makes idle threads spin, which costs many times the time on a busy machine"
            problems.append(Problem(message, f"unset {name}", name))


def _check_variables(facts: dict[str, Any], problems: list[Problem], known: Collection[str]) -> None:
    """Look for variables that nothing reads."""
    facts["variables"] = settings.own_variables()
    for name in facts["variables"]:
        if name not in known:
            words = [other.removeprefix("ELMO_") for other in known]  # what all begin with makes none alike
            near = difflib.get_close_matches(name.removeprefix("ELMO_"), words, n=1)
            fix = f"did you mean ELMO_{near[0]}?" if near else f"unset {name}"
            problems.append(Problem("elmo has no such variable", fix, name))
