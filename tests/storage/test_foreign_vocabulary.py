"""Vocabularies of bilm-tf: which white space belongs to a word type, and which to the file."""

from pathlib import Path

from foreign_models import options_with, types_of, write_model

from elmo_cli.storage.convert import export_model, import_model
from elmo_cli.storage.model_dir import read_vocabulary


def test_types_that_differ_in_a_no_break_space_alone_are_still_two_after_a_round_trip(tmp_path: Path) -> None:
    odd = ["a", "a\u00a0", "\u3000", "\u00a0", "\u2028a"]
    options, types = options_with(), [*types_of(5), *odd]
    files = write_model(tmp_path / "theirs", options, types=types)
    config = import_model([files.folder], tmp_path / "ours", language="en", replace=False)
    export_model(tmp_path / "ours", tmp_path / "back", replace=False)
    import_model([tmp_path / "back"], tmp_path / "again", language="en", replace=False)
    for folder in ("ours", "again"):
        assert read_vocabulary(tmp_path / folder, config).types == tuple(types)


def test_line_ends_and_blanks_around_a_type_are_no_part_of_it(tmp_path: Path) -> None:
    options, types = options_with(), types_of(5)
    files = write_model(tmp_path / "theirs", options, types=types)
    assert files.vocabulary is not None
    files.vocabulary.write_bytes("".join(f"{word_type} \t\r\n" for word_type in types).encode())
    config = import_model([files.folder], tmp_path / "ours", language="en", replace=False)
    assert read_vocabulary(tmp_path / "ours", config).types == tuple(types)
