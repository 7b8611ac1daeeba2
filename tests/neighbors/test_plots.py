"""Plots: whole files that need nothing else, with all text escaped."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from elmo_cli.errors import ConfigError
from elmo_cli.neighbors.coloring import OTHER, PALETTE, color
from elmo_cli.neighbors.plots import Plot, PlotPoint, check_suffix, write_plot

NASTY = '</title><script>alert("1")</script>&\x1b[31m'


def plot(*names: object) -> Plot:
    about = [
        PlotPoint("He wrote a ", "play", f" {NASTY}", f"news {NASTY}.txt:{number}") for number in range(len(names))
    ]
    points = np.arange(2.0 * len(names)).reshape(-1, 2)
    return Plot(f"play {NASTY}", points, about, color(names))


def test_an_svg_has_a_point_and_a_line_for_each_occurrence(tmp_path: Path) -> None:
    write_plot(tmp_path / "x.svg", plot("a", "b", NASTY))
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    titles = [element.text for element in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 3
    shown = NASTY.replace("\x1b", "\ufffd")
    assert titles[0] == f"He wrote a [play] {shown} news {shown}.txt:0"
    assert len([e for e in root.iter() if e.tag.endswith("circle")]) == 6  # three of them in the legend
    assert not [e for e in root.iter() if e.tag.endswith("script")]


def test_what_xml_may_not_hold_is_replaced(tmp_path: Path) -> None:
    write_plot(tmp_path / "x.svg", plot("a\uffff", "b\ufffe"))
    root = ElementTree.parse(tmp_path / "x.svg").getroot()
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[1:] == ["a\ufffd", "b\ufffd"]


def test_a_page_needs_no_network_and_holds_no_text_unescaped(tmp_path: Path) -> None:
    write_plot(tmp_path / "x.html", plot("a", "b", NASTY))
    page = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert "http" not in page
    assert "alert(" in page
    assert "<script>alert" not in page
    assert page.count("<script>") == 1
    assert page.count("<template>He wrote a <b>play</b> &lt;/title") == 3
    assert "\x1b" not in page


def test_a_png_is_one(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib, an extra, is not installed")
    write_plot(tmp_path / "x.png", plot("a$b$", "b", 27 * "c" + "$d$"))
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_another_suffix_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"cannot be written as 'x\.pdf'"):
        check_suffix(Path("x.pdf"))


def test_each_of_a_few_values_has_a_colour_and_the_rarest_are_grey() -> None:
    found = color(["b", "a", "b", None])
    assert found.colors == (PALETTE[0], PALETTE[1], PALETTE[0], PALETTE[2])
    assert found.legend == (("b", PALETTE[0]), ("a", PALETTE[1]), ("(none)", PALETTE[2]))
    many = color([name for name in "abcdefgh" for _ in range(2)] + ["i"])
    assert many.colors[-1] == OTHER
    assert many.legend[-1] == ("others", OTHER)


def test_numbers_are_a_scale_and_a_few_of_them_are_groups_in_their_order() -> None:
    years = color([str(year) for year in range(1990, 2010)])
    assert years.colors[0] == "#440154"
    assert [name for name, _ in years.legend] == ["1990", "1999.5", "2009"]
    assert len(set(years.colors)) == 20
    assert [name for name, _ in color(["10", "9", "10"]).legend] == ["9", "10"]
    assert color([-1e308, *range(9), 1e308]).legend == (("-1e+308", "#440154"), ("0", "#21918c"), ("1e+308", "#bedc1e"))
