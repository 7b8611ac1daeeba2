"""A run's own settings, read as options: ``elmo --config models/NAME/run/settings.toml train CORPUS -o NEW``."""

from collections.abc import Collection
from typing import Any, Final

from elmo_cli.config import RECIPES, TrainingSettings
from elmo_cli.storage.run_dir import FINETUNE_TABLE
from elmo_cli.storage.settings_file import SettingsFile

# Keys of a run that are called otherwise than their options.
_OPTION_OF: Final = {
    ("training", "max_time_s"): "max_time",
    ("training", "weights_dtype"): "dtype",
    ("text", "mode"): "input",
    ("text", "language"): "lang",
    ("text", "errors"): "encoding_errors",
    (FINETUNE_TABLE, "base"): "model",
}
# Named on the command line, found again by it, or true of the old run alone.
_NO_SETTINGS: Final = ("corpora", "prepared_corpora", "prepared_heldout", "prepared_general", "base_sha256")


def is_run(file: SettingsFile) -> bool:
    """Tell whether a run wrote the file down, and not a person."""
    return all(isinstance(file.tables.get(table), dict) for table in ("training", "text", "made_by"))


def command_of_run(file: SettingsFile) -> str:
    """Return the command whose run wrote the file."""
    return "finetune" if FINETUNE_TABLE in file.tables else "train"


def run_as_settings(file: SettingsFile, options: Collection[str]) -> SettingsFile:
    """Return what a run wrote down as settings of the command that made it.

    Args:
        file: of the run.
        options: keys of the settings of that command.
    """
    command = command_of_run(file)
    defaults = RECIPES.get(str(file.tables["training"].get("recipe")), TrainingSettings())
    table: dict[str, Any] = {}
    lines: dict[tuple[str, ...], int] = {(command,): 1}
    remarks: list[str] = []
    for name in ("training", "text", FINETUNE_TABLE):
        for key, value in file.tables.get(name, {}).items():
            option = _OPTION_OF.get((name, key), key)
            if key in _NO_SETTINGS or value == []:
                continue
            if option in options:
                table[option] = value
                lines[command, option] = file.lines.get((name, key), 1)
            elif value != getattr(defaults, key, value):
                default = getattr(defaults, key)
                remarks.append(f"{file.place((name, key))}: {key} is no option of a run: {default}, not {value}")
    return SettingsFile(file.source, {command: table}, lines, tuple(remarks))
