"""Sentences that are hard for a careless batch: of mixed lengths, with empty ones, unknown words and odd spellings."""

SENTENCES = [
    ["the", "ferry", "left", "."],
    [],
    ["a"],
    ["the", "the", "unheard", "née", "x" * 70, "<S>", "."] * 5,  # longer than a batch
    ["<UNK>", "\u00a0", "left"],
    [],
    ["ferry"] * 11,
    [".", "a", "</S>"],
]
