"""elmo: deep contextual word vectors."""
