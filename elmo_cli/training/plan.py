"""What a training run is going to do, in figures, before it starts."""

from dataclasses import dataclass

from elmo_cli.reporting import counted, duration_text
from elmo_cli.text.characters import is_cut
from elmo_cli.training.session import Session

_BYTES = 4  # of a float32
_BASE_MEMORY = 450_000_000  # of Python, torch, spaCy and the maps of a small corpus


@dataclass(frozen=True, slots=True)
class Plan:
    """The figures of a run.

    Attributes:
        tokens: of the training text, markers not counted.
        cut_words: share of word types longer than the model reads.
        oov_rate: share of training tokens outside the vocabulary.
        heldout_oov_rate: the same of the held-out text.
        name: of the preset, or of the model that is fine-tuned.
        base_types: word types whose rows of the softmax are that model's.
        unigram_perplexity: of the held-out text, predicted by word frequency alone.
        memory_bytes: estimate of the peak.
    """

    sentences: int
    cut_sentences: int
    tokens: int
    types: int
    cut_words: float
    heldout_sentences: int
    heldout_tokens: int
    heldout_is_training: bool
    vocabulary_size: int
    min_count: int
    oov_rate: float
    heldout_oov_rate: float
    unigram_perplexity: float
    parameters: int
    softmax_parameters: int
    negatives: int | None
    name: str
    base_types: int
    epochs: int
    steps: int
    steps_an_epoch: int
    max_time_s: float | None
    memory_bytes: int

    def lines(self) -> list[str]:
        """Return the plan as lines of text for a person."""
        cut = f"; {counted(self.cut_sentences, 'long sentence')} cut" if self.cut_sentences else ""
        spelled = f"; {self.cut_words:.1%} of types too long to be read whole" if self.cut_words >= 0.0005 else ""
        heldout = f"{counted(self.heldout_tokens, 'token')} in {counted(self.heldout_sentences, 'sentence')}"
        if self.heldout_is_training:
            heldout = "nothing: the text is too small, so the figures below are of the training text itself"
        softmax = "full softmax" if self.negatives is None else f"softmax sampled with {self.negatives:,} negatives"
        limit = "" if self.max_time_s is None else f", at most {duration_text(self.max_time_s)}"
        return [
            f"text        {counted(self.tokens, 'token')} in {counted(self.sentences, 'sentence')}, "
            f"{counted(self.types, 'type')}{cut}{spelled}",
            f"held out    {heldout}",
            f"vocabulary  {self.vocabulary_size:,} types ({self._origin()}); outside it: "
            f"{self.oov_rate:.2%} of the training tokens, {self.heldout_oov_rate:.2%} of the held-out tokens",
            f"model       {self.name}: {self.parameters:,} parameters, {self.softmax_parameters:,} of the {softmax}",
            f"training    {counted(self.steps, 'step')} ({self.epochs} x {self.steps_an_epoch:,}){limit}; "
            f"about {self.memory_bytes / 1e6:,.0f} MB of memory",
            f"unigram     held-out perplexity {self.unigram_perplexity:,.1f} by word frequency alone",
        ]

    def _origin(self) -> str:
        added = self.vocabulary_size - self.base_types
        if not self.base_types:
            return f"count >= {self.min_count}"
        return f"of {self.name}, {added:,} added" if added else f"of {self.name}"


def make_plan(session: Session) -> Plan:
    """Return the figures of a run that has been set up."""
    settings, choices, corpus = session.settings, session.choices, session.corpus
    characters = session.config.char_cnn.max_characters
    types = corpus.all_type_texts
    softmax = sum(p.numel() for p in session.model.softmax.parameters())
    return Plan(
        sentences=session.pieces.sentences,
        cut_sentences=session.pieces.cut_sentences,
        tokens=session.pieces.token_count,
        types=corpus.info.types,
        cut_words=sum(is_cut(text, characters) for text in types) / len(types),
        heldout_sentences=session.heldout_pieces.sentences,
        heldout_tokens=session.heldout_pieces.token_count,
        heldout_is_training=session.heldout_is_training,
        vocabulary_size=len(session.vocabulary),
        min_count=choices.min_count,
        oov_rate=session.frequencies.unknown_rate(len(session.pieces)),
        heldout_oov_rate=session.heldout_frequencies.unknown_rate(len(session.heldout_pieces)),
        unigram_perplexity=session.frequencies.perplexity_of(session.heldout_frequencies),
        parameters=sum(p.numel() for p in session.model.bilm.parameters()),
        softmax_parameters=softmax,
        negatives=settings.negatives if session.is_sampled else None,
        name=settings.preset if session.start is None else session.start.base,
        base_types=0 if session.start is None else session.start.kept_types,
        epochs=choices.epochs,
        steps=choices.steps,
        steps_an_epoch=choices.steps_an_epoch,
        max_time_s=settings.max_time_s,
        memory_bytes=_memory(session, softmax),
    )


def _memory(session: Session, softmax_parameters: int) -> int:
    """Estimate the peak: what a step keeps for its backward pass, and of each weight seven numbers.

    Weight, gradient and two moments, and the good state to go back to: a weight and two moments.
    """
    lstm, cnn = session.config.lstm, session.config.char_cnn
    parameters = sum(p.numel() for p in session.model.bilm.parameters())
    rows = session.choices.batch_tokens
    # Per row, layer and direction: gates and their gradients, cells, and a few vectors of the output's width.
    recurrent = rows * lstm.layers * 2 * (9 * lstm.cell_dim + 6 * lstm.projection_dim)
    # About half of a batch's tokens are distinct types, of about 20 characters with padding.
    characters = rows // 2 * 20 * cnn.filter_count * 2
    candidates = session.settings.negatives if session.is_sampled else len(session.vocabulary)
    logits = 2 * 3 * rows * candidates
    return _BASE_MEMORY + _BYTES * (7 * (parameters + softmax_parameters) + recurrent + characters + logits)
