"""Options and steps that the commands of `elmo mix` share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli.commands.options import complete_from, complete_model, refuse_existing, refuse_stdout
from elmo_cli.errors import ConfigError, ModelError, OutputError, Place
from elmo_cli.reporting import Reporter

if TYPE_CHECKING:
    from collections.abc import Collection

    from elmo_cli.mixing.encoder import Encoder
    from elmo_cli.mixing.layouts import Layout
    from elmo_cli.mixing.static_vectors import StaticEncoder
    from elmo_cli.storage.mix_file import EncoderIdentity, MixFile
    from elmo_cli.text.tokenizer import Tokenizer

MixPath = Annotated[Path, typer.Option("--mix", metavar="FILE", help="A mix, as `elmo mix learn` writes it.")]
MixModel = Annotated[
    str | None,
    typer.Option(
        "-m",
        "--model",
        metavar="NAME|DIR",
        autocompletion=complete_model,
        help="Model; it has to be the one that the mix was learned with.  [default: that one, by its name]",
    ),
]
EncoderOption = Annotated[
    str | None,
    typer.Option(
        "--encoder",
        metavar="VECTORS",
        help="Static word vectors in place of a model: a text file with a word and its numbers a line, as GloVe's.",
    ),
]
LabelledInput = Annotated[
    str | None,
    typer.Option(
        "--input",
        metavar="MODE",
        autocompletion=complete_from("conll", "conllu", "tsv", "jsonl"),
        help="How the text is laid out: conll, conllu, tsv (label, tab, text) or jsonl (tokens and tags, or text and "
        "label).  [default: by its name, else by its first lines]",
    ),
]
TextColumn = Annotated[
    int | None,
    typer.Option(
        "--column", metavar="N", min=1, help="Column of the token (conll) or the text (tsv).  [default: 1; tsv: 2]"
    ),
]
LabelColumn = Annotated[
    str | None,
    typer.Option(
        "--label-column",
        metavar="N|NAME",
        help="Where the label stands: a column, in CoNLL-U also by its name, or a key of JSON.  [default: the last "
        "column; UPOS; tsv: 1; tags or label]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def find_identity(wanted: "EncoderIdentity", model: str | None, encoder: str | None, place: Place) -> Path | None:
    """Return the folder of a mix's model; None for a mix of static vectors, which are checked when they are read.

    Raises:
        ConfigError: another kind of encoder is named, or none where the mix was learned with a file.
        ModelError: the model is not there, or not the one of the mix.
    """
    from elmo_cli.mixing.encoder import bilm_identity, check_identity
    from elmo_cli.storage.model_dir import read_config
    from elmo_cli.storage.registry import find_model

    if wanted.kind == "bilm":
        if encoder is not None:
            raise ConfigError(f"the mix was learned with the model {wanted}", where=place, fix="leave out --encoder")
        folder = find_model(model) if model is not None else _own_model(wanted)
        check_identity(wanted, bilm_identity(folder, read_config(folder), model or wanted.source), place)
        return folder
    if model is not None:
        fix = f"--encoder {wanted.source} in place of -m"
        raise ConfigError(f"the mix was learned with the vectors {wanted}", where=place, fix=fix)
    return None


def _own_model(wanted: "EncoderIdentity") -> Path:
    """Return the model of a mix: as it was named when the mix was learned, else by the name of its folder."""
    from elmo_cli.storage.registry import find_model

    try:
        return find_model(wanted.source)
    except ModelError:
        return find_model(wanted.name)


def open_encoder(
    mix: "MixFile",
    folder: Path | None,
    encoder: str | None,
    *,
    device: str,
    place: Place,
    reporter: Reporter,
) -> "Encoder":
    """Return the encoder of a mix.

    Raises:
        ModelError: it is not the one that the mix was learned with.
        DataError: the vectors cannot be read.
    """
    from elmo_cli.bilm.device import choose_device
    from elmo_cli.mixing.encoder import check_identity, load_bilm_encoder
    from elmo_cli.storage.model_dir import read_config

    if folder is not None:
        return load_bilm_encoder(folder, read_config(folder), mix.encoder, choose_device(device), reporter)
    found = open_vectors(encoder or mix.encoder.source)
    check_identity(mix.encoder, found.identity, place)
    return found


def open_vectors(source: str, wanted: "Collection[str] | None" = None) -> "StaticEncoder":
    """Return static vectors; those of the wanted tokens alone, where they are known."""
    from elmo_cli.mixing.static_vectors import StaticEncoder

    return StaticEncoder(find_vectors(source), wanted)


def find_vectors(argument: str) -> str:
    """Return the file of static vectors.

    Raises:
        ConfigError: the argument names several.
        DataError: it is not there.
    """
    from elmo_cli.text.sources import find_sources

    found = find_sources([argument], (".txt", ".vec"))
    if len(found) != 1:
        raise ConfigError(f"--encoder {argument} names {len(found)} files", fix="name one")
    return found[0]


def check_output(output: Path, *, force: bool, option: str = "-o") -> None:
    """Refuse a target of an option that exists, or whose folder does not, before any work is done.

    Raises:
        ConfigError: the file exists, or is standard output.
        OutputError: there is no such folder.
    """
    refuse_stdout(output, option=option)
    refuse_existing(output, force=force, option=option)
    if not output.absolute().parent.is_dir():
        raise OutputError(f"cannot write {output}: no such folder", fix=f"mkdir -p {output.absolute().parent}")


def make_tokenizer(layout: "Layout", language: str) -> "Tokenizer | None":
    """Return the tokenizer, where some of the text does not come tokenized."""
    from elmo_cli.text.tokenizer import SpacyTokenizer

    return SpacyTokenizer(language) if layout.needs_tokenizer else None
