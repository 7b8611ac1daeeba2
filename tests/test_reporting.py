"""Counts and durations as a person writes them."""

import pytest

from elmo_cli.reporting import counted, duration_text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 tokens"), (1, "1 token"), (2, "2 tokens"), (12_345, "12,345 tokens")]
)
def test_one_of_a_thing_is_no_plural(number: int, text: str) -> None:
    assert counted(number, "token") == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (0.04, "0.04s"), (59.4, "59s"), (60, "1m"), (3599, "1h 00m"), (7500, "2h 05m"), (360_000, "100h 00m")],
)
def test_a_duration_has_two_units_at_most(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
