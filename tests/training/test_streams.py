"""A text as endless streams: what each reads, and that state goes on from window to window."""

import itertools

import numpy as np
import pytest
import torch
from lives import TWENTY

from elmo_cli.bilm.packing import pack
from elmo_cli.config import RECIPES, TrainingSettings
from elmo_cli.text.characters import character_ids
from elmo_cli.text.corpus import Corpus
from elmo_cli.training.batches import Pieces, cut_pieces
from elmo_cli.training.session import Session, open_session
from elmo_cli.training.stream_reader import StreamReader, stream_count, stream_steps
from elmo_cli.training.streams import StreamLessons

SETTINGS = TrainingSettings(preset="tiny", stream=True, batch_tokens=60, dropout=0.0, min_count=1)  # 3 streams
SENTENCES = [line.split() for line in TWENTY.read_text(encoding="utf-8").splitlines()]


def reader_of(corpus: Corpus, *, streams: int = 3, backward: bool = False) -> StreamReader:
    pieces = cut_pieces(corpus, np.arange(corpus.info.sentences), 250)
    return StreamReader(corpus, pieces, streams, seed=1, backward=backward)


def read(reader: StreamReader, windows: int, steps: int = 7) -> tuple[list[list[str]], list[list[str]]]:
    """Return what each stream has read and was to predict, over some windows, as text."""
    texts = ["<S>", "</S>", *reader.corpus.type_texts(range(reader.corpus.info.types))]
    parts = [reader.window(steps) for _ in range(windows)]
    inputs, targets = (np.concatenate([part[side] for part in parts]).T for side in (0, 1))
    return [[texts[i] for i in row] for row in inputs], [[texts[i] for i in row] for row in targets]


def sentences_of(stream: list[str], first: str) -> list[list[str]]:
    """Cut a stream where sentences begin; the last one, which may not be whole, is left out."""
    starts = [place for place, text in enumerate(stream) if text == first]
    return [stream[start + 1 : end] for start, end in itertools.pairwise(starts)]


@pytest.mark.parametrize("backward", [False, True], ids=["forward", "backward"])
def test_a_stream_is_whole_sentences_one_after_the_other(twenty: Corpus, backward: bool) -> None:
    first, last = ("</S>", "<S>") if backward else ("<S>", "</S>")
    inputs, targets = read(reader_of(twenty, backward=backward), 40)
    known = [sentence[::-1] if backward else sentence for sentence in SENTENCES]
    for stream, wanted in zip(inputs, targets, strict=True):
        assert stream[0] == first
        assert all(sentence in known for sentence in sentences_of(stream, first))
        # The next token is to be predicted, and the closing mark, which is never read, where a sentence ends.
        following = [last if text == first else text for text in stream[1:]]
        assert wanted[:-1] == following


def test_the_streams_share_one_pool_in_which_each_sentence_is_once_a_round(twenty: Corpus) -> None:
    reader = reader_of(twenty, streams=1)
    (stream,), _ = read(reader, 45)
    first_words = [sentence[0] for sentence in sentences_of(stream, "<S>")]
    assert len(first_words) > 2 * len(SENTENCES) - 20
    assert sorted(first_words[:20]) == sorted(sentence[0] for sentence in SENTENCES)
    assert first_words[:20] != first_words[20:40]


def test_the_directions_read_different_text(twenty: Corpus) -> None:
    forward, _ = read(reader_of(twenty), 3)
    backward, _ = read(reader_of(twenty, backward=True), 3)
    assert sorted(forward[0]) != sorted(backward[0])


def test_a_reader_goes_on_from_a_state_that_was_taken(twenty: Corpus) -> None:
    reader, other = reader_of(twenty), reader_of(twenty)
    read(reader, 11)
    other.load_state(reader.state())
    assert read(other, 30) == read(reader, 30)


def test_an_epoch_is_as_many_tokens_as_the_text_has_with_a_mark_for_each_sentence() -> None:
    pieces = Pieces(np.array([0, 100]), np.array([100, 318]), sentences=2, cut_sentences=0)  # 318 tokens in 2 sentences
    assert [stream_steps(pieces, tokens) for tokens in (20, 40, 2560)] == [16, 8, 1]
    assert [stream_count(tokens) for tokens in (8, 20, 59, 2560)] == [1, 1, 2, 128]


@pytest.fixture
def session(twenty: Corpus) -> Session:
    return open_session(twenty, twenty, SETTINGS)


def plain_losses(session: Session, inputs: list[str], targets: list[str], direction: int) -> list[float]:
    """Return the losses of one stream from its start, all of it read at once."""
    table = {text: number for number, text in enumerate(session.vocabulary.types)}
    model = session.model
    x = model.bilm.token_encoder(torch.from_numpy(character_ids(inputs, 50)))
    top = model.bilm.run_stacks(torch.stack((x, x)), pack((len(inputs),)))[-1][direction]
    wanted = torch.tensor([table[text] for text in targets])
    return model.softmax.full_loss(top, wanted).tolist()


@pytest.mark.parametrize("direction", [0, 1], ids=["forward", "backward"])
def test_the_losses_of_windows_are_those_of_a_stream_read_at_once(session: Session, direction: int) -> None:
    lessons = StreamLessons(session, torch.device("cpu"))
    found: list[list[float]] = []
    for _ in range(3):
        batch, _ = lessons._read()
        losses = session.model.stream_losses(batch, lessons.states)[direction]
        found.extend(losses.view(20, 3).tolist())
    reader = StreamReader(session.corpus, session.pieces, 3, seed=1, backward=bool(direction))
    inputs, targets = read(reader, 3, steps=20)
    for stream in range(3):
        expected = plain_losses(session, inputs[stream], targets[stream], direction)
        assert [row[stream] for row in found] == pytest.approx(expected, abs=1e-5)


def test_a_step_has_the_gradient_of_the_mean_loss_times_the_scale(session: Session) -> None:
    lessons, again = (StreamLessons(session, torch.device("cpu")) for _ in range(2))
    step = lessons.learn(0, 0, 20.0)
    found = [parameter.grad.clone() for parameter in session.model.parameters() if parameter.grad is not None]
    session.model.zero_grad()
    forward, backward = session.model.stream_losses(again._read()[0], again.states)
    loss = (forward.mean() + backward.mean()) / 2
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(step.nats) == pytest.approx(float(loss.detach()), rel=1e-6)
    for one, parameter in zip(found, session.model.parameters(), strict=True):
        torch.testing.assert_close(one, 20 * parameter.grad, rtol=1e-4, atol=1e-6)


def test_the_recipe_of_bilm_tf_is_that_of_its_script() -> None:
    recipe = RECIPES["bilm-tf"]
    assert (recipe.learning_rate, recipe.clip_norm, recipe.negatives) == (0.2, 10.0, 8192)
    assert (recipe.dropout, recipe.gradient_factor) == (0.1, 20.0)
