"""`elmo doctor`: whether all that elmo needs is in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import Device, Model
from elmo_cli.errors import harmless
from elmo_cli.reporting import counted
from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli.storage.checkup import Checkup

_WIDTH = 12  # of the column of names


def doctor(
    ctx: typer.Context,
    model: Model = DEFAULT_MODEL,
    device: Device = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Look for what keeps elmo from working.

    Prints versions, devices, threads, the places of models and whether each model opens, the folders that are written
    to and their room; then each problem and what to do about it. Ends with exit code 1 if there is one. Changes
    nothing. To be sent along with a report of an error.
    """
    from elmo_cli.storage.checkup import check_up

    found = check_up(model, device, _variables(ctx.find_root().command))
    if as_json:
        console.answer_json(found.to_json())
    else:
        for line in _lines(found):
            console.answer(harmless(line))  # a model's name may have line ends
    if found.problems:
        raise typer.Exit(1)


def _variables(command: Any) -> set[str]:  # noqa: ANN401 (Typer's own types)
    """Return the variables of the environment that options take their values from."""
    own = {parameter.envvar for parameter in command.params if getattr(parameter, "envvar", None)}
    return own.union(*map(_variables, getattr(command, "commands", {}).values()))


def _lines(found: "Checkup") -> Iterator[str]:
    facts = found.facts
    for section in ("versions", "extras"):
        names = {name: version or "not installed" for name, version in facts[section].items()}
        yield from _section(section, names)
    yield from _section("devices", _devices(facts["devices"]))
    yield from _section(
        "threads", {name: "unknown" if value is None else value for name, value in facts["threads"].items()}
    )
    yield "models"
    for place in facts["models"]:
        yield f"  {place['folder']}" + ("" if place["there"] else " (no such folder)")
        yield from (f"    {_model(model)}" for model in place["models"])
    yield from _section("folders", {folder["name"]: _folder(folder) for folder in facts["folders"]})
    if facts["variables"]:
        yield from _section("variables", facts["variables"])
    yield ""
    for problem in found.problems:
        yield f"problem: {problem.where}: {problem.message}" if problem.where else f"problem: {problem.message}"
        yield f"  fix: {problem.fix}"
    count = len(found.problems)
    yield "no problem found" if not count else f"{counted(count, 'problem')} found"


def _section(title: str, rows: dict[str, Any]) -> Iterator[str]:
    yield title
    width = max([_WIDTH, *map(len, rows)])
    for name, value in rows.items():
        yield f"  {name:<{width}}  {value}"


def _devices(devices: dict[str, Any]) -> dict[str, str]:
    cpu = devices["cpu"]
    can = [f"{name} {_yes(cpu[name])}" for name in ("bfloat16", "int8")]
    processors = counted(cpu["processors"], "processor")
    gpus = [f"{gpu['name']}, {gpu['bytes'] / 1e9:,.0f} GB" for gpu in devices["cuda"]]
    return {
        "cpu": ", ".join([processors, str(cpu["instructions"] or "instructions unknown"), *can]),
        "cuda": "; ".join(gpus) or "none",
        "mps": _yes(devices["mps"]),
    }


def _yes(value: bool | None) -> str:
    return "unknown" if value is None else "yes" if value else "no"


def _model(model: dict[str, Any]) -> str:
    state = {True: "opens", False: "does not open", None: "could not be tried"}[model["opens"]]
    about = f", {model['dim']} numbers, {model['language']}, {_size(model['bytes'])}" if model["opens"] else ""
    return f"{model['name']}: {state}{about}" + (", hidden by the one above" if model["hidden"] else "")


def _folder(folder: dict[str, Any]) -> str:
    parts = [folder["folder"], "writable" if folder["writable"] else "not writable"]
    if folder["free"] is not None:
        parts.append(f"{_size(folder['free'])} free")
    if "bytes" in folder:
        parts.append(f"{_size(folder['bytes'])} used")
    return ", ".join(parts)


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:,.1f} MB"
