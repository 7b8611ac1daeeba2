"""`elmo mix`: the group of its commands."""

import typer

from elmo_cli.commands.command import ElmoCommand, ElmoSubgroup
from elmo_cli.commands.mix_apply import apply
from elmo_cli.commands.mix_learn import learn
from elmo_cli.commands.mix_predict import predict, score
from elmo_cli.commands.mix_show import show

mix = typer.Typer(
    cls=ElmoSubgroup,
    help="Learn, apply and look at weighted sums of layers.\n\nA mix is what equation (1) of Peters et al. (2018) "
    "learns for a task: a weight for each layer of a model, and a scale. `elmo embed --mix` uses it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
mix.command(cls=ElmoCommand)(learn)
mix.command(cls=ElmoCommand)(show)
mix.command(cls=ElmoCommand)(apply)
mix.command(cls=ElmoCommand)(predict)
mix.command(cls=ElmoCommand)(score)
