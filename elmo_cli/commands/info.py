"""`elmo info`: what a model is."""

from typing import Annotated

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import complete_model


def info(
    model: Annotated[
        str, typer.Argument(metavar="NAME|DIR", help="The model.", autocompletion=complete_model, show_default=False)
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a model's shape, size, tokenizer and origin.

    Reads the config and the header of the weights, and loads no torch.
    """
    from elmo_cli.storage.model_info import model_info
    from elmo_cli.storage.registry import find_model

    found = model_info(find_model(model))
    if as_json:
        console.answer_json(found.to_json())
        return
    console.answer_facts(found.rows())
