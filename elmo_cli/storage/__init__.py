"""Files to objects and back: models, vectors, training runs."""
