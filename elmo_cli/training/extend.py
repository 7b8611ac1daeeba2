"""A base's vocabulary and softmax, extended by the words of a domain."""

import torch
from jaxtyping import Float, Int
from torch import Tensor

from elmo_cli.bilm.bilm import BiLM
from elmo_cli.bilm.language_model import LanguageModel
from elmo_cli.bilm.softmax import Softmax
from elmo_cli.config import TrainingSettings
from elmo_cli.text.characters import character_ids
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary, build_vocabulary
from elmo_cli.training.heldout import Frequencies, count_types
from elmo_cli.training.run_text import RunText
from elmo_cli.training.session import new_model

_FITTED_TYPES = 20_000  # most frequent types of the base, from which the map is learned: enough for 1,000 dimensions
_TYPES_AT_ONCE = 512  # through the char CNN
_RIDGE = 0.01  # of the mean square of an input: new rows lean to the mean row where characters say little


def extended_vocabulary(base: Vocabulary, text: RunText, limit: int) -> Vocabulary:
    """Return the base's types, in their order, and behind them up to ``limit`` types of the training text.

    Those are the most frequent that the base lacks, each as frequent as a vocabulary of this text would ask for. They
    come last, so that no id of the base changes.
    """
    types, counts = text.corpus.all_type_texts, count_types(text.corpus, text.pieces)
    known = set(base.types)
    new = [number for number, word_type in enumerate(types) if word_type not in known]
    found = build_vocabulary(
        [types[number] for number in new], counts[new], min_count=text.choices.min_count, max_size=limit
    )
    return Vocabulary((*base.types, *found.types[len(SPECIALS) :]))


def model_from_base(
    bilm: BiLM, softmax: Softmax, vocabulary: Vocabulary, frequencies: Frequencies, settings: TrainingSettings
) -> LanguageModel:
    """Return a base's model, ready to train, with a softmax over a vocabulary that begins with the base's.

    Args:
        bilm: of the base.
        softmax: of the base; its rows are copied.
        vocabulary: the base's types first.
        frequencies: of these types in the training text.
        settings: of the run.
    """
    model = new_model(bilm.config, len(vocabulary), settings)
    model.bilm.load_state_dict(bilm.state_dict())
    kept = len(softmax.bias)
    with torch.no_grad():
        model.softmax.weight[:kept], model.softmax.bias[:kept] = softmax.weight, softmax.bias
        if len(vocabulary) > kept:
            weight, bias = _new_rows(bilm, softmax, vocabulary, frequencies)
            model.softmax.weight[kept:], model.softmax.bias[kept:] = weight, bias
    return model


def model_with_fresh_softmax(
    bilm: BiLM, vocabulary: Vocabulary, frequencies: Frequencies, settings: TrainingSettings
) -> LanguageModel:
    """Return a base's biLM, frozen, with a softmax drawn afresh as in training."""
    model = new_model(bilm.config, len(vocabulary), settings)
    model.bilm.load_state_dict(bilm.state_dict())
    model.bilm.requires_grad_(False)
    generator = torch.Generator().manual_seed(settings.seed)
    model.softmax.initialise(generator, torch.from_numpy(frequencies.log_relative()).float())
    return model


def _new_rows(
    bilm: BiLM, softmax: Softmax, vocabulary: Vocabulary, frequencies: Frequencies
) -> tuple[Float[Tensor, "new dim"], Float[Tensor, " new"]]:
    """Guess the softmax's rows of types that the base does not know from how they are spelled.

    A linear map from the token encoder's vector of a type to its row is fitted to the types that the base knows (ridge
    regression). Biases are the new types' log frequencies in the text, shifted as those of known types are.
    """
    kept = len(softmax.bias)
    fitted = slice(len(SPECIALS), min(kept, len(SPECIALS) + _FITTED_TYPES))
    rows = softmax.weight[fitted].double()
    mean = rows.mean(dim=0)
    x = _type_vectors(bilm, vocabulary.types[fitted])
    centre = x.mean(dim=0)
    x -= centre
    gram = x.T @ x
    gram.diagonal().add_(_RIDGE * gram.diagonal().mean() + torch.finfo(torch.float64).tiny)
    slope = torch.linalg.solve(gram, x.T @ (rows - mean))
    weight = mean + (_type_vectors(bilm, vocabulary.types[kept:]) - centre) @ slope
    log_frequencies = torch.from_numpy(frequencies.log_relative())
    seen = _seen(frequencies, kept)
    shift = (softmax.bias[seen].double() - log_frequencies[seen]).median() if len(seen) else torch.zeros(())
    return weight.float(), (log_frequencies[kept:] + shift).float()


def _seen(frequencies: Frequencies, kept: int) -> Int[Tensor, " seen"]:
    """Return the ids of the base's types, the special ones left out, that occur in the text."""
    return torch.from_numpy(frequencies.counts[len(SPECIALS) : kept]).nonzero().squeeze(1) + len(SPECIALS)


def _type_vectors(bilm: BiLM, types: tuple[str, ...]) -> Float[Tensor, "types dim"]:
    """Return the token encoder's vectors in float64, in which the map is fitted."""
    chars = torch.from_numpy(character_ids(types, bilm.config.char_cnn.max_characters))
    return torch.cat([bilm.token_encoder(part) for part in chars.split(_TYPES_AT_ONCE)]).double()
