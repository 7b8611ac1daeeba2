"""What a run writes down of its text to be able to go on, and how it finds that text again."""

from collections.abc import Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from elmo_cli.config import TrainingSettings
from elmo_cli.errors import DataError, Place
from elmo_cli.text.corpus import Corpus
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions
from elmo_cli.text.sources import STDIN, display_name
from elmo_cli.training.sources import TextSources
from elmo_cli.training.workplace import Workplace


def prepare(files: Sequence[str], options: TextOptions, place: Workplace) -> Corpus | None:
    """Return the prepared corpus of some files; None if there are none."""
    if not files:
        return None
    return prepare_corpus(files, options, cache=place.cache, workers=place.workers, reporter=place.reporter)


def prepared_before(text: dict[str, Any], names: Sequence[str], place: Workplace) -> list[Corpus | None]:
    """Return the corpora a run began with: as prepared then, or prepared again from the same files.

    Args:
        text: what the run's settings say of its text.
        names: of the corpora there.
        place: to work in.

    Raises:
        DataError: the text is no longer what it was.
        KeyError: something is missing in the settings.
    """
    options = TextOptions(text["mode"], text["language"], text["errors"], text.get("column", 1))
    return [_prepared_before(text, name, options, place) for name in names]


def _prepared_before(text: dict[str, Any], name: str, options: TextOptions, place: Workplace) -> Corpus | None:
    files = text[name]
    if not files:
        return None
    folder = Path(text[f"prepared_{name}"])
    if (folder / "corpus.json").is_file():
        return Corpus(folder).named([display_name(file) for file in files])
    corpus = prepare(files, options, place)
    if corpus is None or corpus.folder.name != folder.name:
        raise DataError("the text has changed since the run began", where=Place(", ".join(files)))
    return corpus


def settings_tables(
    sources: TextSources, corpora: Sequence[Corpus | None], settings: TrainingSettings
) -> dict[str, dict[str, Any]]:
    """Return what a run writes down to be able to go on.

    Args:
        sources: of the text.
        corpora: as prepared from them: to train on, held out, general.
        settings: with every choice made.
    """
    files = {"corpora": sources.corpora, "heldout": sources.heldout, "general": sources.general}
    text: dict[str, Any] = {name: _absolute(names) for name, names in files.items()}
    for name, corpus in zip(files, corpora, strict=False):
        text[f"prepared_{name}"] = str(corpus.folder.absolute()) if corpus else None
    text |= asdict(sources.options)
    return {"training": asdict(settings), "text": text, "made_by": {"tool": f"elmo {version('elmo-cli')}"}}


def _absolute(names: Sequence[str]) -> list[str]:
    """Return file names that hold from any working folder; standard input stays what it is."""
    return [name if name == STDIN else str(Path(name).absolute()) for name in names]
