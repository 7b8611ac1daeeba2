"""Other tools' models as they lie on a disk: which of the files named, or in a folder or zip, is what."""

import gzip
import json
import lzma
import re
import shutil
import struct
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elmo_cli.errors import ModelError, Place
from elmo_cli.storage.model_dir import DEEPEST, is_deeper
from elmo_cli.storage.registry import is_model

_WEIGHT_SUFFIXES = (".hdf5", ".h5")
# What Python's own libraries raise about damaged archives.
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, RuntimeError, ValueError, struct.error)
_VOCABULARY_NAMES = ("vocab.txt", "vocab.txt.gz")
_ASCII_WHITE_SPACE = " \t\r\v\f"
_DEEPEST_OPTIONS = DEEPEST - 2  # a model's config records them two levels down
_ENCRYPTED = 1  # bit of a zip entry's flags
# Weights hardly shrink in a zip, and words to a third; a "zip bomb" unpacks to a thousand times its size.
_LARGEST_RATIO = 50
_ALWAYS_FINE = 1 << 24  # bytes


@dataclass(frozen=True, slots=True)
class ForeignModel:
    """The files of a model of bilm-tf, AllenNLP, simple_elmo or pytorch-fast-elmo.

    Attributes:
        options: ``options.json``.
        weights: HDF5; None where a checkpoint holds them.
        checkpoint: what TensorFlow calls the checkpoint's prefix; None where there is none.
        vocabulary: one type a line, perhaps gzipped; None where there is none.
    """

    options: Path
    weights: Path | None
    checkpoint: Path | None
    vocabulary: Path | None


@contextmanager
def foreign_model(sources: Sequence[Path]) -> Iterator[ForeignModel]:
    """Find the parts of a model.

    Args:
        sources: a folder, a zip, or the files themselves in any order. Next to a weights file that is named alone its
            options are looked for.

    Raises:
        ModelError: a part is missing, there is more than one of it, or the folder is of a kind that is not read.
    """
    for source in sources:
        if not source.exists():
            raise ModelError("no such file or folder", where=Place(str(source)), fix="check the name")
    with tempfile.TemporaryDirectory(prefix="elmo-") as scratch:
        files: list[Path] = []
        for source in sources:
            if source.is_dir():
                _refuse_other_kinds(source)
                files += sorted(path for path in source.iterdir() if path.is_file())
            elif source.suffix not in _WEIGHT_SUFFIXES and _is_zip(source):
                files += _unpacked(source, Path(scratch))
            else:
                files.append(source)
        yield _sorted_out(files, sources)


def read_options(path: Path) -> dict[str, Any]:
    """Read ``options.json``.

    Raises:
        ModelError: the file cannot be read or is not a JSON object.
    """
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"cannot be read: {error.strerror}", where=Place(str(path))) from error
    except (ValueError, RecursionError) as error:
        raise ModelError(f"is not JSON: {error}", where=Place(str(path))) from error
    if is_deeper(options, _DEEPEST_OPTIONS):
        raise ModelError("is nested too deeply", where=Place(str(path)))
    if not isinstance(options, dict):
        raise ModelError("is not the options.json of an ELMo model", where=Place(str(path)))
    return options


def read_vocabulary_lines(path: Path) -> list[str]:
    """Read a bilm-tf vocabulary, one type a line; its placeholder ``!!!MAXTERMID`` is skipped.

    Lines are stripped of ASCII white space alone. bilm-tf strips all white space, and so would make one type of two
    that differ in a no-break space (U+00A0); it parts tokens at such characters, so it never reads one of that type.
    """
    try:
        text = _vocabulary_bytes(path).decode("utf-8")
    except (OSError, EOFError, zlib.error) as error:
        raise ModelError(f"cannot be read: {error}", where=Place(str(path))) from error
    except UnicodeDecodeError as error:
        raise ModelError(f"is not UTF-8: {error.reason} at byte {error.start}", where=Place(str(path))) from error
    lines = [line.strip(_ASCII_WHITE_SPACE) for line in text.removesuffix("\n").split("\n")]
    return [line for line in lines if line != "!!!MAXTERMID"]


def _vocabulary_bytes(path: Path) -> bytes:
    if path.suffix != ".gz":
        return path.read_bytes()
    most = _most_bytes(path)
    with gzip.open(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ModelError(f"unpacks to more than {most / 1e6:,.0f} MB", where=Place(str(path)), fix="unpack it yourself")
    return content


def _most_bytes(packed: Path) -> int:
    """Return how many bytes a packed file may unpack to."""
    return _ALWAYS_FINE + _LARGEST_RATIO * packed.stat().st_size


def _what_to_name(sources: Sequence[Path]) -> str:
    """Return what to name instead of sources without weights."""
    if any(map(is_model, sources)):
        return "it is a model of elmo already; to convert it for AllenNLP, add --to allennlp"
    return "name the weights and their options.json, or a folder or zip that holds them"


def _sorted_out(files: Sequence[Path], sources: Sequence[Path]) -> ForeignModel:
    place = Place(", ".join(map(str, sources)))
    weights = [path for path in files if path.suffix in _WEIGHT_SUFFIXES]
    options = [path for path in files if path.suffix == ".json"]
    if len(options) > 1:
        options = [path for path in options if path.name.endswith("options.json")] or options
    checkpoints = [path.with_suffix("") for path in files if path.suffix == ".index"]
    if not options and weights:
        options = sorted(weights[0].parent.glob("*options.json"))
    preferred = [path for path in weights if path.name in ("model.hdf5", "lm_weights.hdf5", "weights.hdf5")]
    weights = preferred if len(weights) > 1 and len(preferred) == 1 else weights
    if not weights and not checkpoints:
        others = [path for path in files if path.suffix != ".json" and path.name not in _VOCABULARY_NAMES]
        if len(others) == 1 and options:  # a name that does not tell; what it is will be said when it is opened
            weights = others
        else:
            problem = "holds no weights (no .hdf5, no TensorFlow checkpoint)"
            raise ModelError(problem, where=place, fix=_what_to_name(sources))
    if len(weights) > 1:
        names = ", ".join(path.name for path in weights)
        raise ModelError(f"holds several weights: {names}", where=place, fix="name one of them and its options.json")
    if len(options) != 1:
        what = "no options.json" if not options else f"several options: {', '.join(p.name for p in options)}"
        raise ModelError(f"has {what}", where=place, fix="name the weights and their options.json")
    vocabulary = [path for path in files if path.name in _VOCABULARY_NAMES]
    if len({path.name for path in vocabulary}) < len(vocabulary):  # a packed one beside itself is no doubt
        raise ModelError(f"holds several vocabularies called {vocabulary[0].name}", where=place, fix="name one of them")
    return ForeignModel(
        options=options[0],
        weights=weights[0] if weights else None,
        checkpoint=max(checkpoints, key=_step) if checkpoints and not weights else None,
        vocabulary=vocabulary[0] if vocabulary else None,
    )


def _step(checkpoint: Path) -> int:
    """Return the training step in the name of a checkpoint, such as ``model.ckpt-1250``."""
    digits = re.search(r"\d+$", checkpoint.name)
    return int(digits[0]) if digits else -1


def _refuse_other_kinds(folder: Path) -> None:
    """Name kinds of model that are not of this family."""
    place = Place(str(folder))
    if (folder / "char.dic").exists() or (folder / "token_embedder.pkl").exists():
        raise ModelError(
            "is a model of ELMoForManyLangs, whose token encoder (characters and whole words) is another one; "
            "elmo does not read it",
            where=place,
        )
    if (folder / "saved_model.pb").exists():
        raise ModelError("is a TensorFlow SavedModel (TF Hub), which elmo does not read", where=place)


def _is_zip(path: Path) -> bool:
    """Tell a zip by its beginning too: the end of one is where a broken download lacks it."""
    try:
        with path.open("rb") as file:
            return file.read(4) == b"PK\x03\x04" or zipfile.is_zipfile(file)
    except OSError:
        return False  # what cannot be read is told about when it is opened as what its name says


def _unpacked(archive: Path, scratch: Path) -> list[Path]:
    """Unpack the parts of a model from a zip, each under its bare name, so that no entry can lead elsewhere."""
    files = []
    place, fix = Place(str(archive)), "unpack it yourself"
    try:
        with zipfile.ZipFile(archive) as content:
            parts = {entry: name for entry in content.infolist() if (name := _name_of_part(entry)) is not None}
            size = sum(entry.file_size for entry in parts)  # no entry unpacks to more than it says
            if size > _most_bytes(archive):
                raise ModelError(f"would unpack to {size / 1e6:,.0f} MB, far more than it is", where=place, fix=fix)
            for entry, name in parts.items():
                if entry.flag_bits & _ENCRYPTED:
                    raise ModelError("is locked with a password", where=place, fix=fix)
                target = scratch / name
                with content.open(entry) as packed, target.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                files.append(target)
    except _ZIP_FAULTS as error:
        raise ModelError(f"is a damaged zip: {error}", where=place) from error
    except OSError as error:
        raise ModelError(f"cannot be unpacked: {error.strerror or error}", where=place, fix=fix) from error
    return sorted(files)


def _name_of_part(entry: zipfile.ZipInfo) -> str | None:
    """Return the bare name of an entry that is a part of a model, None for all others."""
    name = Path(entry.filename.replace("\\", "/")).name
    is_part = name.endswith((*_WEIGHT_SUFFIXES, "options.json")) or name in _VOCABULARY_NAMES
    return name if is_part and not name.startswith(".") and not entry.is_dir() else None
