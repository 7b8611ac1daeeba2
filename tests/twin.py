"""A slow float64 twin of the biLM of Peters et al. (2018), written in plain loops to check a fast implementation.

Options and weights have the layout of bilm-tf's options.json and HDF5 weight file. In the shapes below C is the
number of characters a token, E the character dimension, N the number of filters, P the projection dimension, D the
LSTM dimension, L the number of LSTM layers, V the vocabulary size and n the number of tokens in a sentence.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Options = dict[str, Any]
Weights = dict[str, NDArray[np.float64]]
Vector = NDArray[np.float64]

# Ids 0..255 are the byte values of UTF-8; these follow (bilm-tf, before its shift by one for padding rows).
BEGIN_SENTENCE = 256
END_SENTENCE = 257
BEGIN_WORD = 258
END_WORD = 259
PADDING = 260
CHARACTER_COUNT = 261

FORWARD = 0
BACKWARD = 1

# bilm-tf leaves the forget bias out of the stored B and adds it while running.
FORGET_BIAS = 1.0


def sigmoid(x: Vector) -> Vector:
    """Return 1 / (1 + exp(-x)), written so that no exponential overflows."""
    return np.exp(-np.logaddexp(0.0, -x))


def relu(x: Vector) -> Vector:
    """Return the larger of x and 0, element by element."""
    return np.maximum(x, 0.0)


def clip(x: Vector, limit: float | None) -> Vector:
    """Limit x to [-limit, limit]; None leaves x alone.

    Raises:
        ValueError: the limit is not positive. Implementations disagree about the meaning of 0.
    """
    if limit is None:
        return x
    if limit <= 0:
        raise ValueError(f"a clip must be positive or absent, not {limit}")
    return np.minimum(np.maximum(x, -limit), limit)


def log_softmax(logits: Vector) -> Vector:
    """Return the natural logarithm of the softmax of logits [V]."""
    shifted = logits - np.max(logits)
    return shifted - math.log(float(np.sum(np.exp(shifted))))


def cell_name(direction: int, layer: int) -> str:
    """Return the group that holds an LSTM layer in the weight file, with its final slash."""
    return f"RNN_{direction}/RNN/MultiRNNCell/Cell{layer}/LSTMCell/"


def filter_count(options: Options) -> int:
    """Return N, the number of filters of all widths."""
    return sum(count for _, count in options["char_cnn"]["filters"])


def random_weights(options: Options, seed: int, *, scale: float = 1.0, vocabulary_size: int | None = None) -> Weights:
    """Draw weights of plausible sizes, all biases non-zero; the same seed gives the same weights.

    Every value is representable in float32, so a float32 model can hold exactly these weights.

    `scale` multiplies the LSTM matrices W_0 and W_P_0; from about 4 on, gates saturate and clips of 3 bite.
    `vocabulary_size` is the V of the softmax; None leaves the softmax out.
    """
    generator = np.random.default_rng(seed)
    weights = _random_token_encoder(options, generator)
    weights.update(_random_lstms(options, generator, scale))
    if vocabulary_size is not None:
        # Standard deviation 1, not 1 / sqrt(P), so that the probabilities differ clearly from word to word.
        weights["softmax/W"] = generator.normal(0.0, 1.0, (vocabulary_size, options["lstm"]["projection_dim"]))
        weights["softmax/b"] = generator.normal(0.0, 0.5, vocabulary_size)
    return {name: value.astype(np.float32).astype(np.float64) for name, value in weights.items()}


def _random_token_encoder(options: Options, generator: np.random.Generator) -> Weights:
    char_cnn = options["char_cnn"]
    char_dim, total = char_cnn["embedding"]["dim"], filter_count(options)
    projection_dim = options["lstm"]["projection_dim"]
    weights = {"char_embed": generator.uniform(-1.0, 1.0, (CHARACTER_COUNT, char_dim))}
    for k, (width, count) in enumerate(char_cnn["filters"]):
        deviation = 1.0 / math.sqrt(width * char_dim)
        weights[f"CNN/W_cnn_{k}"] = generator.normal(0.0, deviation, (1, width, char_dim, count))
        # Centred below 0, because the maximum over positions is far above it; some ReLUs must stay at 0.
        weights[f"CNN/b_cnn_{k}"] = generator.normal(-0.5, 0.5, count)
    for k in range(char_cnn.get("n_highway") or 0):
        for part in ("carry", "transform"):
            weights[f"CNN_high_{k}/W_{part}"] = generator.normal(0.0, 1.0 / math.sqrt(total), (total, total))
        weights[f"CNN_high_{k}/b_carry"] = generator.normal(-0.5, 0.5, total)
        weights[f"CNN_high_{k}/b_transform"] = generator.normal(0.0, 0.5, total)
    if total != projection_dim:
        weights["CNN_proj/W_proj"] = generator.normal(0.0, 1.0 / math.sqrt(total), (total, projection_dim))
        weights["CNN_proj/b_proj"] = generator.normal(0.0, 0.5, projection_dim)
    return weights


def _random_lstms(options: Options, generator: np.random.Generator, scale: float) -> Weights:
    lstm = options["lstm"]
    dim, projection_dim = lstm["dim"], lstm["projection_dim"]
    weights = {}
    for direction in (FORWARD, BACKWARD):
        for layer in range(lstm.get("n_layers", 1)):
            name = cell_name(direction, layer)
            # [x, h] has 2P elements of size about 1 at most, so the gate inputs stay near 1 at scale 1.
            deviation = 1.0 / math.sqrt(2 * projection_dim)
            weights[name + "W_0"] = generator.normal(0.0, scale * deviation, (2 * projection_dim, 4 * dim))
            weights[name + "B"] = generator.normal(0.0, 0.5, 4 * dim)
            if projection_dim != dim:
                weights[name + "W_P_0"] = generator.normal(0.0, scale / math.sqrt(dim), (dim, projection_dim))
    return weights


class Twin:
    """The biLM, one token and one time step at a time."""

    def __init__(self, options: Options, weights: Weights) -> None:
        self.options = options
        self.weights = {name: np.asarray(value, dtype=np.float64) for name, value in weights.items()}

    def character_ids(self, token: str) -> list[int]:
        """Return the C character ids of a token, 0..260.

        The bytes are cut before the end of the word is placed, so a cut may split a character. Lone surrogates have
        no bytes. The tokens `<S>` and `</S>` are the sentence boundaries, not spelled out.
        """
        size = self.options["char_cnn"]["max_characters_per_token"]
        if token == "<S>":
            spelling = [BEGIN_SENTENCE]
        elif token == "</S>":
            spelling = [END_SENTENCE]
        else:
            spelling = list(token.encode("utf-8", errors="ignore"))[: size - 2]
        ids = [BEGIN_WORD, *spelling, END_WORD]
        while len(ids) < size:
            ids.append(PADDING)
        return ids

    def token_vector(self, token: str) -> Vector:
        """Return the vector [P] of a token out of its context: char CNN, highways, projection.

        Kim et al. (2016) as used by Peters et al. (2018), section 3.4.
        """
        chars = np.array([self.weights["char_embed"][i] for i in self.character_ids(token)])
        h = self._convolve(chars)
        for k in range(self.options["char_cnn"].get("n_highway") or 0):
            h = self._highway(h, k)
        if filter_count(self.options) == self.options["lstm"]["projection_dim"]:
            return h
        return h @ self.weights["CNN_proj/W_proj"] + self.weights["CNN_proj/b_proj"]

    def _convolve(self, chars: Vector) -> Vector:
        """Return [N]: of each filter the activated maximum over all places in chars [C, E], paddings included."""
        activations: dict[str, Callable[[Vector], Vector]] = {"relu": relu, "tanh": np.tanh}
        activation = activations[self.options["char_cnn"]["activation"]]
        pooled = []
        for k, (width, _) in enumerate(self.options["char_cnn"]["filters"]):
            kernel, bias = self.weights[f"CNN/W_cnn_{k}"], self.weights[f"CNN/b_cnn_{k}"]
            places = []
            for start in range(len(chars) - width + 1):
                value = bias
                for offset in range(width):
                    value = value + chars[start + offset] @ kernel[0, offset]
                places.append(value)
            pooled.append(activation(np.max(places, axis=0)))
        return np.concatenate(pooled)

    def _highway(self, h: Vector, k: int) -> Vector:
        """Apply highway k to h [N]. The gate that bilm-tf calls carry lets the *transformed* value through."""
        name = f"CNN_high_{k}/"
        gate = sigmoid(h @ self.weights[name + "W_carry"] + self.weights[name + "b_carry"])
        transformed = relu(h @ self.weights[name + "W_transform"] + self.weights[name + "b_transform"])
        return gate * transformed + (1.0 - gate) * h

    def initial_state(self, direction: int, layer: int) -> tuple[Vector, Vector]:
        """Return the cell state [D] and hidden state [P] before a sentence: zeros, in every direction and layer."""
        return np.zeros(self.options["lstm"]["dim"]), np.zeros(self.options["lstm"]["projection_dim"])

    def lstm_step(
        self, direction: int, layer: int, *, x: Vector, state: tuple[Vector, Vector]
    ) -> tuple[Vector, Vector]:
        """Read x [P] and return the next cell state [D] and hidden state [P], both clipped.

        An LSTM with projection (Sak et al., 2014) whose gates are stored in the order i, j, f, o. Without projection
        (P == D) the hidden state is not clipped.
        """
        lstm, name = self.options["lstm"], cell_name(direction, layer)
        dim = lstm["dim"]
        c, h = state
        gates = np.concatenate([x, h]) @ self.weights[name + "W_0"] + self.weights[name + "B"]
        i = gates[0 * dim : 1 * dim]
        j = gates[1 * dim : 2 * dim]
        f = gates[2 * dim : 3 * dim]
        o = gates[3 * dim : 4 * dim]
        c = sigmoid(f + FORGET_BIAS) * c + sigmoid(i) * np.tanh(j)
        c = clip(c, lstm.get("cell_clip"))
        m = sigmoid(o) * np.tanh(c)
        if lstm["projection_dim"] == dim:
            return c, m
        return c, clip(m @ self.weights[name + "W_P_0"], lstm.get("proj_clip"))

    def _read(self, direction: int, inputs: list[Vector]) -> list[list[Vector]]:
        """Return the outputs of each LSTM layer, [L, tokens, P], for inputs in the order in which they are read."""
        lstm = self.options["lstm"]
        outputs = []
        for layer in range(lstm.get("n_layers", 1)):
            state = self.initial_state(direction, layer)
            layer_outputs = []
            for x in inputs:
                state = self.lstm_step(direction, layer, x=x, state=state)
                # The residual goes to the next layer and to the reader, never into the carried state.
                skip = layer >= 1 and lstm.get("use_skip_connections", False)
                layer_outputs.append(state[1] + x if skip else state[1])
            outputs.append(layer_outputs)
            inputs = layer_outputs
        return outputs

    def marked_layers(self, tokens: list[str]) -> Vector:
        """Return [L + 1, n + 2, 2P]: the layers of a sentence together with those of its two markers."""
        inputs = [self.token_vector(token) for token in ["<S>", *tokens, "</S>"]]
        forward = self._read(FORWARD, inputs)
        backward = [outputs[::-1] for outputs in self._read(BACKWARD, inputs[::-1])]
        layers = [[np.concatenate([x, x]) for x in inputs]]
        for forward_outputs, backward_outputs in zip(forward, backward, strict=True):
            layers.append([np.concatenate(pair) for pair in zip(forward_outputs, backward_outputs, strict=True)])
        return np.array(layers)

    def layers(self, tokens: list[str]) -> Vector:
        """Return [L + 1, n, 2P]: the token vector twice, then forward and backward outputs of each LSTM layer."""
        return self.marked_layers(tokens)[:, 1:-1]

    def log_probabilities(self, tokens: list[str], vocabulary: list[str]) -> tuple[list[float], list[float]]:
        """Return the log-probabilities (nats) that the two language models give to a sentence, n + 1 each.

        Forward entry t belongs to word t of [w_1, ..., w_n, </S>], predicted from all before it; backward entry t to
        word t of [<S>, w_1, ..., w_n], predicted from all after it. Peters et al. (2018), section 3.1.
        """
        projection_dim = self.options["lstm"]["projection_dim"]
        top = self.marked_layers(tokens)[-1]
        marked = ["<S>", *tokens, "</S>"]
        forward, backward = [], []
        for t in range(len(marked) - 1):
            forward.append(self._log_probability(marked[t + 1], vocabulary, h=top[t, :projection_dim]))
            backward.append(self._log_probability(marked[t], vocabulary, h=top[t + 1, projection_dim:]))
        return forward, backward

    def _log_probability(self, word: str, vocabulary: list[str], *, h: Vector) -> float:
        ids = {entry: row for row, entry in enumerate(vocabulary)}
        target = ids[word] if word in ids else ids["<UNK>"]
        logits = self.weights["softmax/W"] @ h + self.weights["softmax/b"]
        if len(logits) != len(vocabulary):
            raise ValueError(f"the softmax has {len(logits)} rows, the vocabulary {len(vocabulary)} words")
        return float(log_softmax(logits)[target])

    def perplexities(self, sentences: list[list[str]], vocabulary: list[str]) -> tuple[float, float, float]:
        """Return the forward and backward perplexity and their geometric mean, over all sentences together.

        Each is exp of the mean negative log-likelihood in nats a predicted token, boundaries included.
        """
        forward, backward = [], []
        for tokens in sentences:
            forward_of_sentence, backward_of_sentence = self.log_probabilities(tokens, vocabulary)
            forward.extend(forward_of_sentence)
            backward.extend(backward_of_sentence)
        forward_loss = -sum(forward) / len(forward)
        backward_loss = -sum(backward) / len(backward)
        return math.exp(forward_loss), math.exp(backward_loss), math.exp((forward_loss + backward_loss) / 2)
