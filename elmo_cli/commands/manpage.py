"""Manual pages from the command tree: ``python -m elmo_cli.commands.manpage FOLDER`` writes ``man/*.1`` anew."""

import inspect
import re
import sys
import textwrap
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import typer.main

from elmo_cli.commands.app import app
from elmo_cli.storage.files import write_text_whole

_DATE: Final = "2026-11-29"  # of the last change of substance, so that a rebuild changes nothing
_EXAMPLES: Final = {
    "elmo": [
        ("Vectors of a text, from the bundled model", "elmo embed file.txt > vectors.npy"),
        ("A model of one's own", "elmo train corpus.txt"),
    ],
    "elmo-train": [
        ("With no options", "elmo train corpus.txt"),
        (
            "Text that is already tokenized, for an hour and a half",
            "elmo train wiki.tok --input tokens --max-time 90m -o wiki",
        ),
        ("Go on after Ctrl-C", "elmo train --resume models/wiki"),
    ],
    "elmo-finetune": [
        ("One epoch, as models/wiki-reviews/", "elmo finetune reviews.txt -m wiki"),
        (
            "With the words of the domain, and an eye on what is forgotten",
            "elmo finetune reviews.txt -m wiki --extend-vocab 5000 --l2sp 10 --general news.txt",
        ),
        ("Published weights, converted", "elmo finetune reviews.txt -m original -o original-reviews"),
    ],
    "elmo-embed": [
        (
            "One row a token, and a table that says what each row is",
            "elmo embed file.txt -o vectors.npy --tokens-out rows.tsv",
        ),
        ("In a pipeline", "zcat news.gz | elmo embed -f jsonl | head -1"),
        ("All layers, one vector a line", "elmo embed file.txt --layers all --pool mean -o lines.npy"),
        ("A file for each text of a folder, in two goes", "elmo embed corpus/ --out-dir vectors/ --skip-existing"),
    ],
    "elmo-convert": [
        ("Weights of AllenNLP", "elmo convert options.json weights.hdf5 -o original"),
        ("Back again, with a check", "elmo convert original -o there/ --to allennlp --check"),
    ],
    "elmo-perplexity": [
        ("Two texts and both together, by the bundled model", "elmo perplexity dev.txt test.txt"),
        ("One figure", "elmo perplexity test.txt -m wiki --json | jq .both"),
    ],
    "elmo-surprisal": [
        ("A row a token", "elmo surprisal story.txt > story.tsv"),
        (
            "A row a word of a table of stimuli, whose columns are kept",
            "elmo surprisal items.tsv --text-col sentence --words -o items-surprisal.tsv",
        ),
    ],
    "elmo-runs": [
        ("All trainings below models/", "elmo runs"),
        ("The ones that were interrupted", "elmo runs --json | jq -r 'select(.state == \"interrupted\").name'"),
    ],
    "elmo-info": [
        ("The bundled model", "elmo info small-en"),
        ("One figure", "elmo info small-en --json | jq .parameters"),
    ],
}
_EXIT_STATUS: Final = [
    ("0", "Done, or the reader of the output closed the pipe."),
    ("1", "An input cannot be used, a model cannot be found, an output cannot be written."),
    ("2", "The command line or a setting makes no sense."),
    ("3", "Training diverged; the best model so far is kept."),
    ("130, 143", "Stopped by SIGINT or SIGTERM; training has saved its state."),
]
_ENVIRONMENT: Final = [
    ("ELMO_MODEL, ELMO_DEVICE, ELMO_THREADS, ELMO_QUIET", "Values of the options of these names."),
    ("ELMO_MODELS", "Folders, parted by colons, in which models are looked up by name."),
    ("ELMO_CACHE", "Folder of prepared corpora, ~/.cache/elmo by default."),
]
_FILES: Final = [
    (
        "models/NAME/",
        "A model: config.json, model.safetensors, vocab.txt, README.md; run/ holds what training needs to go on.",
    ),
]


def manual_pages() -> dict[str, str]:
    """Return the text of each page by file name."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("elmo", [], resilient_parsing=True)
    pages = {"elmo.1": _page("elmo", root, context, list(root.commands))}
    for name, command in root.commands.items():
        inner = command.make_context(name, [], parent=context, resilient_parsing=True)
        pages[f"elmo-{name}.1"] = _page(f"elmo-{name}", command, inner, [])
    return pages


def _page(title: str, command: Any, context: Any, commands: list[str]) -> str:  # noqa: ANN401 (Typer's own types)
    summary, *more = inspect.cleandoc(command.help or "").split("\n\n")
    usage = " ".join(part for part in command.collect_usage_pieces(context))
    lines = [
        f'.TH {title.upper()} 1 {_DATE} "elmo {version("elmo-cli")}" "User Commands"',
        ".SH NAME",
        f"{_escape(title)} \\- {_escape(summary.rstrip('.'))}",
        ".SH SYNOPSIS",
        f".B {_escape(title.replace('-', ' '))}",
        _escape(usage),
        ".SH DESCRIPTION",
        *(_prose(part) + "\n.PP" for part in more or [summary]),
    ]
    lines[-1] = lines[-1].removesuffix("\n.PP")
    if commands:
        lines += [".SH COMMANDS"]
        for name in commands:
            lines += [".TP", f".BR elmo\\-{name} (1)", _prose(context.command.commands[name].get_short_help_str(200))]
    lines += _parameters(command, context)
    lines += _section("ENVIRONMENT", _ENVIRONMENT) + _section("FILES", _FILES) + _section("EXIT STATUS", _EXIT_STATUS)
    lines.append(".SH EXAMPLES")
    for what, example in _EXAMPLES[title]:
        lines += [".TP", _escape(what) + ":", f".B {_escape(example)}"]
    others = [name for name in _EXAMPLES if name != title]
    lines += [".SH SEE ALSO", ",\n".join(f".BR {_escape(name)} (1)" for name in others)]
    return "\n".join(lines) + "\n"


def _parameters(command: Any, context: Any) -> list[str]:  # noqa: ANN401
    lines = []
    for heading, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        records = [p.get_help_record(context) for p in command.get_params(context) if p.param_type_name == kind]
        rows = [(name, re.sub(r"  +", " ", text)) for name, text in filter(None, records)]
        if rows:
            lines += _section(heading, rows)
    return lines


def _section(heading: str, rows: list[tuple[str, str]]) -> list[str]:
    lines = [f".SH {heading}"]
    for name, text in rows:
        lines += [".TP", f".B {_escape(name)}", _prose(text)]
    return lines


def _prose(text: str) -> str:
    """Return running text in lines of less than 80 characters."""
    return "\n".join(_escape(line) for line in textwrap.wrap(text, 66, break_long_words=False, break_on_hyphens=False))


def _escape(text: str) -> str:
    """Return text that roff prints as it is: hyphens as ASCII minus, no line taken for a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("~", "\\(ti").replace("^", "\\(ha")
    escaped = escaped.replace("'", "\\(aq").replace("`", "\\(ga")
    return "\\&" + escaped if escaped.startswith(".") else escaped


def main() -> None:
    """Write the pages into the folder named on the command line."""
    folder = Path(sys.argv[1])
    for name, text in manual_pages().items():
        write_text_whole(folder / name, text)


if __name__ == "__main__":
    main()
