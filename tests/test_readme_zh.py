"""The Chinese README says what the English one says: the same blocks in order, code, numbers and links unchanged."""

import re
import tomllib
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
CHINESE = re.compile(r"[\u4e00-\u9fff]")
CODE = re.compile(r"`[^`]+`")
LINK = re.compile(r"\[[^\]]+\]\(([^)]+)\)")
NUMBER = re.compile(r"-?\d+(?:[.,]\d+)*")
LANGUAGES = {"README.md", "README.zh.md"}  # each links to the other
CITATION = "Matthew E. Peters"  # stays in English


@dataclass(frozen=True)
class Block:
    """A fenced block, a heading, a row of a table, an item of a list, or a paragraph."""

    kind: str
    line: int  # in its file, from 1
    text: str

    @property
    def fixed(self) -> tuple[list[str], list[str], list[str]]:
        """Return what no translation changes: inline code, numbers and links, sorted, as languages order words anew."""
        code = [" ".join(span.split()) for span in CODE.findall(self.text)]
        links = LINK.findall(self.text)
        prose = CODE.sub("", LINK.sub("", self.text))
        return sorted(code), sorted(NUMBER.findall(prose)), sorted(link for link in links if link not in LANGUAGES)


def kind_of(line: str) -> str:
    if heading := re.match(r"#+ ", line):
        return f"heading {len(heading[0]) - 1}"
    if line.startswith("|"):
        return f"row of {line.count('|') - 1}"
    return "item" if line.startswith("- ") else "paragraph"


def blocks_of(name: str) -> list[Block]:
    """Return a file's blocks in order; lines of a paragraph or an item are joined."""
    found: list[Block] = []
    goes_on = fenced = False  # whether the next line belongs to the block before
    for number, line in enumerate((PROJECT / name).read_text(encoding="utf-8").splitlines(), start=1):
        fence = line.startswith("```")
        if fenced or (goes_on and line and not fence and (kind_of(line) == "paragraph")):
            last = found.pop()
            found.append(Block(last.kind, last.line, f"{last.text}\n{line}"))
            fenced = fenced and not fence
        elif line:
            found.append(Block("fence" if fence else kind_of(line), number, line))
            fenced = fence
        goes_on = bool(line) and found[-1].kind in {"item", "paragraph"}
    return found


ENGLISH = blocks_of("README.md")
TRANSLATED = blocks_of("README.zh.md")


def pairs(*kinds: str) -> list[object]:
    """Return the blocks of some kinds side by side, named by the line to look at when a test fails."""
    both = ([block for block in blocks if block.kind.startswith(kinds)] for blocks in (ENGLISH, TRANSLATED))
    return [
        pytest.param(ours, theirs, id=f"README.md:{ours.line if ours else 'end'}")
        for ours, theirs in zip_longest(*both)
    ]


def test_headings_tables_lists_and_paragraphs_come_in_the_same_order() -> None:
    assert [block.kind for block in TRANSLATED] == [block.kind for block in ENGLISH]


@pytest.mark.parametrize(("english", "chinese"), pairs("fence"))
def test_fenced_blocks_are_the_same(english: Block | None, chinese: Block | None) -> None:
    assert english is not None
    assert chinese is not None
    assert chinese.text == english.text


@pytest.mark.parametrize(("english", "chinese"), pairs("heading", "row", "item", "paragraph"))
def test_inline_code_numbers_and_links_are_the_same(english: Block | None, chinese: Block | None) -> None:
    assert english is not None
    assert chinese is not None
    assert chinese.fixed == english.fixed


@pytest.mark.parametrize(("english", "chinese"), pairs("item", "paragraph"))
def test_every_paragraph_but_the_citation_is_chinese(english: Block | None, chinese: Block | None) -> None:
    assert chinese is not None
    if chinese.text.startswith(CITATION) or set(LINK.findall(chinese.text)) & LANGUAGES:
        return
    assert CHINESE.search(CODE.sub("", chinese.text))


@pytest.mark.parametrize(("blocks", "link"), [(ENGLISH, "[中文](README.zh.md)"), (TRANSLATED, "[English](README.md)")])
def test_each_readme_links_to_the_other_below_its_title(blocks: list[Block], link: str) -> None:
    assert [block.text for block in blocks[:2]] == ["# elmo", link]


@pytest.mark.parametrize("link", sorted({link for block in TRANSLATED for link in LINK.findall(block.text)}))
def test_the_files_linked_to_exist(link: str) -> None:
    assert (PROJECT / link).is_file()


def test_the_translation_stands_in_the_source_distribution() -> None:
    settings = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "/README.zh.md" in settings["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
