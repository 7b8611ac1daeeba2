"""The command line: parse, call one procedure, write the answer. Typer and rich are used here only."""
