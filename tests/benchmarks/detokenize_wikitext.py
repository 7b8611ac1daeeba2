"""WikiText as running text, as the training text of the bundled model is written.

    python tests/benchmarks/detokenize_wikitext.py wikitext2-raw-test.txt.xz -o wikitext2.txt
    python tests/benchmarks/perplexity_by_source.py wikitext2.txt --input text -m small-en

WikiText comes in tokens of its own, a paragraph a line: ``two @-@ part``, ``didn 't``, ``( 1 @,@ 000 )``. They are
joined again, dashes become `` -- `` and quotation marks ASCII, and blank lines part the paragraphs; elmo then splits
sentences and tokens as it always does. Headings are left out, as the training text has none. So perplexities are of
other tokens, and of another vocabulary, than those published for WikiText-2: they do not compare.
"""

import argparse
import re
from pathlib import Path

from elmo_cli.storage.files import write_text_whole
from elmo_cli.text.sources import read_lines

_HEADING = re.compile(r"(= )+.*( =)+")
_DASHES = re.compile(r"\s*[–—]\s*")
_QUOTES = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'"})
_JOINED = re.compile(r" @([-,.])@ ")
_CLITICS = re.compile(r" '(s|t|re|ve|ll|d|m)\b", re.IGNORECASE)
_CLOSING = re.compile(r" ([,.;:?!%)\]]|\.\.\.)(?= |$)")
_OPENING = re.compile(r"(?<![^ ])([(\[$£€]) ")
_QUOTED = re.compile(r'" ([^"]*) "')


def detokenized(paragraph: str) -> str | None:
    """Return a line of WikiText as running text; None for headings and blank lines."""
    text = paragraph.strip()
    if not text or _HEADING.fullmatch(text):
        return None
    text = _DASHES.sub(" -- ", _JOINED.sub(r"\1", text.translate(_QUOTES)))
    text = _OPENING.sub(r"\1", _CLOSING.sub(r"\1", _CLITICS.sub(r"'\1", text)))
    return _QUOTED.sub(r'"\1"', text)


def main() -> None:
    """Write the text."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wikitext")
    parser.add_argument("-o", "--output", type=Path, required=True)
    arguments = parser.parse_args()
    found = (detokenized(line.text) for line in read_lines(arguments.wikitext))
    write_text_whole(arguments.output, "\n\n".join(text for text in found if text) + "\n")


if __name__ == "__main__":
    main()
