"""A sentence's vectors depend on the sentence alone, whatever is embedded with it, before it or how."""

from collections.abc import Callable, Iterator
from itertools import count, islice
from random import Random

import numpy as np
import pytest
import torch
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from sentence_batches import layers_of

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.embedding import embedder as embedder_module
from elmo_cli.embedding.embedder import Embedder, EmbeddingCounts
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.errors import ModelError
from elmo_cli.reporting import SilentReporter

# Batches of other shapes add up float32 numbers in another order; values are of size 1 and sentences short.
REORDERED_SUMS = 1e-5
# The same batch shapes leave the same sums; BLAS may still choose another kernel for the last rows.
SAME_SHAPES = 1e-6

ALL = LayerChoice((0, 1, 2))
CPU = torch.device("cpu")

Sentence = list[str]

TOKENS = st.one_of(
    st.sampled_from(["the", "ship", "Ship", ".", "<S>", "</S>", "<UNK>", "", "a" * 60, "a" * 47 + "é", "你好", "👩‍🚀"]),
    st.text(max_size=8),
)
SENTENCES = st.lists(st.lists(TOKENS, max_size=9), max_size=7)
few_examples = hypothesis_settings(max_examples=15)


def embed(bilm: BiLM, sentences: list[Sentence], choice: LayerChoice = ALL) -> list[torch.Tensor]:
    """Embed with an embedder that has seen nothing before."""
    return list(Embedder(bilm, CPU).embed(sentences, choice))


def assert_equal(found: list[torch.Tensor], expected: list[torch.Tensor], tolerance: float = REORDERED_SUMS) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=tolerance)


def alone(bilm: BiLM, sentences: list[Sentence]) -> list[torch.Tensor]:
    """Embed each sentence with an embedder of its own."""
    return [embed(bilm, [sentence])[0] for sentence in sentences]


@few_examples
@given(SENTENCES)
@example([[], ["a"], []])
def test_neighbours_do_not_change_vectors(tiny_bilm: BiLM, sentences: list[Sentence]) -> None:
    assert_equal(embed(tiny_bilm, sentences), alone(tiny_bilm, sentences))


@few_examples
@given(SENTENCES, st.randoms(use_true_random=False))
def test_order_does_not_change_vectors(tiny_bilm: BiLM, sentences: list[Sentence], random: Random) -> None:
    order = random.sample(range(len(sentences)), len(sentences))
    vectors = embed(tiny_bilm, sentences)
    assert_equal(embed(tiny_bilm, [sentences[k] for k in order]), [vectors[k] for k in order])


@few_examples
@given(SENTENCES, SENTENCES)
def test_sentences_before_do_not_change_vectors(
    tiny_bilm: BiLM, before: list[Sentence], sentences: list[Sentence]
) -> None:
    embedder = Embedder(tiny_bilm, CPU)
    list(embedder.embed(before, ALL))
    assert_equal(list(embedder.embed(sentences, ALL)), embed(tiny_bilm, sentences))


LIMITS = ("_WINDOW_TOKENS", "_WINDOW_SENTENCES", "_BATCH_TOKENS", "_TYPES_AT_ONCE", "_CACHED_TYPES")


@few_examples
@given(SENTENCES, st.sampled_from(LIMITS), st.integers(1, 12))
def test_limits_of_windows_batches_and_cache_do_not_change_vectors(
    tiny_bilm: BiLM, sentences: list[Sentence], limit: str, value: int
) -> None:
    expected = embed(tiny_bilm, sentences)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embedder_module, limit, value)
        assert_equal(embed(tiny_bilm, sentences), expected)


@few_examples
@given(SENTENCES)
def test_all_limits_tiny_at_once_do_not_change_vectors(tiny_bilm: BiLM, sentences: list[Sentence]) -> None:
    expected = embed(tiny_bilm, sentences)
    with pytest.MonkeyPatch.context() as patch:
        for limit in LIMITS:
            patch.setattr(embedder_module, limit, 4)
        assert_equal(embed(tiny_bilm, sentences), expected)


@pytest.mark.parametrize("threads", [1, 2])
def test_number_of_threads_does_not_change_vectors(
    tiny_bilm: BiLM, many_sentences: list[Sentence], threads: int
) -> None:
    expected = embed(tiny_bilm, many_sentences)
    torch.set_num_threads(threads)
    assert_equal(embed(tiny_bilm, many_sentences), expected)


@pytest.fixture(scope="module")
def many_sentences() -> list[Sentence]:
    """400 sentences of 0 to 29 tokens: several batches of the usual size, and of several hundred word types."""
    random = np.random.default_rng(1)
    return [[f"w{k}" for k in random.zipf(1.4, size) % 2000] for size in random.integers(0, 30, 400)]


def test_vectors_of_many_sentences_equal_those_of_each_alone(tiny_bilm: BiLM, many_sentences: list[Sentence]) -> None:
    found = embed(tiny_bilm, many_sentences)
    chosen = slice(None, None, 37)
    assert_equal(found[chosen], alone(tiny_bilm, many_sentences[chosen]))


def test_vectors_are_those_of_the_bilm(tiny_bilm: BiLM) -> None:
    sentences = [["The", "ship", "sails"], [], ["."]]
    expected = [layers.transpose(0, 1) for layers in layers_of(tiny_bilm, sentences)]
    assert_equal(embed(tiny_bilm, sentences), expected)


@few_examples
@given(st.lists(TOKENS, min_size=1, max_size=6), st.integers(2, 4))
def test_equal_sentences_have_equal_vectors(tiny_bilm: BiLM, sentence: Sentence, times: int) -> None:
    first, *others = embed(tiny_bilm, [sentence] * times)
    assert_equal(others, [first] * (times - 1), SAME_SHAPES)


# Words whose vectors differ clearly, as two of `TOKENS` need not: "aaa" and "aaaa" have the same three-letter pieces.
DISTINCT = st.permutations(["harbour", "Zürich", "你好", "x1", "ships", "."])


@few_examples
@given(DISTINCT, st.integers(0, 4))
def test_a_word_does_not_change_what_the_forward_lm_read_before(tiny_bilm: BiLM, words: list[str], place: int) -> None:
    *sentence, other = words
    before, after = embed(tiny_bilm, [sentence])[0], embed(tiny_bilm, [replaced(sentence, place, other)])[0]
    assert_equal([after[:place, 1:, :8]], [before[:place, 1:, :8]], SAME_SHAPES)
    assert every_layer_differs(before[place:, 1:, :8], after[place:, 1:, :8], nearest=0)


@few_examples
@given(DISTINCT, st.integers(0, 4))
def test_a_word_does_not_change_what_the_backward_lm_read_before(tiny_bilm: BiLM, words: list[str], place: int) -> None:
    *sentence, other = words
    before, after = embed(tiny_bilm, [sentence])[0], embed(tiny_bilm, [replaced(sentence, place, other)])[0]
    assert_equal([after[place + 1 :, 1:, 8:]], [before[place + 1 :, 1:, 8:]], SAME_SHAPES)
    assert every_layer_differs(before[: place + 1, 1:, 8:], after[: place + 1, 1:, 8:], nearest=-1)


def replaced(sentence: Sentence, place: int, word: str) -> Sentence:
    return [*sentence[:place], word, *sentence[place + 1 :]]


def every_layer_differs(one: torch.Tensor, other: torch.Tensor, *, nearest: int) -> bool:
    """Tell whether all tokens up to three from the changed word differ in every biLSTM layer."""
    near = slice(0, 3) if nearest == 0 else slice(-3, None)
    return bool(((one - other)[near].abs().amax(dim=2) > 100 * SAME_SHAPES).all())


@few_examples
@given(DISTINCT, st.integers(0, 4))
def test_layer_zero_is_the_word_alone_twice(tiny_bilm: BiLM, words: list[str], place: int) -> None:
    vectors = embed(tiny_bilm, [words])[0][place, 0]
    assert_equal([vectors[:8]], [vectors[8:]], 0.0)
    assert_equal([vectors], [embed(tiny_bilm, [[words[place]]])[0][0, 0]])


@pytest.mark.parametrize(
    ("choice", "shape"), [(LayerChoice(None), (0, 16)), (LayerChoice((2,)), (0, 16)), (LayerChoice((0, 2)), (0, 2, 16))]
)
def test_a_sentence_of_no_tokens_has_no_rows(tiny_bilm: BiLM, choice: LayerChoice, shape: tuple[int, ...]) -> None:
    assert [vectors.shape for vectors in embed(tiny_bilm, [[], []], choice)] == [shape, shape]


def test_no_sentences_give_nothing(tiny_bilm: BiLM) -> None:
    assert embed(tiny_bilm, []) == []


def endless(read: list[Sentence]) -> Iterator[Sentence]:
    """Yield sentences of one token for ever and note each in ``read``."""
    for number in count():
        read.append([f"w{number % 50}"])
        yield read[-1]


def test_endless_text_is_read_no_further_than_a_window_ahead(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "_WINDOW_SENTENCES", 10)
    read: list[Sentence] = []
    vectors = Embedder(tiny_bilm, CPU).embed(endless(read), ALL)
    assert read == []
    seen = [len(read) for _ in islice(vectors, 21)]
    assert seen == [10] * 10 + [20] * 10 + [30]


def test_a_window_is_bounded_by_tokens_with_their_markers(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "_WINDOW_TOKENS", 12)
    read: list[Sentence] = []
    next(Embedder(tiny_bilm, CPU).embed(endless(read), ALL))
    assert len(read) == 4  # of three tokens each, markers included


def test_cache_is_emptied_before_it_overflows(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "_CACHED_TYPES", 12)
    monkeypatch.setattr(embedder_module, "_WINDOW_SENTENCES", 1)
    embedder = Embedder(tiny_bilm, CPU)
    sentences = [[f"w{5 * number + k}" for k in range(5)] for number in range(8)]
    sizes = [(len(embedder._rows), len(embedder._table)) for _ in embedder.embed(sentences, ALL)]
    assert max(sizes) == (12, 12)


def counting(
    encoder: Callable[[torch.Tensor], torch.Tensor], rows: list[int]
) -> Callable[[torch.Tensor], torch.Tensor]:
    """Return an encoder that notes in ``rows`` how many word types each call encodes."""

    def encode(chars: torch.Tensor) -> torch.Tensor:
        rows.append(len(chars))
        return encoder(chars)

    return encode


def test_each_word_type_is_encoded_once(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[int] = []
    monkeypatch.setattr(tiny_bilm.token_encoder, "forward", counting(tiny_bilm.token_encoder.forward, rows))
    embedder = Embedder(tiny_bilm, CPU)
    for _ in range(2):
        list(embedder.embed([["a", "b", "a"], ["b"], ["<S>", "c"]], ALL))
    assert rows == [5]  # a, b, c and the two markers


def test_word_types_are_encoded_in_an_order_that_hashing_cannot_change(tiny_bilm: BiLM) -> None:
    embedder = Embedder(tiny_bilm, CPU)
    list(embedder.embed([[f"{letter}{number}" for letter in "bca" for number in (10, 3, 7)]], ALL))
    assert list(embedder._rows) == ["a3", "a7", "b3", "b7", "c3", "c7", "<S>", "a10", "b10", "c10", "</S>"]


def test_sentences_tokens_and_cut_tokens_are_counted(tiny_bilm: BiLM) -> None:
    embedder = Embedder(tiny_bilm, CPU)
    list(embedder.embed([["a", "b" * 49, "b" * 48], [], ["b" * 49, "é" * 24, "é" * 25]], ALL))
    assert embedder.counts == EmbeddingCounts(sentences=3, tokens=6, cut_tokens=3)


def test_vectors_lie_on_the_cpu_in_float32(tiny_bilm: BiLM) -> None:
    (vectors,) = embed(tiny_bilm, [["a"]])
    assert (vectors.device, vectors.dtype) == (CPU, torch.float32)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="this machine has no CUDA device")
def test_cuda_gives_the_vectors_of_the_cpu(tiny_bilm: BiLM, many_sentences: list[Sentence]) -> None:
    expected = embed(tiny_bilm, many_sentences)
    found = list(Embedder(tiny_bilm, torch.device("cuda")).embed(many_sentences, ALL))
    tiny_bilm.to(CPU)
    # Other sums and other exponentials; TensorFloat-32 is off by default, except in convolutions.
    assert_equal(found, expected, 1e-4)


class Notes(SilentReporter):
    """Keeps what it is warned of."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def warn(self, text: str) -> None:
        self.warnings.append(text)


def test_out_of_memory_halves_the_batch_and_says_so(tiny_bilm: BiLM, monkeypatch: pytest.MonkeyPatch) -> None:
    sentences = [[f"w{n % 5}"] * (1 + n % 4) for n in range(40)]
    expected = embed(tiny_bilm, sentences)
    whole = tiny_bilm.embed

    def cramped(types: torch.Tensor, tokens: torch.Tensor, *arguments: object) -> torch.Tensor:
        if len(tokens) > 30:
            raise torch.OutOfMemoryError("pretended")
        return whole(types, tokens, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(tiny_bilm, "embed", cramped)
    notes = Notes()
    assert_equal(list(Embedder(tiny_bilm, CPU, reporter=notes).embed(sentences, ALL)), expected)
    assert notes.warnings
    assert all("out of memory" in text for text in notes.warnings)
    monkeypatch.setattr(tiny_bilm, "embed", lambda *_: cramped(torch.zeros(0), torch.zeros(99)))
    with pytest.raises(ModelError, match="sentence of 3 tokens"):
        list(Embedder(tiny_bilm, CPU).embed([["a", "b", "c"]], ALL))
