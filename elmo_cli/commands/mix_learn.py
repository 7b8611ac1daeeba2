"""`elmo mix learn`: the weights of a task's own mix of layers."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from elmo_cli import settings
from elmo_cli.commands.mix_options import (
    EncoderOption,
    Json,
    LabelColumn,
    LabelledInput,
    TextColumn,
    check_output,
    find_vectors,
    make_tokenizer,
    open_vectors,
)
from elmo_cli.commands.mix_show import check_plot, write_plot
from elmo_cli.commands.mix_tables import print_mixes
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    LARGEST_SEED,
    Device,
    EncodingErrorsOption,
    Force,
    Model,
    ModelLang,
    Threads,
    choose,
    complete_from,
    refuse_own_input,
    use_threads,
)
from elmo_cli.config import DTYPES
from elmo_cli.errors import DataError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli.commands.options import EncodingErrors
    from elmo_cli.mixing.encoder import Encoder
    from elmo_cli.mixing.labelled import LabelledText
    from elmo_cli.mixing.layouts import Layout


def learn(
    ctx: typer.Context,
    train: Annotated[str, typer.Argument(metavar="TRAIN", help="Labelled text to learn on.", show_default=False)],
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FILE", help="Where the mix goes, such as ner.mix.json.")
    ],
    dev: Annotated[
        str | None,
        typer.Option(
            "--dev", metavar="DEV", help="Labelled text to stop by and to score on.  [default: a tenth of TRAIN]"
        ),
    ] = None,
    model: Model = DEFAULT_MODEL,
    encoder: EncoderOption = None,
    input_mode: LabelledInput = None,
    column: TextColumn = None,
    label_column: LabelColumn = None,
    lang: ModelLang = None,
    head: Annotated[
        str | None,
        typer.Option(
            "--head",
            metavar="HEAD",
            autocompletion=complete_from("linear", "bilstm", "pooled"),
            help="What stands on the mix: linear or bilstm for labels of tokens, pooled for labels of sentences.  "
            "[default: by the labels; bilstm for spans]",
        ),
    ] = None,
    strength: Annotated[
        float,
        typer.Option(
            "--lambda", min=0.0, help="L2 penalty on w: 0.001 lets the weights vary, 1 keeps them near the average."
        ),
    ] = 0.001,
    layer_norm: Annotated[
        bool, typer.Option("--layer-norm", help="Bring each layer's vectors to mean 0 and variance 1 first.")
    ] = False,
    dropout: Annotated[
        float, typer.Option("--dropout", min=0.0, max=0.95, help="Of the mixed vectors, while learning.")
    ] = 0.1,
    rate: Annotated[
        float | None,
        typer.Option("--rate", min=1e-6, max=1.0, help="Learning rate of Adam.  [default: 0.01; bilstm: 0.003]"),
    ] = None,
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Passes over TRAIN, at most.")] = 50,
    patience: Annotated[
        int, typer.Option("--patience", min=1, help="Passes without a better dev score after which it stops.")
    ] = 5,
    batch_tokens: Annotated[
        int | None,
        typer.Option(
            "--batch-tokens", min=1, help="About how many tokens a step.  [default: a hundredth of TRAIN, 128 to 1,024]"
        ),
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=LARGEST_SEED, help="Of the first run; the others count on.")
    ] = 1,
    seeds: Annotated[int, typer.Option("--seeds", min=1, help="Runs; the scores are told with their spread.")] = 3,
    compare: Annotated[
        bool,
        typer.Option("--compare/--no-compare", help="Also learn with the top layer, each layer and the average."),
    ] = True,
    cache: Annotated[
        bool, typer.Option("--cache/--no-cache", help="Keep the layers in the cache folder for the next time.")
    ] = True,
    cache_dtype: Annotated[
        str,
        typer.Option(
            "--cache-dtype",
            metavar="TYPE",
            autocompletion=complete_from(*DTYPES),
            help="Of the kept layers: float32, or float16 to save room.",
        ),
    ] = "float32",
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Draw the weights, as `elmo mix show --plot` does.")
    ] = None,
    as_json: Json = False,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    force: Force = False,
) -> None:
    """Learn how a task should weigh the layers of a model.

    The model stays as it is. Learned are the weights s and the scale gamma of equation (1) of Peters et al. (2018),
    together with a small head that predicts the labels of TRAIN; the scores on DEV stand beside those of the top layer
    alone, of each layer and of the plain average.

    Labels that are all O, B-... and I-... are scored by the F1 of their spans, as conlleval counts them, others of
    tokens by accuracy; labels of sentences by accuracy, and by macro F1 beside it. The file holds the mix of the seed
    with the best score, its head, and all scores. The same text, settings, seed and threads give the same file.
    """
    from elmo_cli.mixing.learn_settings import HEADS, RATES, FitSettings, LearnSettings, choose_head

    reporter: Reporter = ctx.obj
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    dtype = choose("--cache-dtype", cache_dtype, DTYPES)
    asked = None if head is None else choose("--head", head, HEADS)
    check_output(output, force=force)
    if plot is not None:
        check_plot(plot, force=force)
    source = _Source(model, encoder, lang)
    # All that can be wrong with the command line or the text is found before torch is loaded.
    texts = _Texts(input_mode, column, label_column, source.language(), errors)
    train_text, layout = texts.read(train, reporter)
    dev_text = None if dev is None else texts.read_alike(dev, train_text, layout, reporter)
    read = [train_text.name, *([] if dev_text is None else [dev_text.name]), *([] if encoder is None else [encoder])]
    refuse_own_input([output, *([] if plot is None else [plot])], read)
    kind = choose_head(asked, train_text)
    how = LearnSettings(
        head=kind,
        strength=strength,
        layer_norm=layer_norm,
        dropout=dropout,
        batch_tokens=batch_tokens,
        fit=FitSettings(epochs, patience, rate or RATES[kind]),
    )
    use_threads(threads)

    from elmo_cli.mixing.layer_cache import LayerCache
    from elmo_cli.mixing.learn import LearnTask, learn_mix
    from elmo_cli.storage.mix_file import write_mix

    task = LearnTask(train_text, dev_text, layout, texts.language, how, range(seed, seed + seeds), compare)
    layers = LayerCache(settings.cache_folder() / "layers" if cache else None, dtype, reporter)
    mix = learn_mix(task, source.open(train_text, dev_text, device, reporter), layers, reporter)
    write_mix(output, mix)
    print_mixes([(output.name, mix)], as_json=as_json)
    if plot is not None:
        write_plot(plot, [(output.name, mix)])
    reporter.note(f"{output}: the mix of seed {mix.kept}, for {mix.encoder.name}")


@dataclass(frozen=True, slots=True)
class _Source:
    """What gives the layers, as the command line names it."""

    model: str
    vectors: str | None
    lang: str | None

    def language(self) -> str:
        """Return the language of the tokenizer: as told, else the model's."""
        from elmo_cli.storage.model_dir import read_config
        from elmo_cli.storage.registry import find_model

        if self.vectors is not None:
            find_vectors(self.vectors)
            return self.lang or "en"
        return self.lang or read_config(find_model(self.model)).language

    def open(self, train: "LabelledText", dev: "LabelledText | None", device: str, reporter: Reporter) -> "Encoder":
        """Load the model or the vectors."""
        if self.vectors is not None:
            texts = [text for text in (train, dev) if text is not None]
            found = open_vectors(self.vectors, {token for text in texts for row in text.tokens for token in row})
            for text in texts:
                reporter.note(f"{found.identity.name} on {text.name}: {found.covered(text.tokens)}")
            return found
        from elmo_cli.bilm.device import choose_device
        from elmo_cli.mixing.encoder import bilm_identity, load_bilm_encoder
        from elmo_cli.storage.model_dir import read_config
        from elmo_cli.storage.registry import find_model

        folder = find_model(self.model)
        config = read_config(folder)
        identity = bilm_identity(folder, config, self.model)
        return load_bilm_encoder(folder, config, identity, choose_device(device), reporter)


@dataclass(frozen=True, slots=True)
class _Texts:
    """How labelled text is read."""

    mode: str | None
    column: int | None
    label_column: str | None
    language: str
    errors: "EncodingErrors"

    def read(self, argument: str, reporter: Reporter) -> "tuple[LabelledText, Layout]":
        """Return the text that is named, and its layout."""
        from elmo_cli.mixing.labelled import collect, read_examples
        from elmo_cli.mixing.layouts import LABELLED, NAME_ANOTHER, Layout, open_text

        mode = None if self.mode is None else choose("--input", self.mode, LABELLED)
        opened = open_text(argument, mode, errors=self.errors)
        layout = Layout(opened.mode, self.column, self.label_column)
        text = collect(opened.name, read_examples(opened, layout, make_tokenizer(layout, self.language)))
        if not any(text.tokens):
            raise DataError("all labelled sentences are empty", where=Place(text.name), fix=NAME_ANOTHER)
        reporter.note(f"{text.name}: {opened.layout_told}, {text.size_told}")
        return text, layout

    def read_alike(self, argument: str, train: "LabelledText", layout: "Layout", reporter: Reporter) -> "LabelledText":
        """Return the dev text, whose labels have to be of the kind of those in ``train``.

        Raises:
            DataError: they are not.
        """
        text, found = self.read(argument, reporter)
        if text.unit != train.unit:
            message = f"each {text.unit} has a label, in {train.name} each {train.unit}"
            raise DataError(message, where=Place(text.name), fix="choose a --dev of the kind of TRAIN")
        if found.mode != layout.mode:
            reporter.note(f"TRAIN is {layout.mode}, --dev is {found.mode}")
        return text
