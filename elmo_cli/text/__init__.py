"""Bytes to sentences, tokens and ids. No torch; spaCy is imported in the function that uses it."""
