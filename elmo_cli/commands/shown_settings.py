"""``elmo --show-settings COMMAND ...``: the value of each option and where it comes from."""

import re
from pathlib import Path
from typing import Any

from elmo_cli.commands.file_settings import command_path, origin_of, place_of, setting_key, setting_options
from elmo_cli.storage.run_dir import to_toml

SHOW = "elmo_cli.show_settings"  # key of the contexts' common store


def settings_shown(ctx: Any) -> list[str]:  # noqa: ANN401 (a context of Typer's own type)
    """Return the settings of a command about to run, as lines of a file that would give the same ones again.

    Each ends in a comment with its origin: flag, a variable, file and line, or default. A setting without value, which
    the command chooses by itself, is a comment as a whole.
    """
    contexts = [ctx]
    while contexts[0].parent is not None:
        contexts.insert(0, contexts[0].parent)
    return [line for each in contexts for line in _table(each)]


def _table(ctx: Any) -> list[str]:  # noqa: ANN401
    rows = [(_assignment(ctx, option), _origin(ctx, option)) for option in setting_options(ctx.command)]
    width = max((len(setting) for setting, _ in rows), default=0)
    header = ["", f"[{'.'.join(command_path(ctx))}]"] if ctx.parent is not None and rows else []
    return header + [f"{setting.ljust(width)}  # {origin}" for setting, origin in rows]


def _assignment(ctx: Any, option: Any) -> str:  # noqa: ANN401
    key, value = setting_key(option).replace("_", "-"), ctx.params.get(option.name)
    if value is None or value == [] or value == ():
        told = re.search(r"\[default: ([^\]]*)\]", option.help or "")
        return f"# {key}: {told[1]}" if told else f"# {key}:"
    values = [str(each) for each in value] if isinstance(value, list | tuple) else value
    plain = str(values) if isinstance(values, Path) else values
    return to_toml({"": {key: plain}}).splitlines()[1]


def _origin(ctx: Any, option: Any) -> str:  # noqa: ANN401
    origin = origin_of(ctx, option.name)
    if origin == "DEFAULT_MAP":
        return str(place_of(ctx, option))
    return {"COMMANDLINE": "flag", "ENVIRONMENT": f"variable {option.envvar}"}.get(origin, "default")
