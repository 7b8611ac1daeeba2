"""A token as a fixed row of character ids: the bytes of its UTF-8 form between two marks.

The ids are those of bilm-tf's training code: 0..255 are byte values, then five marks. There is no id for "no token
here", because nothing in this package pads sentences.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

BEGIN_SENTENCE: Final = 256
END_SENTENCE: Final = 257
BEGIN_WORD: Final = 258
END_WORD: Final = 259
PADDING: Final = 260
CHARACTER_COUNT: Final = 261

SENTENCE_START: Final = "<S>"  # stands before the first token of every sentence
SENTENCE_END: Final = "</S>"
_MARKERS: Final = {SENTENCE_START: BEGIN_SENTENCE, SENTENCE_END: END_SENTENCE}

MARKS_A_TOKEN: Final = 2  # begin-word and end-word


def token_bytes(token: str) -> bytes:
    """Return a token's UTF-8 bytes; a lone surrogate, which has none, contributes nothing (as in bilm-tf)."""
    return token.encode("utf-8", errors="ignore")


def is_cut(token: str, max_characters: int) -> bool:
    """Tell whether a token has more bytes than a model with ``max_characters`` ids a token reads."""
    return len(token) * 4 > max_characters - MARKS_A_TOKEN and len(token_bytes(token)) > max_characters - MARKS_A_TOKEN


def character_ids(tokens: Sequence[str], max_characters: int) -> NDArray[np.int64]:
    """Return ids [tokens, max_characters]: begin-word, the bytes, end-word, padding.

    Bytes past ``max_characters - 2`` are cut before the end mark is set, and the cut may split a character. The
    literal tokens ``<S>`` and ``</S>`` become the sentence marks, as in AllenNLP.
    """
    rows = np.full((len(tokens), max_characters), PADDING, dtype=np.int64)
    rows[:, 0] = BEGIN_WORD
    room = max_characters - MARKS_A_TOKEN
    for row, token in zip(rows, tokens, strict=True):
        marker = _MARKERS.get(token)
        if marker is not None:
            row[1:3] = marker, END_WORD
            continue
        raw = token_bytes(token)[:room]
        row[1 : len(raw) + 1] = np.frombuffer(raw, dtype=np.uint8)
        row[len(raw) + 1] = END_WORD
    return rows
