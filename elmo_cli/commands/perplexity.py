"""`elmo perplexity`: how well a model predicts texts."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from elmo_cli.commands import console
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    BatchTokens,
    Column,
    Device,
    EncodingErrorsOption,
    Input,
    Model,
    ModelLang,
    Threads,
    check_column,
    choose,
    use_threads,
)
from elmo_cli.commands.streams import note_form, note_terminal
from elmo_cli.errors import DataError, Place
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL

if TYPE_CHECKING:
    from elmo_cli.evaluation.perplexity import Perplexity

_HEADER = ("file", "sentences", "tokens", "oov", "forward", "backward", "both", "bits/byte")
_NOTHING = "-"  # in the table, for what a file without a token does not have


def perplexity(
    ctx: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILE", help="Texts: files, folders, or - for standard input.  [default: -]"),
    ] = None,
    model: Model = DEFAULT_MODEL,
    input_mode: Input = "lines",
    column: Column = 1,
    lang: ModelLang = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    encoding_errors: EncodingErrorsOption = "strict",
    batch_tokens: BatchTokens = 4096,
    device: Device = "auto",
    threads: Threads = None,
) -> None:
    """Measure how well a model predicts texts.

    Prints a row a file and the total. Perplexity is exp of the mean negative log-likelihood in nats a predicted token,
    under the full softmax: the forward LM predicts the tokens and </S>, the backward LM the tokens and <S>; both is
    the geometric mean. Words outside the vocabulary are predicted as <UNK>, and their share is oov. Empty lines predict
    nothing.

    Bits a byte are those of both directions' mean, over the tokens in UTF-8 with one space or line end behind each.
    """
    from elmo_cli.storage.model_dir import read_config, require_softmax
    from elmo_cli.storage.registry import find_model
    from elmo_cli.text.reader import INPUT_MODES, SUFFIXES
    from elmo_cli.text.sources import display_name, find_sources

    reporter: Reporter = ctx.obj
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    choose("--input", input_mode, INPUT_MODES)
    check_column(column, input_mode)
    folder = find_model(model)
    config = read_config(folder)
    require_softmax(folder, config)
    sources = find_sources(files or ["-"], SUFFIXES[input_mode])
    note_terminal(sources, reporter)
    note_form(sources, input_mode, ctx, reporter)

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.evaluation.losses import load_predictor
    from elmo_cli.evaluation.perplexity import text_perplexity, total_perplexity
    from elmo_cli.text.reader import TextOptions, read_sentences

    use_threads(threads)
    predictor = load_predictor(folder, config, choose_device(device), batch_tokens=batch_tokens)
    tokenizer = TextOptions(input_mode, lang or config.language, errors, column).make_tokenizer()
    found: list[tuple[str, Perplexity]] = []
    with reporter.progress("predicting", None, "tokens") as progress:
        for source in sources:
            sentences = read_sentences([source], mode=input_mode, tokenizer=tokenizer, errors=errors, column=column)
            tokens = (sentence.tokens for sentence in sentences)
            before = sum(figures.tokens for _, figures in found)
            figures = text_perplexity(predictor, tokens, progress, tokens_before=before)
            found.append((display_name(source), figures))
    total = total_perplexity([figures for _, figures in found])
    if not total.targets:
        raise DataError(
            "the text has no tokens, so there is nothing to predict",
            where=Place(", ".join(name for name, _ in found)),
            fix="name a text of at least one word",
        )
    if as_json:
        by_file = [{"file": name, **_figures(figures)} for name, figures in found]
        console.answer_json({**_figures(total), "files": by_file})
    else:
        rows = [_row(name, figures) for name, figures in (*found, ("total", total))]
        console.answer_table([_HEADER, *rows])


def _figures(found: "Perplexity") -> dict[str, Any]:
    """Return the JSON of a text; null is what a text without tokens does not have."""
    figures = {"sentences": found.sentences, "bits_per_byte": None, **found.to_json()}
    if not found.targets:
        return {**dict.fromkeys(figures), "sentences": 0, "targets": 0, "tokens": 0}
    return figures


def _row(name: str, found: "Perplexity") -> tuple[str, ...]:
    counts = (name, f"{found.sentences:,}", f"{found.tokens:,}")
    if found.bits_per_byte is None:
        return (*counts, *[_NOTHING] * (len(_HEADER) - len(counts)))
    figures = (f"{value:,.2f}" for value in (found.forward, found.backward, found.both))
    return (*counts, f"{found.oov_rate:.2%}", *figures, f"{found.bits_per_byte:.3f}")
