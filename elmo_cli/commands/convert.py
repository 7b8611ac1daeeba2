"""`elmo convert`: models of bilm-tf and AllenNLP into ours, and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import Force, choose, complete_from
from elmo_cli.errors import ConfigError, OutputError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.storage.registry import is_model

_KINDS = ("elmo", "allennlp")
_LANGUAGE = "en"
_ANOTHER = "choose another -o"


def convert(
    ctx: typer.Context,
    sources: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE",
            help="A folder, a zip, or the files themselves: options.json, weights (.hdf5), vocab.txt; "
            "with --to allennlp, a model of elmo.",
            show_default=False,
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="NAME|DIR", help="The new model.")],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="KIND",
            autocompletion=complete_from(*_KINDS),
            help="elmo, or allennlp: options.json and weights.hdf5.",
        ),
    ] = "elmo",
    lang: Annotated[
        str, typer.Option("--lang", metavar="CODE", help="Language of the tokenizer that `elmo embed` will use.")
    ] = _LANGUAGE,
    check: Annotated[
        bool,
        typer.Option("--check", help="Embed hard sentences on both sides of a round trip and print the difference."),
    ] = False,
    force: Force = False,
) -> None:
    """Convert published ELMo weights into a model of elmo, or back.

    Reads HDF5 weights of bilm-tf and AllenNLP, folders and zips of simple_elmo, the softmax of pytorch-fast-elmo,
    and bilm-tf's TensorFlow checkpoints. No weight changes by a bit: converting there and back gives the same file.
    """
    from elmo_cli.storage.convert import export_model, import_model
    from elmo_cli.storage.registry import find_model, new_model_folder
    from elmo_cli.text.tokenizer import SpacyTokenizer

    reporter: Reporter = ctx.obj
    choose("--to", to, _KINDS)
    if to == "allennlp":
        folder = Path(output)
        if len(sources) != 1:
            raise ConfigError(f"--to allennlp takes one model, not {len(sources)}", fix="run the command once for each")
        model = find_model(sources[0])
        _check_target(folder, [model], force=force)
        export_model(model, folder, replace=force)
    else:
        if lang != _LANGUAGE:
            SpacyTokenizer(lang).load()  # refuses what no tokenizer is there for
        folder = model = new_model_folder(output)
        _check_target(folder, [Path(source) for source in sources], force=force)
        config = import_model([Path(source) for source in sources], folder, language=lang, replace=force)
        softmax = f"{config.vocabulary_size:,} word types" if config.vocabulary_size else "no softmax"
        reporter.note(f"{config.bilm.layer_count} layers of {config.bilm.vector_dim} numbers, {softmax}")
    if check:
        from elmo_cli.embedding.round_trip import largest_difference

        reporter.note(f"largest difference after a round trip: {largest_difference(model):.3g}")
    console.answer(str(folder))


def _check_target(folder: Path, sources: Sequence[Path], *, force: bool) -> None:
    """Refuse to replace what is converted, or a folder of something else.

    Raises:
        ConfigError: the target is, or holds, a source.
        OutputError: ``--force`` would remove files that are no model's.
    """
    from elmo_cli.storage.convert import OPTIONS_FILE

    target = folder.resolve()
    if any(source.resolve().is_relative_to(target) for source in sources):
        raise ConfigError("the new model would replace what it is made of", where=Place(str(folder)), fix=_ANOTHER)
    is_ours = is_model(folder) or (folder / OPTIONS_FILE).is_file()
    if force and folder.is_dir() and not is_ours and any(folder.iterdir()):
        raise OutputError("the folder holds no model, but other files", where=Place(str(folder)), fix=_ANOTHER)
