"""Manual pages from the command tree: ``python -m elmo_cli.commands.manpage FOLDER`` writes ``man/*.1`` anew.

What a page says beside options and arguments stands in `manual_examples` and `manual_text`.
"""

import inspect
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import typer.main

from elmo_cli.commands.app import app
from elmo_cli.commands.command import help_records
from elmo_cli.commands.manual_examples import EXAMPLES
from elmo_cli.commands.manual_text import SECTIONS, Rows, exit_rows, text_of, variable_rows
from elmo_cli.storage.files import write_text_whole

_DATE: Final = "2026-11-30"  # of the last change of substance, so that a rebuild changes nothing
_FORMAT_PAGE: Final = "elmo-model"  # in section 5, written by hand


def manual_pages() -> dict[str, str]:
    """Return the text of each page by file name: one for each command and each group of commands."""
    root: Any = typer.main.get_command(app)
    context = root.make_context("elmo", [], resilient_parsing=True)
    tree = list(_tree("elmo", root, context))
    titles = [title for title, _, _ in tree]
    return {f"{title}.1": _page(title, command, inner, titles) for title, command, inner in tree}


def _tree(title: str, command: Any, context: Any) -> Iterator[tuple[str, Any, Any]]:  # noqa: ANN401 (Typer's types)
    """Yield title, command and context of a command and of all those inside it."""
    yield title, command, context
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            below = inner.make_context(name, [], parent=context, resilient_parsing=True)
            yield from _tree(f"{title}-{name}", inner, below)


def _page(title: str, command: Any, context: Any, titles: Sequence[str]) -> str:  # noqa: ANN401
    summary, *more = inspect.cleandoc(command.help or "").split("\n\n")
    usage = " ".join(command.collect_usage_pieces(context))
    lines = [
        f'.TH {title.upper()} 1 {_DATE} "elmo {version("elmo-cli")}" "User Commands"',
        ".nr HY 0",  # no hyphens within words and no gaps between them: many are names; EE would bring hyphens back
        ".nh",
        ".ad l",
        ".SH NAME",
        _prose(f"{title} - {_as_phrase(summary)}").replace(" \\-\\- ", " - "),
        ".SH SYNOPSIS",
        f".B {_escape(title.replace('-', ' '))}",
        re.sub(r"[A-Z|]{2,}", r"\\fI\g<0>\\fR", _escape(usage)),
        ".SH DESCRIPTION",
        *_paragraphs(more or [summary]),
        *_commands(title, command),
        *_parameters(command, context),
        *_global_options(title),
    ]
    for heading, paragraphs in SECTIONS.get(title, []):
        lines += [f".SH {heading}", *_paragraphs(paragraphs)]
    options = {p.envvar: f"{max(p.opts, key=len)}" for p in command.params if isinstance(p.envvar, str)}
    lines += _section("ENVIRONMENT", variable_rows(title, options))
    lines += _section("FILES", list(text_of(title).files), "I")
    lines += _section("EXIT STATUS", exit_rows(title))
    lines += _examples(title) + _see_also(title, titles)
    return "\n".join(lines) + "\n"


def _as_phrase(sentence: str) -> str:
    """Return a sentence as the line of NAME has it: ``elmo-embed - turn text into contextual word vectors``."""
    phrase = " ".join(sentence.split()).rstrip(".")
    return phrase[:1].lower() + phrase[1:] if phrase[1:2].islower() or phrase[1:2] == " " else phrase


def _commands(title: str, command: Any) -> list[str]:  # noqa: ANN401
    lines: list[str] = []
    for name, inner in getattr(command, "commands", {}).items():
        if not inner.hidden:
            lines += [".TP", f".BR {_escape(f'{title}-{name}')} (1)", _prose(inner.get_short_help_str(1000))]
    return [".SH COMMANDS", *lines] if lines else []


def _parameters(command: Any, context: Any) -> list[str]:  # noqa: ANN401
    lines: list[str] = []
    for heading, kind in (("ARGUMENTS", "argument"), ("OPTIONS", "option")):
        if rows := list(help_records(command, context, kind)):
            lines.append(f".SH {heading}")
            for name, text in rows:
                lines += [".TP", _marked(name), _prose(re.sub(r" +", " ", text))]
    return lines


def _global_options(title: str) -> list[str]:
    """Return where the options are told that stand before the command."""
    if title == "elmo":
        return []
    told = "Before the command stand those of all commands: --quiet, --config and --show-settings."
    return [".PP", _prose(told), "See", ".BR elmo (1)."]


def _marked(name: str) -> str:
    """Return options in bold and what they take in italics."""
    marked = [rf"\fB{_escape(word)}\fR" if word.startswith("-") else rf"\fI{_escape(word)}\fR" for word in name.split()]
    return " ".join(marked).replace(r",\fR", r"\fR,")


def _section(heading: str, rows: Rows, font: str = "B") -> list[str]:
    lines = [f".SH {heading}"]
    for name, text in rows:
        lines += [".TP", f".{font} {_escape(name)}", _prose(text)]
    return lines if rows else []


def _examples(title: str) -> list[str]:
    lines = [".SH EXAMPLES"]
    for what, example in EXAMPLES.get(title, []):
        lines += [".PP" if len(lines) > 1 else "", _prose(f"{what}:"), *_shown([example])]
    return [line for line in lines if line] if len(lines) > 1 else []


def _see_also(title: str, titles: Sequence[str]) -> list[str]:
    """Return references to the pages that are related, as far as they exist, and to the group above."""
    above = [title.rpartition("-")[0]] if "-" in title else [name for name in titles if name.count("-") == 1]
    pages = [(name, 1) for name in sorted({*above, *text_of(title).related} & set(titles))]
    return [
        ".SH SEE ALSO",
        ",\n".join(f".BR {_escape(name)} ({section})" for name, section in [*pages, (_FORMAT_PAGE, 5)]),
    ]


def _paragraphs(parts: Sequence[str | tuple[str, ...]]) -> list[str]:
    """Return paragraphs of running text, and lines that are shown as they are."""
    lines: list[str] = []
    for number, part in enumerate(parts):
        if isinstance(part, str):
            lines += [".PP"] * (number > 0) + [_prose(" ".join(part.split()))]
        else:
            lines += _shown(part)
    return lines


def _shown(lines: Sequence[str]) -> list[str]:
    return [".RS 4", ".EX", *map(_escape, lines), ".EE", ".RE"]


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
