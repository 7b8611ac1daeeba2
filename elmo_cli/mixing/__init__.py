"""Layers to a task's own mix of them: labelled text, the learning of equation (1), and its use."""
