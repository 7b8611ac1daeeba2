"""Models by name: the order of the search, and what is said when there is none."""

from pathlib import Path

import pytest

from elmo_cli.errors import ModelError
from elmo_cli.storage.registry import find_model, model_names, new_model_folder


@pytest.fixture(autouse=True)
def _only_these_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for models in folders of the test alone, none of which exists yet."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ELMO_MODELS", f"{tmp_path / 'first'}::{tmp_path / 'second'}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.setattr("elmo_cli.settings._shipped_folders", lambda: [tmp_path / "shipped"])


def make_model(folder: Path | str) -> Path:
    path = Path(folder)
    path.mkdir(parents=True)
    (path / "config.json").write_text("{}")
    return path


def message_of(name: str) -> str:
    with pytest.raises(ModelError) as caught:
        find_model(name)
    return str(caught.value)


def test_a_name_is_looked_up_here_then_as_said_then_in_the_users_folder_then_in_the_package(tmp_path: Path) -> None:
    places = [Path("models"), *(tmp_path / name for name in ("first", "second", "share/elmo/models", "shipped"))]
    for place in reversed(places):
        make_model(place / "news")
        assert find_model("news") == place / "news"


def test_a_folder_that_holds_a_model_goes_before_a_name() -> None:
    make_model("models/news")
    make_model("news")
    assert find_model("news") == Path("news")


def test_a_folder_without_a_model_does_not_hide_a_name() -> None:
    Path("news").mkdir()
    make_model("models/news")
    assert find_model("news") == Path("models/news")


def test_a_path_is_the_folder_itself(tmp_path: Path) -> None:
    assert find_model(str(make_model(tmp_path / "mine"))) == tmp_path / "mine"


def test_the_names_there_are_come_from_all_folders_once_and_sorted(tmp_path: Path) -> None:
    for folder in ("models/b", "models/a", "first/a", "share/elmo/models/c"):
        make_model(folder)
    Path("models/empty").mkdir()
    assert model_names() == ["a", "b", "c"]


def test_an_unknown_name_lists_the_names_and_suggests_the_near_one() -> None:
    make_model("models/harbour")
    make_model("shipped/small-en")
    assert message_of("harbor") == "no model 'harbor'; there are: harbour, small-en\n  fix: did you mean harbour?"


def test_an_unknown_name_that_resembles_none_asks_for_a_choice() -> None:
    make_model("models/harbour")
    message = "no model 'xyz'; there are: harbour\n  fix: name one of them, or a folder"
    assert message_of("xyz") == message


@pytest.mark.parametrize("name", ["a" * 300, "a" * 5_000])
def test_a_name_longer_than_any_file_has_names_no_model(name: str) -> None:
    make_model("models/harbour")
    assert message_of(name) == f"no model {name!r}; there are: harbour\n  fix: name one of them, or a folder"
    assert message_of(f"./{name}") == f"./{name}: no such folder\n  fix: name the folder that holds config.json"
    assert new_model_folder(name) == Path("models") / name


def test_where_there_is_no_model_at_all_the_way_to_one_is_told() -> None:
    assert message_of("small-en") == (
        "no model 'small-en'; there is none yet\n  fix: train one with `elmo train`, or name the folder of one"
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("./no", "no such folder"),
        ("./empty", "the folder holds no model (no config.json)"),
        ("./file", "is a file, not a model's folder"),
        ("..", "the folder holds no model (no config.json)"),
    ],
)
def test_a_path_without_a_model_says_what_is_there_instead(name: str, reason: str) -> None:
    Path("empty").mkdir()
    Path("file").touch()
    assert message_of(name) == f"{name}: {reason}\n  fix: name the folder that holds config.json"


@pytest.mark.parametrize(
    ("name", "folder"), [("news", "models/news"), ("./news", "news"), ("a/b", "a/b"), ("there", "there")]
)
def test_a_new_model_goes_to_a_path_as_it_is_and_to_a_name_under_models(name: str, folder: str) -> None:
    Path("there").mkdir()
    assert new_model_folder(name) == Path(folder)
