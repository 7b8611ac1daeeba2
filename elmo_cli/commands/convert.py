"""`elmo convert`: models of bilm-tf and AllenNLP into ours, and back."""

from pathlib import Path
from typing import Annotated

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import Force, choose
from elmo_cli.reporting import Reporter

_KINDS = ("elmo", "allennlp")


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
        str, typer.Option("--to", metavar="KIND", help="elmo, or allennlp: options.json and weights.hdf5.")
    ] = "elmo",
    lang: Annotated[
        str, typer.Option("--lang", metavar="CODE", help="Language of the tokenizer that `elmo embed` will use.")
    ] = "en",
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

    reporter: Reporter = ctx.obj
    choose("--to", to, _KINDS)
    if to == "allennlp":
        folder = Path(output)
        if len(sources) != 1:
            raise typer.BadParameter("--to allennlp takes one model")
        model = find_model(sources[0])
        export_model(model, folder, replace=force)
    else:
        folder = model = new_model_folder(output)
        config = import_model([Path(source) for source in sources], folder, language=lang, replace=force)
        softmax = f"{config.vocabulary_size:,} word types" if config.vocabulary_size else "no softmax"
        reporter.note(f"{config.bilm.layer_count} layers of {config.bilm.vector_dim} numbers, {softmax}")
    if check:
        from elmo_cli.embedding.round_trip import largest_difference

        reporter.note(f"largest difference after a round trip: {largest_difference(model):.3g}")
    console.answer(str(folder))
