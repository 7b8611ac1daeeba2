"""Nothing that is read is ever run: no pickle, no code, no shell, no format that can hold any of them."""

import ast
import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "elmo_cli"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# Words that have no business in the package, apart from prose and the names of methods (torch's model.eval()).
FORBIDDEN = (
    r"\b(c?_?pickle|dill|cloudpickle|joblib|shelve|marshal)\.(load|loads|dump|dumps|Unpickler|Pickler)\b",
    r"^\s*(import|from)\s+(c?_?pickle|dill|cloudpickle|joblib|shelve|marshal|yaml|code|runpy)\b",
    r"\btorch\.(load|save|hub|jit)\b",
    r"allow_pickle\s*=\s*True",
    r"(?<![\w.])(eval|exec|compile|__import__)\(",
    r"yaml\.(load|unsafe_load|full_load)",
    r"shell\s*=\s*True|os\.(system|popen)\(",
    r"trust_remote_code|weights_only\s*=\s*False",
)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_source_reads_what_could_be_run(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert [found[0] for pattern in FORBIDDEN for found in re.finditer(pattern, text, re.MULTILINE)] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_are_imported_by_names_that_stand_in_the_source(path: Path) -> None:
    """But for `elmo doctor`, whose own process imports what doctor names, and spaCy's words of a language it knows."""
    called = [node for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Call)]
    imports = [node for node in called if ast.unparse(node.func) in ("importlib.import_module", "import_module")]
    by_variable = [ast.unparse(node) for node in imports if not isinstance(node.args[0], ast.Constant)]
    allowed = {"storage/probes.py", "storage/extras.py", "neighbors/selecting.py"}
    assert by_variable == [] or str(path.relative_to(PACKAGE)) in allowed


def test_arrays_that_hold_python_objects_are_refused(tmp_path: Path) -> None:
    import numpy as np

    from elmo_cli.errors import DataError
    from elmo_cli.mixing.apply import file_rows

    np.save(tmp_path / "objects.npy", np.array([[[{}]]], dtype=object), allow_pickle=True)
    with pytest.raises(DataError):
        file_rows(str(tmp_path / "objects.npy"))
