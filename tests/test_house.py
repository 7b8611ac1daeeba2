"""The rules of DESIGN.md and STYLE.md about the source itself: floors, lengths, and what nobody may import or call."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PACKAGE = PROJECT / "elmo_cli"

FLOORS = {
    **dict.fromkeys(("errors", "locks", "reporting", "config", "settings"), 0),
    "text": 1,
    "bilm": 2,
    "storage": 3,
    **dict.fromkeys(("training", "embedding", "mixing", "neighbors", "evaluation"), 4),
    **dict.fromkeys(("probes", "tasks"), 5),
    **dict.fromkeys(("commands", "__init__", "__main__", "spacy_component", "sklearn_vectorizer"), 6),
}
HEAVY = {"torch", "spacy", "numpy", "h5py", "safetensors", "rich", "jaxtyping"}
PICKLERS = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}

SOURCES = sorted(PACKAGE.rglob("*.py"))
every_source = pytest.mark.parametrize("path", SOURCES, ids=[str(path.relative_to(PACKAGE)) for path in SOURCES])


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports_of(path: Path) -> set[str]:
    """Return the dotted names that a file imports, anywhere in it; relative imports are not used in this package."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def room_imported(name: str) -> str:
    """Return the room of an import such as ``elmo_cli.text.corpus.Corpus``, or of the package's own names."""
    room = name.split(".")[1]
    return room if room in FLOORS else "__init__"


def names_called(path: Path) -> Iterator[str]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func)


def functions_of(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def body_length(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the lines below signature and docstring: a command's signature holds the help of all its options."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def modules_loaded(*arguments: str) -> set[str]:
    """Return the modules that a fresh Python imports on its way through some arguments."""
    run = subprocess.run([sys.executable, "-X", "importtime", *arguments], capture_output=True, text=True, check=True)
    return {line.rpartition("|")[2].strip() for line in run.stderr.splitlines() if line.startswith("import time:")}


@every_source
def test_every_module_stands_in_a_room_that_has_a_floor(path: Path) -> None:
    assert room_of(path) in FLOORS


@every_source
def test_a_module_imports_from_its_own_floor_and_below(path: Path) -> None:
    rooms = {room_imported(name) for name in imports_of(path) if name.split(".")[0] == "elmo_cli"}
    assert {room for room in rooms if FLOORS[room] > FLOORS[room_of(path)]} == set()


@every_source
def test_only_the_commands_know_typer_and_rich(path: Path) -> None:
    libraries = {name.split(".")[0] for name in imports_of(path)}
    assert room_of(path) == "commands" or libraries.isdisjoint({"typer", "rich", "click"})


@pytest.mark.parametrize("path", sorted((PACKAGE / "text").glob("*.py")), ids=lambda path: path.name)
def test_the_text_floor_never_imports_torch(path: Path) -> None:
    assert "torch" not in {name.split(".")[0] for name in imports_of(path)}


@every_source
def test_nothing_is_ever_pickled(path: Path) -> None:
    assert PICKLERS.isdisjoint(name.split(".")[0] for name in imports_of(path))
    assert {"torch.load", "torch.save"}.isdisjoint(names_called(path))
    assert "allow_pickle" not in path.read_text(encoding="utf-8")


@every_source
def test_only_the_console_prints(path: Path) -> None:
    assert path == PACKAGE / "commands" / "console.py" or "print" not in names_called(path)


@every_source
def test_only_the_settings_read_the_environment(path: Path) -> None:
    names = {ast.unparse(node) for node in ast.walk(tree_of(path)) if isinstance(node, ast.Attribute)}
    assert path == PACKAGE / "settings.py" or names.isdisjoint({"os.environ", "os.getenv", "os.environb"})


@every_source
def test_no_check_is_a_bare_assert(path: Path) -> None:
    assert [node.lineno for node in ast.walk(tree_of(path)) if isinstance(node, ast.Assert)] == []


@pytest.mark.parametrize("path", [*SOURCES, *sorted((PROJECT / "tests").rglob("*.py"))], ids=lambda path: path.name)
def test_a_file_has_less_than_300_lines(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) < 300


@every_source
def test_a_function_has_at_most_60_lines(path: Path) -> None:
    assert [function.name for function in functions_of(path) if body_length(function) > 60] == []


@pytest.mark.parametrize(
    "arguments",
    [("-c", "import elmo_cli.commands.app"), ("-m", "elmo_cli", "--help"), ("-m", "elmo_cli", "--version")],
    ids=["import", "help", "version"],
)
def test_the_command_line_loads_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = modules_loaded(*arguments)
    assert "elmo_cli.commands.app" in loaded
    assert HEAVY.isdisjoint(loaded)


def test_the_help_of_a_command_loads_nothing_heavy() -> None:
    assert HEAVY.isdisjoint(modules_loaded("-m", "elmo_cli", "embed", "--help"))


def test_embedding_does_not_load_the_compiler_of_torch(tmp_path: Path) -> None:
    text = tmp_path / "line.txt"
    text.write_text("The ferry left .\n", encoding="utf-8")
    loaded = modules_loaded("-m", "elmo_cli", "embed", str(text), "-o", str(tmp_path / "line.npy"), "--input", "tokens")
    assert "torch" in loaded
    assert {"torch._dynamo", "torch._inductor", "spacy"}.isdisjoint(loaded)  # seconds, for nothing


def test_the_manual_pages_are_fresh() -> None:
    from elmo_cli.commands.manpage import manual_pages

    written = {path.name: path.read_text(encoding="utf-8") for path in (PROJECT / "man").glob("*.1")}
    assert manual_pages() == written, "run: python -m elmo_cli.commands.manpage man"
