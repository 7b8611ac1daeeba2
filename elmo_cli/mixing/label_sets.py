"""Labels of a text beside those that were learned, and of what kind these are."""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from elmo_cli.errors import DataError, Place
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from elmo_cli.storage.mix_file import MixFile

JSON_LABELS: Final = "json_labels"  # in a mix file's record of the text learned on; absent where labels are strings
_SHOWN: Final = 5


def note_never_learned(
    labels: Iterable[Sequence[str]], learned: Collection[str], reporter: Reporter, *, whose: str = ""
) -> None:
    """Say which labels of a text count as errors, because they were never learned.

    Args:
        labels: of each sentence.
        learned: all that can be predicted.
        reporter: told them.
        whose: labels they are, for the note.
    """
    unknown = _all_of(labels).difference(learned)
    if unknown:
        reporter.note(f"{whose} labels that were never learned count as errors: {_some(unknown)}".lstrip())


def check_gold(labels: Iterable[Sequence[str]], learned: Collection[str], name: str) -> None:
    """Refuse a text that has none of the labels that were learned: every score would be 0.

    Args:
        labels: of each sentence.
        learned: all that can be predicted.
        name: of the text.

    Raises:
        DataError: with some labels of both.
    """
    found = _all_of(labels)
    if found.isdisjoint(learned):
        message = f"the mix has learned none of the labels {_some(found)}; it knows {_some(learned)}"
        raise DataError(message, where=Place(name), fix="choose another --label-column, or another mix")


def has_json_labels(mix: "MixFile") -> bool:
    """Tell whether the labels of a mix are the JSON of numbers, of true and of false; else they are strings."""
    return bool(mix.data.get("train", {}).get(JSON_LABELS))


def _all_of(labels: Iterable[Sequence[str]]) -> set[str]:
    return {label for row in labels for label in row}


def _some(labels: Collection[str]) -> str:
    return ", ".join(sorted(labels)[:_SHOWN]) + (", ..." if len(labels) > _SHOWN else "")
