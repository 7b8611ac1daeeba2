"""Options that several commands share, each written once, and the reading of their values."""

import os
import re
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from elmo_cli import settings
from elmo_cli.commands.file_settings import origin_of
from elmo_cli.config import PRECISIONS
from elmo_cli.errors import ConfigError, Place
from elmo_cli.storage.registry import model_names
from elmo_cli.text.sources import STDIN

if TYPE_CHECKING:
    from elmo_cli.text.reader import TextOptions

MOST_PROCESSORS = 1024  # threads or processes, at most; torch takes any number and then overflows

LARGEST_SEED = 2**32 - 1  # that all generators take: torch's, NumPy's and scikit-learn's
_LONGEST_S = 1e10  # three centuries; more would leave what a number of seconds can say

EncodingErrors = Literal["strict", "replace"]


def complete_model(incomplete: str) -> list[str]:
    """Return the names of models that begin with what has been typed; none that would steer the terminal."""
    return [name for name in model_names() if name.startswith(incomplete) and name.isprintable()]


def complete_from(*words: str) -> Callable[[str], list[str]]:
    """Return what completes to one of some words; where none fits, the shell offers files."""

    def complete(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        metavar="NAME|DIR",
        envvar="ELMO_MODEL",
        autocompletion=complete_model,
        help="Model: a folder, or a name under ./models, $ELMO_MODELS, the user's data folder or the bundled models.",
    ),
]
Input = Annotated[
    str,
    typer.Option(
        "--input",
        metavar="MODE",
        autocompletion=complete_from("lines", "text", "tokens", "jsonl", "conll", "conllu"),
        help="What the text is: 'lines' (a line is a sentence), 'text' (running text), 'tokens' (a line is a sentence, "
        "its tokens parted by spaces), 'jsonl' (a line is an object with text or tokens), 'conll' or 'conllu' (a line "
        "is a token).",
    ),
]
Column = Annotated[
    int,
    typer.Option("--column", metavar="N", min=1, help="Column in which the token stands, for --input conll alone."),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers",
        min=0,
        max=MOST_PROCESSORS,
        envvar="ELMO_WORKERS",
        help="Processes that tokenize beside this one; 0 for none.  [default: 1 where there are two processors]",
    ),
]
EncodingErrorsOption = Annotated[
    str,
    typer.Option(
        "--encoding-errors",
        metavar="strict|replace",
        autocompletion=complete_from("strict", "replace"),
        help="What to do with bytes that are not UTF-8: stop, or read them as U+FFFD.",
    ),
]
Device = Annotated[
    str,
    typer.Option(
        "--device",
        metavar="NAME",
        envvar="ELMO_DEVICE",
        autocompletion=complete_from("auto", "cpu", "cuda", "mps"),
        help="auto, cpu, cuda, cuda:1 or mps.",
    ),
]
Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        max=MOST_PROCESSORS,
        envvar="ELMO_THREADS",
        help="Threads of arithmetic.  [default: by the machine]",
    ),
]
PrecisionOption = Annotated[
    str,
    typer.Option(
        "--precision",
        metavar="TYPE",
        autocompletion=complete_from(*PRECISIONS),
        help="Of the LSTMs' products: float32, int8 (faster on a CPU), bfloat16 (faster where the processor has it), "
        "float16 (on a GPU). Less than float32 deviates: fit for search, not to reproduce figures.",
    ),
]
ModelLang = Annotated[
    str | None,
    typer.Option(
        "--lang", metavar="CODE", help="Language of the tokenizer, such as en, zh or zh-jieba.  [default: the model's]"
    ),
]
BatchTokens = Annotated[
    int, typer.Option("--batch-tokens", min=1, help="Tokens computed at once; changes memory and speed, no figure.")
]
ENCODING_ERRORS: tuple[EncodingErrors, ...] = ("strict", "replace")
Force = Annotated[bool, typer.Option("--force", help="Replace what is already at the target.")]


Choice = TypeVar("Choice", bound=str)


def choose(option: str, value: str, choices: tuple[Choice, ...]) -> Choice:
    """Return the value if it is one of the choices.

    Raises:
        ConfigError: with the choices there are.
    """
    for choice in choices:
        if choice == value:
            return choice
    raise ConfigError(f"{option} {value!r} is not known", fix=f"choose {', '.join(choices[:-1])} or {choices[-1]}")


def is_named(ctx: typer.Context, option: str) -> bool:
    """Tell whether the value of an option was given, on the command line, in the environment or in a settings file."""
    return origin_of(ctx, option) != "DEFAULT"


def use_threads(count: int | None) -> None:
    """Set the number of threads of torch's arithmetic."""
    if count is not None:
        import torch

        torch.set_num_threads(count)


def read_duration(text: str) -> float:
    """Return the seconds of ``90m``, ``1h30m``, ``2d`` or ``45s``; a bare number counts seconds.

    Raises:
        ConfigError: the text is no duration, or one of nothing.
    """
    units = {"d": 86400.0, "h": 3600.0, "m": 60.0, "s": 1.0}
    in_units = text + "s" if re.fullmatch(r"\d+(\.\d+)?", text) else text
    parts = re.findall(r"(\d+(?:\.\d+)?)([dhms])", in_units)
    if not parts or "".join(number + unit for number, unit in parts) != in_units:
        raise ConfigError(f"{text!r} is no duration", fix="write it like 90m, 1h30m or 45s")
    seconds = sum(float(number) * units[unit] for number, unit in parts)
    if not seconds:
        raise ConfigError(f"{text!r} leaves no time at all", fix="write it like 90m, 1h30m or 45s")
    if seconds > _LONGEST_S:
        raise ConfigError(f"{text!r} is longer than centuries", fix="leave it out for no limit")
    return seconds


def refuse_existing(path: Path, *, force: bool, option: str = "-o") -> None:
    """Refuse to replace a regular file, which ``option`` has named, without ``--force``.

    A name of what the shell has opened, such as ``/dev/stdout``, is no file to replace, even where it leads to one.

    Raises:
        ConfigError: the file exists.
    """
    if not force and would_replace(path):
        raise ConfigError(
            "the file exists", where=Place(str(path)), fix=f"replace it with --force, or choose another {option}"
        )


def would_replace(path: Path) -> bool:
    """Tell whether a regular file is there, by a name of its own."""
    from elmo_cli.storage.files import descriptor_of

    return path.is_file() and descriptor_of(path) is None


def refuse_stdout(path: Path, *, option: str = "-o") -> None:
    """Refuse ``-``, which is standard output, for what has to be a file or folder.

    Raises:
        ConfigError: the path, which ``option`` has named, is ``-``.
    """
    if str(path) == "-":
        raise ConfigError(f"{option} - is standard output, and this is written to a name", fix=f"give {option} a name")


def refuse_own_input(outputs: Iterable[Path | None], sources: Iterable[str]) -> None:
    """Refuse to write over a text that is to be read, even with ``--force``.

    Args:
        outputs: files to be written; None and ``-`` stand for standard output, which may be a file too.
        sources: texts, as `find_sources` names them.

    Raises:
        ConfigError: an output is one of the texts.
    """
    read = set(filter(None, (_identity(source) for source in sources if source != STDIN)))
    for output in outputs if read else ():
        is_stdout = output is None or str(output) == STDIN
        if _identity("/dev/stdout" if is_stdout else str(output)) in read:
            raise ConfigError(
                "the input would be written over by what is made of it",
                where=Place("standard output" if is_stdout else str(output)),
                fix="write to another file",
            )


def _identity(path: str) -> tuple[int, int] | None:
    """Return what tells a regular file from all others, whatever its names; None where there is none."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def check_column(column: int, mode: str) -> int:
    """Return the column, if the mode has any to choose from.

    Raises:
        ConfigError: another than the first is named, and the mode is not ``conll``; or there is no such mode.
    """
    from elmo_cli.text.reader import INPUT_MODES

    choose("--input", mode, INPUT_MODES)
    if column != 1 and mode != "conll":
        raise ConfigError(f"--column {column} says nothing of --input {mode}", fix="leave it out, or add --input conll")
    return column


def reading_workers(asked: int | None, options: "TextOptions") -> int:
    """Return how many processes tokenize beside the main one: as asked, or one where that saves time."""
    if asked is not None:
        return asked
    return 1 if options.needs_tokenizer and settings.available_cpus() > 1 else 0


def default_workers() -> int:
    """Return how many processes tokenize by default."""
    return min(settings.available_cpus(), 8)
