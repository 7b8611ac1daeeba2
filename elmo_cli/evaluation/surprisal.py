"""Surprisal: how unexpected each token of a text is to the two language models, in bits or nats."""

import math
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from elmo_cli.evaluation.losses import Predictor, SentenceLosses
from elmo_cli.reporting import Reporter
from elmo_cli.storage.tables import TableWriter, escaped
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START
from elmo_cli.text.sentence import Sentence
from elmo_cli.text.stimuli import Stimulus

COLUMNS: Final = ("line", "token", "text", "forward", "backward", "in_vocab")
NOT_PREDICTED: Final = "NA"  # as R and pandas read a missing number
NATS_A_UNIT: Final = {"bits": math.log(2), "nats": 1.0}
# Six decimals: the mean of a column is then within 5e-7, so that 2 to its power is the perplexity within a millionth.
_DECIMALS: Final = 6
_PREFIX: Final = "stimulus_"


@dataclass(frozen=True, slots=True)
class SurprisalForm:
    """What the rows are.

    Attributes:
        unit: ``bits`` or ``nats``.
        words: a row a word, which is what stands between white space in the text, and not a row a token. Its
            surprisal is the sum of its tokens', for that is the surprisal of all of them together.
        boundaries: also rows of ``<S>`` (as token 0) and ``</S>`` (numbered after the last).
    """

    unit: str = "bits"
    words: bool = False
    boundaries: bool = False


def header(stimulus_columns: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the names of the columns: those of the stimuli, then ours.

    A stimulus's column that has the name of one of ours becomes ``stimulus_NAME``.
    """
    names = []
    for name in stimulus_columns:
        if name in COLUMNS:
            name = _PREFIX + name
            while name in stimulus_columns:
                name = _PREFIX + name
        names.append(name)
    return (*names, *COLUMNS)


def write_surprisals(
    table: TableWriter,
    stimuli: Iterable[Stimulus],
    predictor: Predictor,
    form: SurprisalForm,
    *,
    reporter: Reporter,
) -> int:
    """Write the rows of sentences, in order and in constant memory, and return how many tokens there were.

    Args:
        table: made with `header`.
        stimuli: sentences, with the cells to repeat on each of their rows.
        predictor: holds the model.
        form: of the rows.
        reporter: told about progress.

    Raises:
        ModelError: a loss is not a number.
    """
    waiting: deque[Stimulus] = deque()  # read ahead, still without losses

    def tokens() -> Iterator[list[str]]:
        for stimulus in stimuli:
            waiting.append(stimulus)
            yield stimulus.sentence.tokens

    done = 0
    with reporter.progress("predicting", None, "tokens") as progress:
        for losses in predictor.losses(tokens()):
            stimulus = waiting.popleft()
            done += len(stimulus.sentence.tokens)
            table.write([(*stimulus.cells, *row) for row in _rows(stimulus.sentence, losses, form)])
            progress.update(done)
    return done


def _rows(sentence: Sentence, losses: SentenceLosses, form: SurprisalForm) -> Iterator[tuple[str, ...]]:
    """Yield the cells of each row of a sentence; none where it has no tokens."""
    positions = sentence.positions
    groups = word_groups(sentence) if form.words else [(n, n + 1) for n in range(len(sentence.tokens))]
    unit = NATS_A_UNIT[form.unit]

    def number(nats: float) -> str:
        return f"{max(nats / unit, 0.0):.{_DECIMALS}f}"  # never -0, which rounding may give a sure thing

    if groups and form.boundaries:
        yield str(positions[0][0]), "0", SENTENCE_START, NOT_PREDICTED, number(losses.backward[0]), "1"
    for at, (first, end) in enumerate(groups, start=1):
        text = _text(sentence, first, end)
        # The backward LM's first target is <S>, so its tokens stand one later.
        forward, backward = losses.forward[first:end].sum(), losses.backward[first + 1 : end + 1].sum()
        known = bool(losses.known[first:end].all())
        yield str(positions[first][0]), str(at), escaped(text), number(forward), number(backward), str(int(known))
    if groups and form.boundaries:
        last = str(len(groups) + 1)
        yield str(positions[-1][0]), last, SENTENCE_END, number(losses.forward[-1]), NOT_PREDICTED, "1"


def word_groups(sentence: Sentence) -> list[tuple[int, int]]:
    """Return the first token of each word and the one after its last: words are what stands between white space.

    A token that holds white space itself makes one word of those it touches. Where the input came tokenized, a token
    is a word.
    """
    count = len(sentence.tokens)
    if sentence.text is None or sentence.spans is None:
        return [(n, n + 1) for n in range(count)]
    gaps = [sentence.text[before[1] : after[0]] for before, after in pairwise(sentence.spans)]
    bounds = [0, *(number for number, gap in enumerate(gaps, start=1) if any(map(str.isspace, gap))), count]
    return list(pairwise(bounds)) if count else []


def _text(sentence: Sentence, first: int, end: int) -> str:
    if end == first + 1:
        return sentence.tokens[first]
    if sentence.text is None or sentence.spans is None:
        raise ValueError("only words of a text have several tokens")
    return sentence.text[sentence.spans[first][0] : sentence.spans[end - 1][1]]
