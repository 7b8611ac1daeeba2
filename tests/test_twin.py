"""Checks of the float64 twin against numbers worked out by hand, so that it can serve as a reference."""

import math

import numpy as np
import pytest
from twin import BACKWARD, FORWARD, Options, Twin, Vector, Weights, cell_name, random_weights

# Both sides are float64 and a handful of operations long.
TOLERANCE = 1e-12

# The one number in which the two directions of the one-unit biLM differ.
INPUT_BIAS = {FORWARD: 0.05, BACKWARD: -0.45}


def make_options(*, filters: list[list[int]], dim: int, projection_dim: int, **lstm: float | None) -> Options:
    """Return options with characters of dimension 1, at most four a token, ReLU and no highway."""
    return {
        "lstm": {"dim": dim, "projection_dim": projection_dim, "n_layers": 1, **lstm},
        "char_cnn": {
            "embedding": {"dim": 1},
            "filters": filters,
            "activation": "relu",
            "max_characters_per_token": 4,
        },
    }


def sigmoid(x: float) -> float:
    """Return the logistic function in the form of the textbook."""
    return 1.0 / (1.0 + math.exp(-x))


def vector(*values: float) -> Vector:
    """Return a float64 vector."""
    return np.array(values, dtype=np.float64)


@pytest.fixture
def one_unit_options() -> Options:
    """A biLM in which every dimension is 1, so there is no projection anywhere."""
    return make_options(filters=[[1, 1]], dim=1, projection_dim=1)


@pytest.fixture
def one_unit_weights() -> Weights:
    """Weights that give "a" the vector [0.5], the markers [0.2] and [0.3], and distinct gates."""
    char_embed = np.full((261, 1), -1.0)
    char_embed[ord("a")] = 0.5
    char_embed[256] = 0.2
    char_embed[257] = 0.3
    weights = {"char_embed": char_embed, "CNN/W_cnn_0": np.ones((1, 1, 1, 1)), "CNN/b_cnn_0": np.zeros(1)}
    for direction in (FORWARD, BACKWARD):
        # Columns i, j, f, o; the first row reads the input, the second the hidden state.
        weights[cell_name(direction, 0) + "W_0"] = np.array([[0.1, 0.7, -0.3, 0.4], [0.6, -0.5, 0.2, -0.8]])
        weights[cell_name(direction, 0) + "B"] = vector(INPUT_BIAS[direction], -0.15, 0.25, 0.35)
    return weights


def one_unit_step(x: float, c: float, h: float, *, direction: int = FORWARD) -> tuple[float, float]:
    """Return the step of the one-unit LSTM written out with its numbers; 0.25 + 1 is the forget bias."""
    i = sigmoid(0.1 * x + 0.6 * h + INPUT_BIAS[direction])
    j = math.tanh(0.7 * x - 0.5 * h - 0.15)
    f = sigmoid(-0.3 * x + 0.2 * h + 0.25 + 1.0)
    o = sigmoid(0.4 * x - 0.8 * h + 0.35)
    c = f * c + i * j
    return c, o * math.tanh(c)


@pytest.mark.parametrize(
    ("token", "size", "ids"),
    [
        ("a", 5, [258, 97, 259, 260, 260]),
        ("", 4, [258, 259, 260, 260]),
        ("abcd", 5, [258, 97, 98, 99, 259]),
        ("é", 4, [258, 0xC3, 0xA9, 259]),
        ("é", 3, [258, 0xC3, 259]),
        ("\ud800", 4, [258, 259, 260, 260]),
        ("a\udc80b", 5, [258, 97, 98, 259, 260]),
        ("<S>", 5, [258, 256, 259, 260, 260]),
        ("</S>", 5, [258, 257, 259, 260, 260]),
        ("<s>", 5, [258, 60, 115, 62, 259]),
        ("<UNK>", 7, [258, 60, 85, 78, 75, 62, 259]),
    ],
)
def test_character_ids_frame_and_cut_the_bytes(
    one_unit_options: Options, token: str, size: int, ids: list[int]
) -> None:
    one_unit_options["char_cnn"]["max_characters_per_token"] = size
    assert Twin(one_unit_options, {}).character_ids(token) == ids


@pytest.mark.parametrize(("activation", "second"), [("relu", 0.0), ("tanh", math.tanh(-0.9))])
def test_filters_take_the_maximum_over_all_places(activation: str, second: float) -> None:
    options = make_options(filters=[[1, 1], [2, 1]], dim=2, projection_dim=2)
    options["char_cnn"]["activation"] = activation
    char_embed = np.zeros((261, 1))
    # "a" is begin, a, end, padding: 0.1, 0.4, -0.6, 0.9; only the padding reaches the largest value.
    char_embed[[258, 97, 259, 260], 0] = [0.1, 0.4, -0.6, 0.9]
    weights = {
        "char_embed": char_embed,
        "CNN/W_cnn_0": np.array([[[[2.0]]]]),
        "CNN/b_cnn_0": vector(-0.5),
        # Pairs 1 * left + 2 * right: 0.9, -0.8, 1.2; the bias -2.1 takes the largest to -0.9.
        "CNN/W_cnn_1": np.array([[[[1.0]], [[2.0]]]]),
        "CNN/b_cnn_1": vector(-2.1),
    }
    first = 1.3 if activation == "relu" else math.tanh(1.3)  # 2 * 0.9 - 0.5
    np.testing.assert_allclose(Twin(options, weights).token_vector("a"), [first, second], atol=TOLERANCE)


@pytest.mark.parametrize(
    ("carry_bias", "expected"),
    [
        (50.0, 0.5 * 3.0 + 0.25),  # open: the transformed value
        (-50.0, 0.5),  # shut: the value that came in
        (-2.0, sigmoid(0.5 * 0.8 - 2.0) * 1.75 + (1.0 - sigmoid(0.5 * 0.8 - 2.0)) * 0.5),
    ],
)
def test_highway_gate_lets_the_transformed_value_through(
    one_unit_options: Options, one_unit_weights: Weights, carry_bias: float, expected: float
) -> None:
    one_unit_options["char_cnn"]["n_highway"] = 1
    one_unit_weights["CNN_high_0/W_carry"] = np.array([[0.8]])
    one_unit_weights["CNN_high_0/b_carry"] = vector(carry_bias)
    one_unit_weights["CNN_high_0/W_transform"] = np.array([[3.0]])
    one_unit_weights["CNN_high_0/b_transform"] = vector(0.25)
    result = Twin(one_unit_options, one_unit_weights).token_vector("a")
    np.testing.assert_allclose(result, [expected], atol=TOLERANCE)


def test_projection_of_the_token_has_no_activation(one_unit_weights: Weights) -> None:
    options = make_options(filters=[[1, 1]], dim=2, projection_dim=2)
    one_unit_weights["CNN_proj/W_proj"] = np.array([[4.0, -4.0]])
    one_unit_weights["CNN_proj/b_proj"] = vector(0.1, 0.2)
    result = Twin(options, one_unit_weights).token_vector("a")
    np.testing.assert_allclose(result, [2.1, -1.8], atol=TOLERANCE)


def test_lstm_step_equals_the_formulas(one_unit_options: Options, one_unit_weights: Weights) -> None:
    twin = Twin(one_unit_options, one_unit_weights)
    c, h = twin.lstm_step(FORWARD, 0, x=vector(0.5), state=(vector(-0.4), vector(0.9)))
    np.testing.assert_allclose([c[0], h[0]], one_unit_step(0.5, -0.4, 0.9), atol=TOLERANCE)


def test_clips_bound_the_stored_cell_and_the_projection() -> None:
    options = make_options(filters=[[1, 1]], dim=2, projection_dim=1, cell_clip=0.5, proj_clip=0.3)
    weights = {
        cell_name(FORWARD, 0) + "W_0": np.zeros((2, 8)),
        # Open input gates, candidates near +1 and -1, forget gates at 0, open output gates.
        cell_name(FORWARD, 0) + "B": vector(40.0, 40.0, 40.0, -40.0, -1.0, -1.0, 40.0, 40.0),
        cell_name(FORWARD, 0) + "W_P_0": np.array([[1.0], [0.5]]),
    }
    state = (vector(0.2, 0.2), vector(0.0))
    # Unclipped cells: 0.5 * 0.2 + 1 = 1.1 and 0.5 * 0.2 - 1 = -0.9. Projection: (1 - 0.5) * tanh(0.5) = 0.231.
    c, h = Twin(options, weights).lstm_step(FORWARD, 0, x=vector(0.0), state=state)
    np.testing.assert_allclose(c, [0.5, -0.5], atol=TOLERANCE)
    np.testing.assert_allclose(h, [0.5 * math.tanh(0.5)], atol=TOLERANCE)
    weights[cell_name(FORWARD, 0) + "W_P_0"] = np.array([[-1.0], [0.5]])
    np.testing.assert_allclose(Twin(options, weights).lstm_step(FORWARD, 0, x=vector(0.0), state=state)[1], [-0.3])


@pytest.mark.parametrize("clips", [{}, {"cell_clip": None, "proj_clip": None}])
def test_absent_clips_do_not_bound(clips: dict[str, None]) -> None:
    options = make_options(filters=[[1, 1]], dim=2, projection_dim=1, **clips)
    weights = {
        cell_name(FORWARD, 0) + "W_0": np.zeros((2, 8)),
        cell_name(FORWARD, 0) + "B": np.full(8, 40.0),
        cell_name(FORWARD, 0) + "W_P_0": np.array([[5.0], [5.0]]),
    }
    c, h = Twin(options, weights).lstm_step(FORWARD, 0, x=vector(0.0), state=(vector(6.0, 6.0), vector(0.0)))
    np.testing.assert_allclose(c, [7.0, 7.0], atol=TOLERANCE)
    np.testing.assert_allclose(h, [10.0 * math.tanh(7.0)], atol=TOLERANCE)


def test_projection_clip_is_idle_without_projection(one_unit_options: Options, one_unit_weights: Weights) -> None:
    one_unit_options["lstm"]["proj_clip"] = 0.001
    h = Twin(one_unit_options, one_unit_weights).lstm_step(FORWARD, 0, x=vector(0.5), state=(vector(0.4), vector(0.9)))[
        1
    ]
    np.testing.assert_allclose(h, [one_unit_step(0.5, 0.4, 0.9)[1]], atol=TOLERANCE)


def test_a_clip_of_zero_is_refused(one_unit_options: Options, one_unit_weights: Weights) -> None:
    one_unit_options["lstm"]["cell_clip"] = 0
    with pytest.raises(ValueError, match="a clip must be positive or absent, not 0"):
        Twin(one_unit_options, one_unit_weights).layers(["a"])


def test_each_direction_reads_its_own_marker_before_the_token(
    one_unit_options: Options, one_unit_weights: Weights
) -> None:
    forward = one_unit_step(0.5, *one_unit_step(0.2, 0.0, 0.0))[1]
    end = one_unit_step(0.3, 0.0, 0.0, direction=BACKWARD)
    backward = one_unit_step(0.5, *end, direction=BACKWARD)[1]
    layers = Twin(one_unit_options, one_unit_weights).layers(["a"])
    np.testing.assert_allclose(layers, [[[0.5, 0.5]], [[forward, backward]]], atol=TOLERANCE)


def test_skip_connection_adds_the_input_of_later_layers_only(
    one_unit_options: Options, one_unit_weights: Weights
) -> None:
    one_unit_options["lstm"]["n_layers"] = 2
    for direction in (FORWARD, BACKWARD):
        for part in ("W_0", "B"):
            one_unit_weights[cell_name(direction, 1) + part] = one_unit_weights[cell_name(direction, 0) + part]
    plain = Twin(one_unit_options, one_unit_weights).layers(["a", "a"])
    one_unit_options["lstm"]["use_skip_connections"] = True
    skipping = Twin(one_unit_options, one_unit_weights).layers(["a", "a"])
    np.testing.assert_allclose(skipping[:2], plain[:2], atol=TOLERANCE)
    np.testing.assert_allclose(skipping[2], plain[2] + plain[1], atol=TOLERANCE)


def test_log_probabilities_pair_each_word_with_its_context(
    one_unit_options: Options, one_unit_weights: Weights
) -> None:
    vocabulary = ["<S>", "</S>", "<UNK>", "a"]
    one_unit_weights["softmax/W"] = np.array([[1.0], [-2.0], [3.0], [0.5]])
    one_unit_weights["softmax/b"] = vector(0.1, 0.2, 0.3, 0.4)
    begin = one_unit_step(0.2, 0.0, 0.0)
    end = one_unit_step(0.3, 0.0, 0.0, direction=BACKWARD)

    def expected(target: int, h: float) -> float:
        scores = [math.exp(h + 0.1), math.exp(-2.0 * h + 0.2), math.exp(3.0 * h + 0.3), math.exp(0.5 * h + 0.4)]
        return math.log(scores[target] / sum(scores))

    forward, backward = Twin(one_unit_options, one_unit_weights).log_probabilities(["a"], vocabulary)
    forward_expected = [expected(3, begin[1]), expected(1, one_unit_step(0.5, *begin)[1])]
    backward_expected = [expected(0, one_unit_step(0.5, *end, direction=BACKWARD)[1]), expected(3, end[1])]
    np.testing.assert_allclose(forward, forward_expected, atol=TOLERANCE)
    np.testing.assert_allclose(backward, backward_expected, atol=TOLERANCE)


def test_unknown_words_are_predicted_as_unk(one_unit_options: Options, one_unit_weights: Weights) -> None:
    one_unit_weights["softmax/W"] = np.zeros((3, 1))
    one_unit_weights["softmax/b"] = np.log(vector(0.5, 0.25, 0.25))
    forward, backward = Twin(one_unit_options, one_unit_weights).log_probabilities(["b"], ["<UNK>", "<S>", "</S>"])
    np.testing.assert_allclose(np.exp(forward), [0.5, 0.25], atol=TOLERANCE)
    np.testing.assert_allclose(np.exp(backward), [0.25, 0.5], atol=TOLERANCE)


def test_perplexity_weighs_every_predicted_token_alike(one_unit_options: Options, one_unit_weights: Weights) -> None:
    one_unit_weights["softmax/W"] = np.zeros((4, 1))
    one_unit_weights["softmax/b"] = np.log(vector(0.5, 0.25, 0.125, 0.125))
    # Forward: (</S>) and (a, a, </S>): 2 * 0.125 and 2 * 0.25. Backward: (<S>) and (<S>, a, a): twice 0.5 and 0.125.
    result = Twin(one_unit_options, one_unit_weights).perplexities([[], ["a", "a"]], ["<S>", "</S>", "<UNK>", "a"])
    forward, backward = 2.0 ** ((3 + 3 + 2 + 2) / 4), 2.0 ** ((1 + 1 + 3 + 3) / 4)
    np.testing.assert_allclose(result, [forward, backward, math.sqrt(forward * backward)], atol=TOLERANCE)


@pytest.mark.parametrize("tokens", [[], ["a"], ["a", "", "<S>", "longer", "\ud800"]])
@pytest.mark.parametrize(("dim", "projection_dim", "layer_count", "highway_count"), [(5, 3, 2, 2), (4, 4, 3, 0)])
def test_random_weights_fit_the_options(
    tokens: list[str], dim: int, projection_dim: int, layer_count: int, highway_count: int
) -> None:
    options = make_options(filters=[[1, 1], [2, 3]], dim=dim, projection_dim=projection_dim, n_layers=layer_count)
    options["char_cnn"]["n_highway"] = highway_count
    layers = Twin(options, random_weights(options, 1)).layers(tokens)
    assert layers.shape == (layer_count + 1, len(tokens), 2 * projection_dim)
    assert np.isfinite(layers).all()


def test_scale_makes_both_clips_bite() -> None:
    options = make_options(filters=[[1, 8]], dim=32, projection_dim=8, cell_clip=3, proj_clip=3)
    twin = Twin(options, random_weights(options, 1, scale=8.0))
    state = twin.initial_state(FORWARD, 0)
    for token in "a b c d e f g h".split():
        state = twin.lstm_step(FORWARD, 0, x=twin.token_vector(token), state=state)
    assert [np.abs(part).max() for part in state] == [3.0, 3.0]


def test_random_weights_repeat_with_their_seed_and_fit_float32(one_unit_options: Options) -> None:
    first, second = (random_weights(one_unit_options, 7, vocabulary_size=3) for _ in range(2))
    assert list(first) == list(second)
    for name, value in first.items():
        assert (value == second[name]).all()
        assert (value == value.astype(np.float32)).all()
