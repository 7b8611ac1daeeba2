"""Which tokens of a corpus are most like a token in its sentence, and what senses a word falls into."""
