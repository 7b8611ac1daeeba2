"""A user's file of settings: what it says, and on which line each setting stands."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elmo_cli.errors import ConfigError
from elmo_cli.storage.run_dir import to_toml
from elmo_cli.storage.settings_file import read_settings_file

TOML = '''# a comment

device = "cpu"
heldout = [
  "a.txt",  # with a comment
  "[embed]",
]
mix.seed = 3

[embed]
layers = """
[train]
top"""
"batch-size" = 12

[mix.learn]
epochs = 5
'''
LINES = {
    ("device",): 3,
    ("heldout",): 4,
    ("mix",): 8,
    ("mix", "seed"): 8,
    ("embed",): 10,
    ("embed", "layers"): 11,
    ("embed", "batch-size"): 14,
    ("mix", "learn"): 16,
    ("mix", "learn", "epochs"): 17,
}


def written(folder: Path, text: str) -> Path:
    path = folder / "f.toml"
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["", "BOM"])
def test_each_key_has_the_line_on_which_it_begins(tmp_path: Path, end: str, mark: str) -> None:
    file = read_settings_file(written(tmp_path, mark + TOML.replace("\n", end)))
    assert dict(file.lines) == LINES


def test_a_place_names_file_and_line(tmp_path: Path) -> None:
    path = written(tmp_path, TOML)
    assert str(read_settings_file(path).place(("embed", "layers"))) == f"{path}:11"


KEYS = st.text("abcdefgh_-", min_size=1, max_size=6)
VALUES = st.one_of(st.text(max_size=20), st.integers(), st.booleans(), st.lists(st.text(max_size=5), max_size=3))


@given(tables=st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=4), max_size=4))
def test_lines_are_those_of_the_written_text(tmp_path_factory: pytest.TempPathFactory, tables: dict) -> None:
    text = to_toml(tables)
    file = read_settings_file(written(tmp_path_factory.mktemp("settings"), text))
    assert file.tables == tables
    shown = text.split("\n")
    for path, line in file.lines.items():
        assert shown[line - 1].startswith(f"[{path[0]}]" if len(path) == 1 else f"{path[1]} = ")


def test_a_byte_that_is_not_utf8_is_kept_as_in_names_of_files(tmp_path: Path) -> None:
    path = tmp_path / "f.toml"
    path.write_bytes(b'heldout = ["caf\xe9.txt"]\n')
    assert read_settings_file(path).tables == {"heldout": ["caf\udce9.txt"]}


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a = 1\nb = top\n", "2:5", "invalid value"),
        ('a = "x\n', "1:7", "illegal character '\\n'"),
        ("a = 1\nb = [1,\n", "2:8", "invalid value"),
        ("a = 1\na = 2\n", "2:6", "cannot overwrite a value"),
        ("[a\n", "1:3", "expected ']' at the end of a table declaration"),
    ],
)
def test_what_is_no_toml_is_told_with_line_and_column(tmp_path: Path, text: str, place: str, problem: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        read_settings_file(path)
    assert str(caught.value).splitlines()[0] == f"{path}:{place}: {problem}"
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("name", "problem"), [("no.toml", "no such file of settings"), (".", "Is a directory")])
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, name: str, problem: str) -> None:
    path = tmp_path / name
    with pytest.raises(ConfigError) as caught:
        read_settings_file(path)
    assert str(caught.value) == f"{path}: {problem}\n  fix: check --config or the variable ELMO_CONFIG"
