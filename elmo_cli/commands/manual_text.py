"""What the manual pages say beside examples and options: variables, files, exit status, sections of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Rows = list[tuple[str, str]]

# Variables that no option of the command names; those of its options are described as such.
VARIABLES: Final = {
    "ELMO_CACHE": "Folder of what can be made again; $XDG_CACHE_HOME/elmo or ~/.cache/elmo by default.",
    "ELMO_CONFIG": "A file of settings, as behind elmo --config.",
    "ELMO_MODELS": "Folders, parted by colons, in which models are looked up by name.",
    "ELMO_QUIET": "Say nothing but warnings and errors, as elmo --quiet.",
    "RANK, WORLD_SIZE, LOCAL_RANK": "Set by torchrun: which of how many processes this one is.",
    "TMPDIR": "Where what is too large for memory, or cannot be written in one go, is put together.",
    "XDG_DATA_HOME": "Models of the user are in its folder elmo/models; ~/.local/share by default.",
}
_COMMON: Final = ("ELMO_CONFIG", "ELMO_QUIET")
_LOOK_UP: Final = ("ELMO_MODELS", "XDG_DATA_HOME")
_MODEL: Final = ("models/NAME/", "The model NAME; elmo-model(5) describes it.")
_CORPORA: Final = ("~/.cache/elmo/corpora/", "Prepared texts, for the next run on the same ones; may be deleted.")
_NEW_MODEL: Final = [
    ("models/NAME/", "The new model; elmo-model(5) describes it."),
    ("models/NAME/run/settings.toml", "What the run was started with; elmo --config takes it."),
    ("models/NAME/run/metrics.jsonl", "Losses and perplexities, a line a measurement."),
    ("models/NAME/run/", "Beside these the newest checkpoints, from which --resume goes on."),
    _CORPORA,
]
_MIX: Final = ("TASK.mix.json", "The layers' weights for a task, its head, and how well they do.")
_VECTORS: Final = (
    "~/.cache/elmo/neighbors/",
    "Vectors of texts that were searched, for the next query; may be deleted.",
)
_INDEX: Final = ("CORPUS.idx/", "The index: index.json names its parts, which are mapped into memory.")
_DIVERGED: Final = "Training diverged; the best model so far is kept."
_SAVED: Final = "Stopped by SIGHUP, SIGINT or SIGTERM, the state of the training saved."


@dataclass(frozen=True, slots=True)
class PageText:
    """What is particular about a page.

    Attributes:
        variables: names in `VARIABLES`, beside the common ones.
        files: with what they are.
        failures: exit codes that are others than usual, or mean something else here.
        related: titles of pages to see, beside that of the group above.
    """

    variables: tuple[str, ...] = ()
    files: Iterable[tuple[str, str]] = ()
    failures: Mapping[str, str] = field(default_factory=dict)
    related: tuple[str, ...] = ()


PAGES: Final[dict[str, PageText]] = {
    "elmo": PageText(
        ("ELMO_CACHE", "ELMO_CONFIG", *_LOOK_UP),
        [_MODEL, _CORPORA],
        {"3": _DIVERGED, "129, 130, 143": "Stopped by SIGHUP, SIGINT or SIGTERM; a training has saved its state."},
    ),
    "elmo-train": PageText(
        ("ELMO_CACHE", "RANK, WORLD_SIZE, LOCAL_RANK"),
        _NEW_MODEL,
        {"3": _DIVERGED, "129, 130, 143": _SAVED},
        ("elmo-finetune", "elmo-runs", "elmo-perplexity"),
    ),
    "elmo-finetune": PageText(
        ("ELMO_CACHE", *_LOOK_UP),
        _NEW_MODEL,
        {"3": _DIVERGED, "129, 130, 143": _SAVED},
        ("elmo-train", "elmo-runs", "elmo-perplexity"),
    ),
    "elmo-embed": PageText((*_LOOK_UP, "TMPDIR"), [_MODEL], {}, ("elmo-train", "elmo-info")),
    "elmo-perplexity": PageText(_LOOK_UP, [_MODEL], {}, ("elmo-surprisal", "elmo-train")),
    "elmo-surprisal": PageText(_LOOK_UP, [_MODEL], {}, ("elmo-perplexity",)),
    "elmo-convert": PageText(_LOOK_UP, [_MODEL], {}, ("elmo-embed", "elmo-info")),
    "elmo-info": PageText(
        _LOOK_UP, [_MODEL], {"1": "The model cannot be found or read."}, ("elmo-runs", "elmo-convert")
    ),
    "elmo-mix": PageText((), [_MIX], {}, ("elmo-mix-learn", "elmo-mix-apply", "elmo-mix-show")),
    "elmo-mix-learn": PageText(
        ("ELMO_CACHE", *_LOOK_UP),
        [_MODEL, _MIX, ("~/.cache/elmo/layers/", "Layers of the text, for the next time; may be deleted.")],
        {},
        ("elmo-mix-show", "elmo-mix-score", "elmo-embed"),
    ),
    "elmo-mix-show": PageText((), [_MIX], {}, ("elmo-mix-learn",)),
    "elmo-mix-apply": PageText((), [_MIX], {}, ("elmo-mix-learn", "elmo-embed")),
    "elmo-mix-predict": PageText(_LOOK_UP, [_MIX, _MODEL], {}, ("elmo-mix-learn", "elmo-mix-score")),
    "elmo-mix-score": PageText(_LOOK_UP, [_MIX, _MODEL], {}, ("elmo-mix-learn", "elmo-mix-predict")),
    "elmo-neighbors": PageText(("ELMO_CACHE", *_LOOK_UP), [_MODEL, _VECTORS], {}, ("elmo-index", "elmo-senses")),
    "elmo-senses": PageText(("ELMO_CACHE", *_LOOK_UP), [_MODEL, _VECTORS], {}, ("elmo-index", "elmo-neighbors")),
    "elmo-index": PageText(_LOOK_UP, [_MODEL, _INDEX], {}, ("elmo-neighbors", "elmo-senses")),
    "elmo-doctor": PageText(
        ("ELMO_CACHE", *_LOOK_UP, "TMPDIR"), [_MODEL], {"0": "Nothing is wrong.", "1": "Something is; it is named."}
    ),
    "elmo-runs": PageText(
        (),
        [("models/NAME/run/", "The trainings that are listed.")],
        {"1": "A folder cannot be found or read."},
        ("elmo-train", "elmo-info"),
    ),
}
_USUAL_EXIT: Final = {
    "0": "Done, or the reader of the output closed the pipe.",
    "1": "An input cannot be used, a model cannot be found, or an output cannot be written.",
    "2": "The command line or a setting makes no sense.",
    "129, 130, 143": "Stopped by SIGHUP, SIGINT or SIGTERM; no file is left half written.",
}
# Sections that only some pages have: paragraphs, and lines that are shown as they are.
SECTIONS: Final[dict[str, list[tuple[str, list[str | tuple[str, ...]]]]]] = {
    "elmo": [
        (
            "SETTINGS",
            [
                "Each option has a key in a TOML file: its long name without the dashes. A key at the top of the file "
                "is for all commands that have the option, one in a table only for the command of that name.",
                ('device = "cpu"', "threads = 2", "", "[embed]", 'layers = "top"', "batch-size = 32"),
                "elmo --config FILE reads it, and so does the variable ELMO_CONFIG. A flag goes before a variable, a "
                "variable before the file, the file before what a model or a default says. An unknown key or a wrong "
                "value is an error with file and line.",
                "elmo --show-settings before a command and its options prints the value of each setting and where it "
                "comes from, in the form of such a file, and does no more.",
                "models/NAME/run/settings.toml, which a training writes, is taken too: with it, elmo train or elmo "
                "finetune repeat the run on the same text. Its tables training and text give options; where one is "
                "no option and is not what it would be, a warning says so.",
            ],
        ),
        (
            "COMPLETION",
            [
                "elmo --install-completion makes the TAB key complete commands, options, names of models and what "
                "options take, in bash, zsh, fish and PowerShell. For one shell alone:",
                ('eval "$(elmo --show-completion)"',),
            ],
        ),
    ],
}


def exit_rows(title: str) -> Rows:
    """Return the exit codes of a page's command, in order."""
    rows = {**_USUAL_EXIT, **text_of(title).failures}
    return sorted(rows.items(), key=lambda row: int(row[0].partition(",")[0]))


def variable_rows(title: str, of_options: Mapping[str, str]) -> Rows:
    """Return the variables that a page's command uses, by name.

    Args:
        title: of the page.
        of_options: the options of the command that have a variable, by it.
    """
    named = {name: VARIABLES[name] for name in (*_COMMON, *text_of(title).variables)}
    return sorted(
        {
            **{name: f"The value of {option} where it is not given." for name, option in of_options.items()},
            **named,
        }.items()
    )


def text_of(title: str) -> PageText:
    """Return what is particular about a page; nothing is where nothing is written."""
    return PAGES.get(title, PageText())
