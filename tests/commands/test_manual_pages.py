"""The manual pages and the help: whole, clean, readable, installed in their sections; the format page told by files."""

import json
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from command_line import DATA, Answer

PROJECT = Path(__file__).parent.parent.parent
PAGES = sorted((PROJECT / "man").iterdir())
FORMAT_PAGE = PROJECT / "man" / "elmo-model.5"
every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def plain(page: Path) -> str:
    """Return a page without roff's marks."""
    text = re.sub(r"\\f.", "", page.read_text(encoding="utf-8"))
    return text.replace("\\-", "-").replace("\\(ti", "~")


def section(page: Path, heading: str) -> str:
    return plain(page).partition(f"\n.SH {heading}\n")[2].partition("\n.SH ")[0]


def commands(command: Any = None, title: str = "elmo") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 (Typer's)
    """Yield title and command of every command and group."""
    import typer.main

    from elmo_cli.commands.app import app

    command = command or typer.main.get_command(app)
    yield title, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, f"{title}-{name}")


def test_every_command_and_group_has_a_page() -> None:
    assert {page.name for page in PAGES} == {f"{title}.1" for title, _ in commands()} | {FORMAT_PAGE.name}


@every_page
def test_groff_has_no_complaint(page: Path) -> None:
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    run = subprocess.run(["groff", "-ww", "-man", "-Tutf8", "-z", page], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


@every_page
def test_mandoc_has_no_complaint(page: Path) -> None:
    if shutil.which("mandoc") is None:
        pytest.skip("mandoc is not installed")
    run = subprocess.run(["mandoc", "-T", "lint", "-W", "style", page], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")


@every_page
def test_no_line_of_an_example_is_too_long_for_a_terminal(page: Path) -> None:
    shown = re.findall(r"^\.EX\n(.*?)^\.EE", plain(page), flags=re.DOTALL | re.MULTILINE)
    assert [line for block in shown for line in block.splitlines() if len(line) > 69] == []


def test_every_command_and_option_of_an_example_exists() -> None:
    from elmo_cli.commands.manual_examples import EXAMPLES

    found = dict(commands())
    for title, examples in EXAMPLES.items():
        for line in (line for _, example in examples for line in re.findall(r"\belmo ([^|>&]*)", example)):
            words = shlex.split(line)
            while words[0].startswith("-"):  # global options, before the command
                words = words[1 + (words[0] == "--config") :]
            command = found.get("-".join(["elmo", *words[:2]])) or found[f"elmo-{words[0]}"]
            options = {
                option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
            }
            assert {word for word in words if re.match("--?[a-z]", word)} <= options, title


@every_page
def test_a_page_has_examples_files_and_related_pages(page: Path) -> None:
    headings = ["EXAMPLES", "SEE ALSO"] + ["EXIT STATUS", "ENVIRONMENT"] * (page.suffix == ".1")
    assert [heading for heading in headings if not section(page, heading)] == []


@every_page
def test_related_pages_exist(page: Path) -> None:
    named = re.findall(r"^\.BR (\S+) \((\d)\)", section(page, "SEE ALSO"), flags=re.MULTILINE)
    assert {f"{name}.{number}" for name, number in named} <= {other.name for other in PAGES}


def test_only_training_can_diverge() -> None:
    pages = {page.stem for page in PAGES if re.search(r"^\.B 3$", section(page, "EXIT STATUS"), flags=re.MULTILINE)}
    assert pages == {"elmo", "elmo-train", "elmo-finetune"}


def test_a_variable_stands_on_the_pages_of_the_commands_that_use_it() -> None:
    for title, command in commands():
        told = section(PROJECT / "man" / f"{title}.1", "ENVIRONMENT")
        variables = {option.envvar for option in command.params if option.envvar}
        assert {name for name in variables if f".B {name}\n" not in told} == set()
        assert ("ELMO_DEVICE" in told) == ("ELMO_DEVICE" in variables)


def test_the_synopsis_is_as_a_person_writes_it() -> None:
    assert section(PROJECT / "man" / "elmo-embed.1", "SYNOPSIS") == ".B elmo embed\n[OPTIONS] [FILE...]"
    assert section(PROJECT / "man" / "elmo-info.1", "SYNOPSIS") == ".B elmo info\n[OPTIONS] NAME|DIR"
    assert section(PROJECT / "man" / "elmo-convert.1", "SYNOPSIS") == ".B elmo convert\n[OPTIONS] SOURCE... -o NAME|DIR"


@pytest.mark.parametrize("title", [title for title, _ in commands()])
def test_help_and_page_know_no_types_of_python(elmo: Callable[..., Answer], title: str) -> None:
    texts = (elmo(*title.split("-")[1:], "--help").text, plain(PROJECT / "man" / f"{title}.1"))
    for text in texts:
        assert re.findall(r"<(?:list|int|float|str|path|file|bool|text)\b[^>]*>|x[<>]=", text) == []


def test_the_help_of_a_command_begins_with_its_usage(elmo: Callable[..., Answer]) -> None:
    assert " embed [OPTIONS] [FILE...]\n" in elmo("embed", "--help").text
    assert " mix [OPTIONS] COMMAND ...\n" in elmo("mix", "--help").text


def test_the_wheel_puts_each_page_into_its_section() -> None:
    wheel = tomllib.loads((PROJECT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["shared-data"] == {
        "man": "share/man/man1",
        "man/elmo-model.5": "share/man/man5/elmo-model.5",
    }
    assert wheel["exclude"] == ["/share/man/man1/*.5"]
    assert {page.suffix for page in PAGES if page != FORMAT_PAGE} == {".1"}


def keys_of(value: object) -> set[str]:
    """Return the keys of all objects in a JSON value."""
    if isinstance(value, dict):
        return {*value, *(key for inner in value.values() for key in keys_of(inner))}
    return {key for inner in value for key in keys_of(inner)} if isinstance(value, list) else set()


def unnamed(names: set[str]) -> set[str]:
    """Return the names that the format page does not have as words."""
    text = plain(FORMAT_PAGE)
    return {name for name in names if not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", text)}


def test_every_key_of_a_model_s_config_is_in_the_format_page(
    elmo: Callable[..., Answer], model: Path, here: Path
) -> None:
    adapted = here / "adapted"
    lines = (DATA / "harbour.txt").read_text().splitlines(keepends=True)
    (here / "domain.txt").write_text("".join(lines[:60]))
    (here / "general.txt").write_text("".join(lines[-10:]))
    options = ("--max-steps", 2, "--general", "general.txt", "--extend-vocab", 3, "--input", "tokens", "-o", adapted)
    assert elmo("finetune", "domain.txt", "-m", model, *options).code == 0
    for folder in (PROJECT / "models" / "small-en", model, adapted):
        keys = keys_of(json.loads((folder / "config.json").read_text()))
        assert unnamed(keys) == set()
        assert len(keys) > 40
    metrics = [json.loads(line) for line in (adapted / "run" / "metrics.jsonl").read_text().splitlines()]
    tables = tomllib.loads((adapted / "run" / "settings.toml").read_text())
    assert unnamed(keys_of(metrics) | keys_of(tables)) == set()
    files = {re.sub(r"-\d+$", "-STEP", path.name) for path in (adapted / "run").rglob("*")}
    assert {name for name in files if name not in plain(FORMAT_PAGE)} == set()


def test_every_setting_of_training_is_in_the_format_page() -> None:
    from elmo_cli.config import CharCNNConfig, FinetuneSettings, LSTMConfig, TrainingSettings

    kinds = (CharCNNConfig, LSTMConfig, TrainingSettings, FinetuneSettings)
    assert unnamed({field.name for kind in kinds for field in fields(kind)}) == set()


def test_every_tensor_is_in_the_format_page() -> None:
    from safetensors import safe_open

    from elmo_cli.config import PRESETS
    from elmo_cli.storage.weights import tensor_shapes

    with safe_open(PROJECT / "models" / "small-en" / "model.safetensors", "numpy") as weights:
        names = set(weights.keys())
    names |= {name for shape in PRESETS.values() for name in tensor_shapes(shape, 10)}
    patterns = {re.sub(r"\.\d+\.", ".K.", name) for name in names}
    assert unnamed(patterns) == set()
    told = set(re.findall(r"^\.BR (\S+\.\S+) \"? ?\[", plain(FORMAT_PAGE).replace(' " [', " ["), flags=re.MULTILINE))
    told |= set(re.findall(r'^\.BR (\S+) " \[', plain(FORMAT_PAGE), flags=re.MULTILINE))
    assert told == patterns


def test_the_format_page_is_of_this_version() -> None:
    from importlib.metadata import version

    from elmo_cli.storage.model_dir import FORMAT, MODEL_FILES

    assert f'"elmo {version("elmo-cli")}" "File Formats"' in plain(FORMAT_PAGE)
    assert f"The number of this format, {FORMAT}." in plain(FORMAT_PAGE)
    assert [name for name in MODEL_FILES if f"\n.I {name}\n" not in plain(FORMAT_PAGE)] == []
