"""What the fuzzers feed: each target takes bytes, and returns if what became of them is what is promised.

Promised is an answer that holds together, or an `ElmoError`; never another exception. The targets are shared by the
tests beside this file, by the seeds (inputs that once failed), and by `coverage_guided.py`.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from elmo_cli.errors import ElmoError
from elmo_cli.text.reader import INPUT_MODES, read_sentences
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.stimuli import StimulusTable
from elmo_cli.text.tokenizer import SpacyTokenizer

# How a token stands in its line, word for word; elsewhere it may be an escape of JSON, or run over a line's end.
_VERBATIM: Final = ("lines", "tokens", "conll", "conllu")
# What makes a terminal do something, or turns the direction of the text.
_STEERING: Final = frozenset(map(chr, (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))))
_SPANNED: Final = ("lines", "text", "jsonl")  # modes in which a span holds exactly its token


@cache
def tokenizer() -> SpacyTokenizer:
    return SpacyTokenizer("en")


@contextmanager
def refused_or_fine(*places: Path) -> Iterator[None]:
    """Let a refusal pass that can be read, and that says where, if places are given: in one of these files."""
    refusal: ElmoError | None = None
    try:
        yield
    except ElmoError as error:
        refusal = error
    if refusal is not None:
        message = str(refusal)
        assert not any(character in _STEERING for character in message.replace("\n  fix: ", " ", 1)), repr(message)
        if places:
            assert refusal.where is not None, message
            assert refusal.where.source in map(str, places), message


def read_text(data: bytes, folder: Path, mode: str, errors: str = "strict") -> int:
    """Read bytes as a text; return the number of sentences."""
    file = folder / "input"
    file.write_bytes(data)
    count = 0
    with refused_or_fine(file):
        found = read_sentences([str(file)], mode=mode, tokenizer=tokenizer(), errors=errors)  # type: ignore[arg-type]
        lines: list[str] | None = None
        for sentence in found:
            count += 1
            lines = lines or _lines_of(data, errors)
            check_sentence(sentence, mode, lines)
    return count


def _lines_of(data: bytes, errors: str) -> list[str] | None:
    """Return the lines as the reader should see them; None for compressed bytes, which are not looked into here."""
    if data[:1] in b"\x1f\xfdB\x28":
        return None
    raw = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    return [line.removesuffix(b"\r").decode("utf-8", errors if errors == "replace" else "ignore") for line in raw]


def check_sentence(sentence: Sentence, mode: str, lines: list[str] | None) -> None:
    """Check that spans and places of a sentence lead to its tokens."""
    assert len(sentence.positions) == len(sentence.tokens)
    if sentence.spans is not None and sentence.text is not None:
        assert len(sentence.spans) == len(sentence.tokens)
        if mode in _SPANNED:
            assert [sentence.text[start:end] for start, end in sentence.spans] == sentence.tokens
    if lines is not None and mode in _VERBATIM:
        for token, (number, start, end) in zip(sentence.tokens, sentence.positions, strict=True):
            assert lines[number - 1][start:end] == token


def read_stimuli(data: bytes, folder: Path) -> None:
    """Read bytes as a table of stimuli, by each of its columns."""
    file = folder / "input.tsv"
    file.write_bytes(data)
    with refused_or_fine(file):
        names = data.split(b"\n")[0].removesuffix(b"\r").decode("utf-8", "ignore").split("\t")
        for name in dict.fromkeys((*names, "sentence")):
            for stimulus in StimulusTable(str(file), name).stimuli(mode="lines", tokenizer=tokenizer()):
                check_sentence(stimulus.sentence, "cells", None)


def read_model(folder: Path) -> None:
    """Read a model's folder in all ways there are, and use what can be loaded."""
    import torch

    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.selection import parse_layers
    from elmo_cli.storage.model_dir import read_config, read_vocabulary
    from elmo_cli.storage.model_info import model_info
    from elmo_cli.storage.weights import load_bilm, load_language_model

    with refused_or_fine():
        info = model_info(folder)
        assert all(isinstance(value, str) for row in info.rows() for value in row)
        json.dumps(info.to_json())
        config = read_config(folder)
        embedder = Embedder(load_bilm(folder, config), torch.device("cpu"))
        (vectors,) = embedder.embed([["A", "boat"]], parse_layers("all", config.bilm.layer_count))
        assert vectors.shape == (2, config.bilm.layer_count, config.bilm.vector_dim)
        read_vocabulary(folder, config)
        load_language_model(folder, config)


def read_metrics(folder: Path) -> None:
    """Read a run's folder as `elmo runs` does, and its newest checkpoint as `elmo train --resume` does."""
    from elmo_cli.storage.run_dir import RunDir
    from elmo_cli.storage.run_list import find_runs

    with refused_or_fine():
        for run in find_runs([folder]):
            json.dumps(run.to_json())
    with refused_or_fine():
        RunDir(folder).settings()
    with refused_or_fine():
        RunDir(folder).keep_metrics(10**9)
    with refused_or_fine():
        RunDir(folder).load_newest()


def convert(sources: list[Path], scratch: Path) -> None:
    """Convert files of another tool; nothing else than the new model may come into being in the folder above it."""
    from elmo_cli.storage.convert import import_model

    target = scratch / "converted"
    shutil.rmtree(target, ignore_errors=True)
    before = sorted(scratch.iterdir())
    with refused_or_fine():
        import_model(sources, target, language="en", replace=False)
    assert sorted({*scratch.iterdir()} - {target}) == before


def read_settings(data: bytes, folder: Path) -> None:
    """Read bytes as a file of settings."""
    from elmo_cli.storage.settings_file import read_settings_file

    file = folder / "settings.toml"
    file.write_bytes(data)
    with refused_or_fine():
        read_settings_file(file)


def read_mix_file(data: bytes, folder: Path) -> None:
    """Read bytes as a learned mix; its sum is made right where it is an object, or no change would get any further."""
    from elmo_cli.storage.mix_file import _sum_of, read_mix

    file = folder / "some.mix.json"
    try:
        content: Any = json.loads(data)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict):
        content.pop("sum", None)
        data = json.dumps({**content, "sum": _sum_of(content)}).encode("utf-8", "surrogatepass")
    file.write_bytes(data)
    with refused_or_fine(file):
        json.dumps(read_mix(file).to_json())


def read_config_alone(data: bytes, folder: Path) -> None:
    """Read bytes as the config of a model that has no other file."""
    from elmo_cli.storage.model_dir import read_config

    file = folder / "config.json"
    file.write_bytes(data)
    with refused_or_fine(file, folder):
        json.dumps(read_config(folder).bilm.to_json(), allow_nan=False)


def read_options_file(data: bytes, folder: Path) -> None:
    """Read bytes as the options of a model of bilm-tf."""
    from elmo_cli.storage.allennlp_options import config_from_options
    from elmo_cli.storage.foreign import read_options

    file = folder / "options.json"
    file.write_bytes(data)
    with refused_or_fine(file):
        json.dumps(config_from_options(read_options(file), str(file)).to_json(), allow_nan=False)


def read_zip(data: bytes, folder: Path) -> None:
    """Read bytes as a zip of another tool's model."""
    file = folder / "model.zip"
    file.write_bytes(b"PK\x03\x04" + data.removeprefix(b"PK\x03\x04"))
    convert([file], folder)


def read_metrics_file(data: bytes, folder: Path) -> None:
    """Read bytes as the metrics of a run, and as its settings."""
    for name in ("metrics.jsonl", "settings.toml"):
        (folder / "run").mkdir(exist_ok=True)
        (folder / "run" / name).write_bytes(data)
    read_metrics(folder)


Target = Callable[[bytes, Path], object]

# By name: what takes bytes and an empty folder of its own. The seeds' names begin with these.
TARGETS: Final[dict[str, Target]] = {
    **{f"text-{mode}": lambda data, folder, mode=mode: read_text(data, folder, mode) for mode in INPUT_MODES},  # type: ignore[misc]
    "stimuli": read_stimuli,
    "settings": read_settings,
    "mix": read_mix_file,
    "config": read_config_alone,
    "options": read_options_file,
    "zip": read_zip,
    "metrics": read_metrics_file,
}
