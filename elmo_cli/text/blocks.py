"""Lines in blocks that can be made into sentences one without the other, and paragraphs within them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from elmo_cli.errors import DataError
from elmo_cli.text.sources import Line

# A block is what is tokenized at once, in one process.
_BLOCK_LINES: Final = 256
_BLOCK_CHARACTERS: Final = 100_000


@dataclass(frozen=True, slots=True)
class Paragraphs:
    """What parts the lines of a source into paragraphs: a blank line.

    Attributes:
        white: the characters of a blank line; None for all that is white space.
        longest: characters, about; what is longer is cut at a line's end, or refused, to bound memory.
        may_cut: whether it is cut.
    """

    white: str | None
    longest: int
    may_cut: bool

    def is_blank(self, line: Line) -> bool:
        """Tell whether a line parts paragraphs."""
        return not line.text.strip(self.white)

    def continues(self, previous: Line, line: Line) -> bool:
        """Tell whether a line belongs to the paragraph of the line before."""
        is_next = previous.place.source == line.place.source and (previous.place.line or 0) + 1 == line.place.line
        return is_next and not self.is_blank(previous) and not self.is_blank(line)

    def of(self, lines: Sequence[Line]) -> Iterator[list[Line]]:
        """Yield the paragraphs of a block, without the blank lines between them."""
        paragraph: list[Line] = []
        for line in lines:
            if paragraph and not self.continues(paragraph[-1], line):
                yield paragraph
                paragraph = []
            if not self.is_blank(line):
                paragraph.append(line)
        if paragraph:
            yield paragraph


RUNNING_TEXT: Final = Paragraphs(white=None, longest=1_000_000, may_cut=True)
# A sentence cut in two would be another one. White space beyond ASCII may be a token.
ROWS: Final = Paragraphs(white=" \t\r\v\f", longest=10_000_000, may_cut=False)


def blocks(lines: Iterable[Line], paragraphs: Paragraphs | None) -> Iterator[list[Line]]:
    """Yield all lines in blocks; paragraphs stay whole.

    Args:
        lines: of one source after another.
        paragraphs: None if every line stands alone.

    Raises:
        DataError: a paragraph that may not be cut has no end.
    """
    block: list[Line] = []
    size = 0
    for line in lines:
        is_end = paragraphs is None or (bool(block) and not paragraphs.continues(block[-1], line))
        if paragraphs is not None and not is_end and size >= paragraphs.longest:
            if not paragraphs.may_cut:
                message = f"no blank line ends the sentence in {paragraphs.longest:,} characters"
                raise DataError(message, where=line.place, fix="part the sentences by blank lines")
            is_end = True
        if is_end and (len(block) >= _BLOCK_LINES or size >= _BLOCK_CHARACTERS):
            yield block
            block, size = [], 0
        block.append(line)
        size += len(line.text) + 1
    if block:
        yield block
