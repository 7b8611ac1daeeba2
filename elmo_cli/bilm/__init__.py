"""The biLM as torch modules. Knows no files and no text, and prints nothing."""
