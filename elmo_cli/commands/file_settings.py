"""What a file of settings says of the options: which value each takes from it, and where that stands."""

import difflib
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import typer

from elmo_cli.commands.run_as_settings import command_of_run, is_run, run_as_settings
from elmo_cli.errors import ConfigError, ElmoError, Place
from elmo_cli.storage.settings_file import SettingsFile, read_settings_file

# Commands, options and contexts are Typer's own types, which it does not offer by name: Any, below.
_NO_SETTINGS: Final = {"help", "version", "config", "show_settings", "install_completion", "show_completion"}
_META: Final = "elmo_cli.file_settings"  # of the contexts of all commands
_PLAIN_WORDS: Final = {
    r"a valid integer\b.*": "must be a whole number",
    r"a valid number\b.*": "must be a number",
    r"greater than or equal to (\S+)": r"must be at least \1",
    r"less than or equal to (\S+)": r"must be at most \1",
}


@dataclass(slots=True)
class FileSettings:
    """The file's values, handed to the options of each command.

    Attributes:
        file: read, its keys as options of commands.
        defaults: by the names of parameters, one mapping a command inside that of its group.
        paths: in the file, of each parameter's value; parameters by their command's path and name.
        run_of: the command whose run wrote the file, None for one of a person's.
    """

    file: SettingsFile
    run_of: str | None = None
    defaults: dict[str, Any] = field(default_factory=dict)
    paths: dict[tuple[str, ...], tuple[str, ...]] = field(default_factory=dict)


def use_settings_file(ctx: Any, path: Path) -> None:  # noqa: ANN401
    """Take the values of options from a file, where neither a flag nor a variable gives them.

    Keys of the top level are for all commands that have the option, those of a table ``[embed]`` or ``[mix.learn]``
    for that command.

    Raises:
        ConfigError: the file cannot be read, a key is no setting, a value is of the wrong kind.
    """
    file, run_of = read_settings_file(path), None
    if is_run(file):
        run_of = command_of_run(file)
        file = run_as_settings(file, frozenset(_options(ctx.command.commands[run_of])))
    settings = FileSettings(file, run_of)
    settings.defaults = _defaults(ctx.command, (), file.tables, {}, settings)
    ctx.default_map = settings.defaults
    ctx.meta[_META] = settings


def remarks_on_file(ctx: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return what of the file does nothing for the command about to run, and why.

    Args:
        ctx: of the program itself.
    """
    settings: FileSettings | None = ctx.meta.get(_META)
    if settings is None:
        return ()
    if settings.run_of not in (None, ctx.invoked_subcommand):
        source, asked = settings.file.source, ctx.invoked_subcommand
        return (f"{source} is of a run of elmo {settings.run_of}: it says nothing to elmo {asked}",)
    return settings.file.remarks


def place_of(ctx: Any, parameter: Any) -> Place | None:  # noqa: ANN401
    """Return where the value of a parameter stands, None where it is from no file."""
    settings: FileSettings | None = ctx.meta.get(_META)
    if settings is None or origin_of(ctx, parameter.name) != "DEFAULT_MAP":
        return None
    return settings.file.place(settings.paths[*command_path(ctx), parameter.name])


def origin_of(ctx: Any, parameter: str) -> str:  # noqa: ANN401
    """Return ``COMMANDLINE``, ``ENVIRONMENT``, ``DEFAULT_MAP`` (a file) or ``DEFAULT``."""
    source = ctx.get_parameter_source(parameter)
    return "DEFAULT" if source is None else str(source.name)


def command_path(ctx: Any) -> tuple[str, ...]:  # noqa: ANN401
    """Return the names of groups and command: ``("mix", "learn")``; of the program itself none."""
    return () if ctx.parent is None else (*command_path(ctx.parent), ctx.info_name)


@contextmanager
def errors_placed(ctx: Any) -> Iterator[None]:  # noqa: ANN401
    """Tell file and line of a value that an option or the command refuses, where it is from a file; in plain words."""
    try:
        yield
    except typer.BadParameter as problem:
        problem.message = _in_plain_words(problem.message)
        parameter: Any = problem.param
        where = None if parameter is None else place_of(ctx, parameter)
        if where is None:
            raise
        hint = " / ".join(repr(name) for name in parameter.opts)
        raise ConfigError(f"invalid value for {hint}: {problem.message}", where=where) from problem
    except ElmoError as problem:
        if problem.where is None:
            problem.where = _place_named_in(problem.message, ctx)
        problem.message = _with_option(problem.message, ctx)
        raise


def _in_plain_words(message: str) -> str:
    """Return what Typer's library of types says of a value, as a person would."""
    for theirs, ours in _PLAIN_WORDS.items():
        message = re.sub(rf"^Input should be {theirs}$", ours, message)
    return message


def _place_named_in(message: str, ctx: Any) -> Place | None:  # noqa: ANN401
    """Return where the value stands that a command refuses; its message has the option or quotes the value."""
    for key, option in _options(ctx.command).items():
        where = place_of(ctx, option)
        named = rf"--{key.replace('_', '-')}(?![\w-])|^{key} is "
        if where is not None and (re.search(named, message) or repr(ctx.params.get(option.name)) in message):
            return where
    return None


def _with_option(message: str, ctx: Any) -> str:  # noqa: ANN401
    """Return a message of a setting, ``batch_tokens is -1``, with the option that the user knows it by."""
    name, is_, rest = message.partition(" is ")
    return f"--{name.replace('_', '-')}{is_}{rest}" if name in _options(ctx.command) else message


def setting_options(command: Any) -> list[Any]:  # noqa: ANN401
    """Return the options of a command that a file may set."""
    return list(_options(command).values())


def _options(command: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the options by their keys: ``--batch-tokens`` is ``batch_tokens``."""
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    found = {setting_key(option): option for option in options if not option.hidden}
    return {key: option for key, option in found.items() if key not in _NO_SETTINGS}


def setting_key(option: Any) -> str:  # noqa: ANN401
    """Return the key of an option in a file: its long name."""
    return str(max(option.opts, key=len)).lstrip("-").replace("-", "_")


def _defaults(
    command: Any,  # noqa: ANN401
    path: tuple[str, ...],
    table: Mapping[str, Any],
    inherited: Mapping[str, tuple[tuple[str, ...], Any]],
    settings: FileSettings,
) -> dict[str, Any]:
    """Return the values of a command's options, and inside them those of its subcommands.

    Args:
        command: a command or a group.
        path: of its names.
        table: of the file, for it.
        inherited: values from the tables above, with their paths.
        settings: whose ``paths`` are filled.
    """
    options, commands = _options(command), getattr(command, "commands", {})
    values = dict(inherited)
    for name, value in table.items():
        key = name.replace("-", "_")
        if isinstance(value, dict) and commands:
            _check_known(name, commands, "command", path, settings.file)
        elif name in commands and key not in _all_options(command):  # index and mix are both
            where, header = settings.file.place((*path, name)), ".".join((*path, name))
            raise ConfigError(f"{header} is a command, not a setting", where=where, fix=f"write a table [{header}]")
        else:
            _check_known(name, _all_options(command), "setting", path, settings.file)
            values[key] = (*path, name), value
    defaults: dict[str, Any] = {}
    for key, option in options.items():
        if key in values:
            place, value = values[key]
            defaults[option.name] = _as_typed(key, option, value, settings.file.place(place))
            settings.paths[*path, option.name] = place
    for name, inner in commands.items():
        own = table.get(name)
        defaults[name] = _defaults(inner, (*path, name), own if isinstance(own, dict) else {}, values, settings)
    return defaults


def _all_options(command: Any) -> set[str]:  # noqa: ANN401
    """Return the keys of the options of a command and of all its subcommands."""
    inner = getattr(command, "commands", {}).values()
    return {*_options(command), *(key for each in inner for key in _all_options(each))}


def _check_known(
    name: str, known: Mapping[str, Any] | set[str], kind: str, path: tuple[str, ...], file: SettingsFile
) -> None:
    """Refuse a key or table that nothing takes, with the nearest name there is."""
    if (name if kind == "command" else name.replace("-", "_")) in known:
        return
    near = difflib.get_close_matches(name.replace("-", "_"), sorted(known), n=1, cutoff=0.5)
    owner = " ".join(("elmo", *path))
    raise ConfigError(
        f"{owner} has no {kind} {name!r}",
        where=file.place((*path, name)),
        fix=f"did you mean {near[0]}?" if near else f"`{owner} --help` names what there is",
    )


def _as_typed(key: str, option: Any, value: Any, where: Place) -> Any:  # noqa: ANN401
    """Return a value as it would be typed behind the option, so that it is checked as if it were.

    Raises:
        ConfigError: it is of a kind that cannot be typed.
    """
    if option.is_flag:
        if isinstance(value, bool):
            return value
        raise ConfigError(f"{key} is {value!r}", where=where, fix="write true or false")
    values = value if option.multiple and isinstance(value, list) else [value]
    for each in values:
        if isinstance(each, bool) or not isinstance(each, str | int | float):
            shown = str(each).lower() if isinstance(each, bool) else "a table" if isinstance(each, dict) else each
            kind = "text, a number, or a list of them" if option.multiple else "text or a number"
            raise ConfigError(f"{key} is {shown}", where=where, fix=f"write {kind}")
    return [str(each) for each in values] if option.multiple else str(value)
