"""What may stand after --layers, and what is said where something else does."""

import pytest

from elmo_cli.embedding.selection import LayerChoice, parse_layers
from elmo_cli.errors import ConfigError

FIX = "\n  fix: choose average, top, all, or numbers such as 0,2"


@pytest.mark.parametrize(
    ("text", "indices"),
    [
        ("average", None),
        ("top", (3,)),
        ("all", (0, 1, 2, 3)),
        ("0", (0,)),
        ("3", (3,)),
        ("0,2", (0, 2)),
        ("2, 0", (2, 0)),
    ],
)
def test_names_and_numbers_of_layers_are_understood(text: str, indices: tuple[int, ...] | None) -> None:
    assert parse_layers(text, 4) == LayerChoice(indices)


def test_average_of_a_model_of_any_depth_is_one_vector_a_token() -> None:
    assert parse_layers("average", 2).row_shape(10) == (10,)


@pytest.mark.parametrize("text", ["", "best", "Top", "1.5", "0,", "0;1", "all,0"])
def test_other_words_are_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_layers(text, 3)
    assert str(caught.value) == f"--layers {text!r} is not understood{FIX}"


@pytest.mark.parametrize(("text", "number"), [("3", 3), ("0,3", 3), ("-1", -1), ("17,1", 17)])
def test_layers_that_the_model_lacks_are_refused(text: str, number: int) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_layers(text, 3)
    assert str(caught.value) == f"--layers {text!r}: the model has no layer {number}, but layers 0 to 2{FIX}"


def test_a_wrong_choice_is_a_wrong_command_line() -> None:
    with pytest.raises(ConfigError) as caught:
        parse_layers("best", 3)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(("given", "text"), [(1, "1"), ([0, 2], "0,2"), ((2,), "2")])
def test_python_may_give_numbers(given: int | list[int] | tuple[int, ...], text: str) -> None:
    assert parse_layers(given, 3) == parse_layers(text, 3)


@pytest.mark.parametrize("given", [1.5, ["top"], {0: 1}])
def test_what_is_neither_text_nor_numbers_is_a_type_error(given: object) -> None:
    with pytest.raises(TypeError):
        parse_layers(given, 3)  # type: ignore[arg-type]
