"""`elmo neighbors`: the occurrences of a corpus that are most like a word in its sentence."""

from typing import Annotated

import typer

from elmo_cli.commands.asked_model import AskedModel
from elmo_cli.commands.neighbors_answer import Answer, choose_form
from elmo_cli.commands.neighbors_work import Search, nearest, read_batch, static_neighbors
from elmo_cli.commands.occurrence_options import (
    AnswerFormat,
    AnswerWidth,
    CorpusOption,
    IgnoreCase,
    IndexOption,
    InputGuessed,
    LayerOption,
    Source,
    TextCol,
    refuse_empty,
)
from elmo_cli.commands.options import (
    ENCODING_ERRORS,
    Column,
    Device,
    EncodingErrorsOption,
    Model,
    ModelLang,
    Threads,
    Workers,
    choose,
    is_named,
)
from elmo_cli.errors import ConfigError
from elmo_cli.reporting import Reporter
from elmo_cli.settings import DEFAULT_MODEL
from elmo_cli.text.sources import STDIN


def neighbors(
    ctx: typer.Context,
    word: Annotated[str | None, typer.Argument(metavar="WORD", help="The word to look for.")] = None,
    sentence: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SENTENCE",
            help="The sentence in which it stands, in quotes; a bare 'in' before it changes nothing.",
        ),
    ] = None,
    corpus: CorpusOption = None,
    index: IndexOption = None,
    model: Model = DEFAULT_MODEL,
    count: Annotated[int, typer.Option("-k", "--count", metavar="N", min=1, help="Neighbours to show.")] = 10,
    same_word: Annotated[
        bool | None,
        typer.Option(
            "--same-word/--any", help="Only occurrences of the word, or any token at all.  [default: --same-word]"
        ),
    ] = None,
    layer: LayerOption = None,
    nth: Annotated[
        int | None, typer.Option("--nth", metavar="N", min=1, help="Which occurrence of the word in the sentence.")
    ] = None,
    ignore_case: IgnoreCase = False,
    unique: Annotated[bool, typer.Option("--unique", help="At most one neighbour a line.")] = False,
    exclude_identical: Annotated[
        bool, typer.Option("--exclude-identical", help="Leave out sentences that are the query's own.")
    ] = False,
    center: Annotated[bool, typer.Option("--center", help="Subtract the mean of all that is compared.")] = False,
    whiten: Annotated[bool, typer.Option("--whiten", help="Centre, and even out the spread.")] = False,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="With --any: compare with every token, even if there is an approximate index."),
    ] = False,
    batch: Annotated[
        str | None,
        typer.Option("--batch", metavar="FILE", help="Many queries: a file of WORD, tab, SENTENCE a line, or -."),
    ] = None,
    format_name: AnswerFormat = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object a query.")] = False,
    columns: AnswerWidth = None,
    input_mode: InputGuessed = None,
    text_col: TextCol = None,
    column: Column = 1,
    lang: ModelLang = None,
    encoding_errors: EncodingErrorsOption = "strict",
    device: Device = "auto",
    threads: Threads = None,
    workers: Workers = None,
) -> None:
    r"""Find the occurrences in a corpus that are most like a word in its sentence.

    Compares the vector of WORD in SENTENCE with that of each occurrence of the word in the corpus, by cosine, and shows
    the nearest as a concordance: score, the word in its sentence, file and line. --any compares with every token.
    Without a sentence, shows the corpus's words whose layer 0, which knows the spelling alone, is nearest.

    The word is taken as it is spelled; where it does not occur so, in any case, which is said. A word that the
    tokenizer splits is the run of its tokens, whose vectors are averaged. A sentence of the corpus that is the same as
    the query's is shown like any other, unless --exclude-identical.

    Where stdout is no terminal, writes a table (TSV): rank, score, word, file, line, token, text; backslash, tab and
    line end are written as \\, \t and \n. -f jsonl writes an object a neighbour: rank, score, word, file, line, token
    (its number in the sentence, from 1), start, end (of the word in text), text, tokens, and in fields what else the
    corpus says. --json writes an object a query: word, sentence, token, layer, model, neighbors. With --batch, query
    (from 1) comes first in each row. A query of --batch whose word does not occur in the corpus has no row or object: a
    warning names its line, and the exit code is 1 at the end.

    Without --index, the texts are read, the sentences with the word embedded (with --any, all of them), and the vectors
    kept in the cache folder ($ELMO_CACHE) for the next time, by the texts' contents, how they are read, words, model
    and layer. For many words of a large text, make an index: elmo index.
    """
    from elmo_cli.neighbors.corpus_text import Reading

    reporter: Reporter = ctx.obj
    form = choose_form(format_name, as_json=as_json, columns=columns)
    context = _context(word, sentence or [], batch, corpus or [])
    errors = choose("--encoding-errors", encoding_errors, ENCODING_ERRORS)
    source = Source(
        model=AskedModel(model, is_named(ctx, "model"), device, threads, reporter),
        corpus=corpus or [],
        index_folder=index,
        reading=Reading(errors=errors, column=column, text_col=text_col),
        mode=input_mode,
        lang=lang,
        layer=layer,
        workers=workers,
        reporter=reporter,
    )
    how = Search(
        count=count,
        any_token=same_word is False,
        nth=nth,
        ignore_case=ignore_case,
        unique=unique,
        exclude_identical=exclude_identical,
        center=center,
        whiten=whiten,
        exact=exact,
    )
    unanswered = 0
    with source, Answer(form, batch=batch is not None) as answer:
        source.prepare()
        if batch is not None:
            unanswered = nearest(source, how, read_batch(batch, errors, reporter), answer)
        elif context is not None and word is not None:
            nearest(source, how, [(word, context, None)], answer)
        elif word is not None:
            if same_word is not None or center or whiten or nth is not None:
                raise ConfigError(
                    "without a sentence, words are compared, not occurrences",
                    fix="name a sentence, or leave out --same-word, --any, --nth, --center and --whiten",
                )
            static_neighbors(source, word, count, answer)
    if unanswered:
        raise typer.Exit(1)


def _context(word: str | None, rest: list[str], batch: str | None, corpus: list[str]) -> str | None:
    """Return the sentence, without a bare ``in`` before it; None where there is none."""
    if batch is not None:
        if batch == STDIN and STDIN in corpus:
            raise ConfigError("--batch and --corpus are both standard input", fix="save one of them in a file")
        if word is not None:
            raise ConfigError("--batch brings its own words", fix="leave out the word on the command line")
        return None
    if word is None:
        raise ConfigError("no word is named", fix='elmo neighbors "play" in "The children play outside."')
    refuse_empty(word)
    if rest and rest[0] == "in" and (len(rest) > 1 or word != "in"):
        rest = rest[1:]
        if not rest:
            raise ConfigError("the sentence behind 'in' is missing", fix=f'elmo neighbors {word} in "A SENTENCE"')
    if len(rest) > 1:
        raise ConfigError(
            f"the sentence is {len(rest)} arguments, {rest[0]!r} and {rest[1]!r} first",
            fix="put it in quotes; texts of --corpus have to exist",
        )
    if rest and not rest[0].strip():
        raise ConfigError("the sentence is empty", fix="name a sentence with the word in it")
    return rest[0] if rest else None
