"""What an index says of itself: ``index.json``, which names its parts, their files and the model of their vectors.

An index is a folder. Each append adds a part, a folder of its own that never changes again, and then replaces
``index.json``: so an index is whole at any moment, whatever stops the program.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from elmo_cli.errors import DataError, Place
from elmo_cli.neighbors.corpus_text import Reading
from elmo_cli.storage.files import write_text_whole
from elmo_cli.storage.fingerprints import fingerprint
from elmo_cli.storage.model_dir import WEIGHTS_FILE, ModelConfig

FORMAT: Final = 1
INFO_FILE: Final = "index.json"
_SUM: Final = "sha256"  # of the rest of index.json
_PLAIN_NAME: Final = re.compile(r"\w[\w.-]*")  # of a file or folder of the index itself, whatever index.json says
_BUILD_AGAIN: Final = "build it again with: elmo index CORPUS -o {} --force"


@dataclass(frozen=True, slots=True)
class ModelMark:
    """Which model made vectors.

    Attributes:
        name: of its folder.
        fingerprint: the same for the same weights and shape, wherever the folder lies.
    """

    name: str
    fingerprint: str

    def __str__(self) -> str:
        return f"{self.name} ({self.fingerprint[:12]})"


@dataclass(frozen=True, slots=True)
class FileMark:
    """A file of a part.

    Attributes:
        size: in bytes.
        sha256: None for vectors, whose rows have sums of their own, looked at as they are read.
    """

    size: int
    sha256: str | None = None


@dataclass(frozen=True, slots=True)
class PartInfo:
    """One part of an index.

    Attributes:
        folder: its name.
        sources: names of its texts.
        rows: tokens that have a vector.
        sentences: that have such a token.
        types: word types of these tokens.
        tokens: in the texts, also those left out.
        files: all files of the part.
    """

    folder: str
    sources: tuple[str, ...]
    rows: int
    sentences: int
    types: int
    tokens: int
    files: Mapping[str, FileMark] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What ``index.json`` says.

    Attributes:
        model: that made the vectors.
        layers: that are stored.
        vector_dim: numbers a vector has.
        reading: how the texts were read.
        selection: which tokens were kept, in words.
        parts: in order.
        approximate: file of an approximate index by layer.
    """

    model: ModelMark
    layers: tuple[int, ...]
    vector_dim: int
    reading: Reading
    selection: Mapping[str, Any] = field(default_factory=dict)
    parts: tuple[PartInfo, ...] = ()
    approximate: Mapping[int, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Tokens that have a vector, in all parts."""
        return sum(part.rows for part in self.parts)


def mark_model(folder: Path, config: ModelConfig) -> ModelMark:
    """Return which model a folder holds.

    Raises:
        ModelError: its weights cannot be read.
    """
    return ModelMark(folder.resolve().name, fingerprint(folder / WEIGHTS_FILE, config.bilm))


def write_info(folder: Path, info: IndexInfo) -> None:
    """Write ``index.json``, whole or not at all; all that it names has to be there."""
    data = {"format": FORMAT, **asdict(info)}
    data["approximate"] = {str(layer): name for layer, name in info.approximate.items()}
    data[_SUM] = _sum(data)
    write_text_whole(folder / INFO_FILE, json.dumps(data, indent=1, ensure_ascii=False) + "\n")


def read_info(folder: Path) -> IndexInfo:
    """Read ``index.json``.

    Raises:
        DataError: there is none, or it is damaged or of a later format.
    """
    path = folder / INFO_FILE
    if not path.is_file():
        raise DataError(*_no_index(folder), where=Place(str(folder)), fix="make one with: elmo index CORPUS -o FOLDER")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["format"] > FORMAT:
            raise DataError(
                f"the index has format {data['format']}; this version reads up to {FORMAT}",
                where=Place(str(folder)),
                fix="install a newer elmo-cli, or build the index again",
            )
        if data.pop(_SUM) != _sum(data):
            raise damaged(folder, f"the sum of {INFO_FILE} does not fit it")
        return _info(data)
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(folder, f"{INFO_FILE} is not what this tool writes") from error


def damaged(folder: Path, why: str) -> DataError:
    """Return what to tell of an index that cannot be trusted."""
    return DataError(f"the index is damaged: {why}", where=Place(str(folder)), fix=_BUILD_AGAIN.format(folder))


def _no_index(folder: Path) -> tuple[str]:
    if not folder.exists():
        return ("no such index",)
    return ("is no index (no index.json in it)" if folder.is_dir() else "is a file, not an index's folder",)


def _sum(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _info(data: dict[str, Any]) -> IndexInfo:
    parts = [
        PartInfo(
            **{
                **part,
                "sources": tuple(part["sources"]),
                "files": {name: FileMark(**mark) for name, mark in part["files"].items()},
            }
        )
        for part in data["parts"]
    ]
    names = [*data["approximate"].values(), *(part.folder for part in parts), *(n for p in parts for n in p.files)]
    if not all(isinstance(name, str) and _PLAIN_NAME.fullmatch(name) for name in names):
        raise ValueError("a name of a file that is none of this index")
    if not all(isinstance(source, str) for part in parts for source in part.sources):
        raise ValueError("a source that is no name")
    if not data["layers"] or not all(type(number) is int for number in (*data["layers"], data["vector_dim"])):
        raise ValueError("layers that are no numbers")
    return IndexInfo(
        model=ModelMark(**data["model"]),
        layers=tuple(data["layers"]),
        vector_dim=data["vector_dim"],
        reading=Reading(**data["reading"]),
        selection=dict(data["selection"]),
        parts=tuple(parts),
        approximate={int(layer): name for layer, name in data["approximate"].items()},
    )
