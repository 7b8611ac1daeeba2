"""The figure of weights: a cell a weight, patterned as in the paper, and sound XML."""

from xml.etree import ElementTree

import pytest

from elmo_cli.mixing.figure import figure_png, figure_svg, pattern, shade

COLUMNS = [("ner <1>$\\frac{$\x1b", (0.1, 0.2, 0.7)), ("pos", (0.3, 0.4, 0.3)), ("glove", (1.0,))]


def test_the_svg_holds_every_weight_and_title() -> None:
    root = ElementTree.fromstring(figure_svg(COLUMNS))
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert sorted(text for text in texts if text and text[0] in "01") == [
        "0.10",
        "0.20",
        "0.30",
        "0.30",
        "0.40",
        "0.70",
        "1.00",
    ]
    assert {"ner <1>$\\frac{$\ufffd", "pos", "glove", "char CNN", "biLSTM 1", "biLSTM 2"} <= set(texts)


def test_weights_below_a_third_are_hatched_and_above_two_thirds_speckled() -> None:
    assert [pattern(weight, 3) for weight in (0.1, 0.4, 0.7)] == ["low", None, "high"]
    assert pattern(1.0, 1) is None


def test_a_larger_weight_is_darker() -> None:
    assert (shade(0.0), shade(1.0)) == ("#ffffff", "#1f4e79")
    assert shade(0.2) > shade(0.4) > shade(0.8)


def test_the_png_is_one() -> None:
    pytest.importorskip("matplotlib")
    assert figure_png(COLUMNS).startswith(b"\x89PNG")
