"""Text to a trained biLM."""
