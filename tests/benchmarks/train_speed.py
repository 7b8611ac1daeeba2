"""How fast a training step is, beside the usual way to compute it (`plain_training`), and where the time goes.

    python tests/benchmarks/train_speed.py --text FILE
    python tests/benchmarks/train_speed.py --lengths natural --text FILE

Both ways share weights, batches, negatives and optimizer, and are first checked to find the same loss. They take turns
in one process. A step is losses, gradients and update, without dropout. Tokens do not count the sentence markers.
"""

import argparse
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import process_time

import made_up
import measuring
import numpy as np
import torch
from plain_training import plain_losses
from torch import Tensor

from elmo_cli.bilm.bilm import MARKERS_A_SENTENCE
from elmo_cli.bilm.language_model import Batch, LanguageModel
from elmo_cli.bilm.packing import pack
from elmo_cli.bilm.softmax import Negatives, draw_negatives
from elmo_cli.config import PRESETS, TrainingSettings
from elmo_cli.reporting import SilentReporter
from elmo_cli.text.prepare import prepare_corpus
from elmo_cli.text.reader import TextOptions
from elmo_cli.text.vocabulary import SPECIALS, Vocabulary
from elmo_cli.training.batches import BatchMaker, cut_pieces
from elmo_cli.training.optimizer import Optimizer

_RATE = 1e-3
_EQUAL_TOKENS = 20

Pair = tuple[Negatives, Negatives]
Losses = Callable[[LanguageModel, Batch, Pair | None], tuple[Tensor, Tensor]]


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, help="a sentence a line, tokens parted by spaces [default: random words]")
    parser.add_argument("--preset", choices=list(PRESETS), default="small", help="[default: %(default)s]")
    parser.add_argument("--vocabulary", type=int, default=30_000, help="word types [default: %(default)s]")
    parser.add_argument("--negatives", type=int, default=TrainingSettings().negatives, help="[default: %(default)s]")
    parser.add_argument("--batch", type=int, default=128, help="sentences a step [default: %(default)s]")
    parser.add_argument(
        "--lengths",
        choices=("equal", "natural"),
        default="equal",
        help=f"equal: pieces of {_EQUAL_TOKENS} tokens, so that nothing is padded; natural: sentences as they come",
    )
    parser.add_argument("--rounds", type=int, default=5, help="steps of each way [default: %(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="[default: %(default)s]")
    return parser.parse_args()


class Text:
    """Batches of a text, in its order, and over again from its start."""

    def __init__(self, text: Path, folder: Path, options: argparse.Namespace) -> None:
        asked = TextOptions("tokens", "en", "strict")
        corpus = prepare_corpus([str(text)], asked, cache=folder, workers=1, reporter=SilentReporter())
        limit = _EQUAL_TOKENS if options.lengths == "equal" else TrainingSettings().max_sentence_tokens
        pieces = cut_pieces(corpus, np.arange(corpus.info.sentences), limit)
        wanted = pieces.lengths == _EQUAL_TOKENS if options.lengths == "equal" else pieces.lengths > 0
        self._numbers = np.flatnonzero(wanted)
        self._batch = options.batch
        if len(self._numbers) < self._batch:
            raise SystemExit(f"{text}: {len(self._numbers)} pieces are too few for a batch of {self._batch}")
        # Types that do not occur fill the vocabulary up; their rows cost as much as others.
        types = dict.fromkeys([*SPECIALS, *corpus.all_type_texts, *map("#{}".format, range(options.vocabulary))])
        self.vocabulary = Vocabulary(tuple(types)[: options.vocabulary])
        characters = PRESETS[options.preset].char_cnn.max_characters
        self._make = BatchMaker(corpus, pieces, self.vocabulary, characters)

    def batch(self, number: int) -> Batch:
        first = number % (len(self._numbers) // self._batch) * self._batch
        return self._make(self._numbers[first : first + self._batch])


class Models:
    """One set of weights for the full and one for the sampled softmax, each with its optimizer."""

    def __init__(self, options: argparse.Namespace) -> None:
        settings = TrainingSettings(preset=options.preset)
        shape = PRESETS[options.preset]
        self.full = LanguageModel(shape, options.vocabulary)
        generator = torch.Generator().manual_seed(1)
        self.full.bilm.initialise(generator)
        self.full.softmax.initialise(generator, torch.zeros(options.vocabulary))
        self.sampled = LanguageModel(shape, options.vocabulary, sparse=True)
        self.sampled.load_state_dict(self.full.state_dict())
        self.optimizers = {model: Optimizer(model, settings) for model in (self.full, self.sampled)}

    def step(self, losses: Losses, model: LanguageModel, batch: Batch, negatives: Pair | None) -> None:
        forward, backward = losses(model, batch, negatives)
        torch.autograd.backward((forward.mean() + backward.mean()) / 2)
        self.optimizers[model].update(_RATE)


def our_losses(model: LanguageModel, batch: Batch, negatives: Pair | None) -> tuple[Tensor, Tensor]:
    return model.losses(batch, negatives)


def draw(options: argparse.Namespace, number: int) -> Pair:
    random = np.random.default_rng(number)
    return (
        draw_negatives(options.vocabulary, options.negatives, random),
        draw_negatives(options.vocabulary, options.negatives, random),
    )


def check(models: Models, text: Text, options: argparse.Namespace) -> None:
    """Print how far the losses and the gradients of both ways are apart on the first batch, before any update."""
    rows = []
    for name, model, negatives in (("full", models.full, None), ("sampled", models.sampled, draw(options, 0))):
        values, gradients = [], []
        for losses in (plain_losses, our_losses):
            forward, backward = losses(model, text.batch(0), negatives)
            torch.autograd.backward((forward.mean() + backward.mean()) / 2)
            values.append((float(forward.detach().double().mean()), float(backward.detach().double().mean())))
            dense = [p.grad.to_dense().flatten() for p in model.parameters() if p.grad is not None]
            gradients.append(torch.cat(dense))
            model.zero_grad()
        apart = max(abs(a - b) / abs(a) for a, b in zip(*values, strict=True))
        gradient = float((gradients[0] - gradients[1]).norm() / gradients[0].norm())
        rows.append([name, *(f"{value:.6f}" for value in (*values[0], *values[1])), f"{apart:.1e}", f"{gradient:.1e}"])
        if apart > 1e-4:
            raise SystemExit(f"the losses of the {name} softmax differ: {values}")
    head = [
        "softmax",
        "plain forward",
        "backward",
        "elmo forward",
        "backward",
        "relative difference",
        "of the gradient",
    ]
    measuring.print_table(head, rows)


def time_steps(models: Models, text: Text, options: argparse.Namespace) -> dict[str, list[measuring.Round]]:
    """Return the rounds of each way; the first step of each, which asks for new memory, is not among them."""
    ways: dict[str, tuple[Losses, LanguageModel, bool]] = {
        "plain, full softmax": (plain_losses, models.full, False),
        "elmo, full softmax": (our_losses, models.full, False),
        "plain, sampled softmax": (plain_losses, models.sampled, True),
        "elmo, sampled softmax": (our_losses, models.sampled, True),
    }

    def run(number: int, losses: Losses, model: LanguageModel, sampled: bool) -> measuring.Round:
        batch = text.batch(number)
        negatives = draw(options, number) if sampled else None

        def work() -> int:
            models.step(losses, model, batch, negatives)
            return sum(batch.lengths) - MARKERS_A_SENTENCE * len(batch.lengths)

        return measuring.timed(work)

    results: dict[str, list[measuring.Round]] = {name: [] for name in ways}
    for number in range(options.rounds + 1):
        turns = measuring.taking_turns({name: partial(run, number, *way) for name, way in ways.items()}, 1)
        for name, rounds in turns.items():
            results[name] += rounds if number else []
    return results


def print_speeds(results: dict[str, list[measuring.Round]]) -> None:
    plain = results["plain, full softmax"]
    rows = []
    for name, rounds in results.items():
        same = results["plain, " + name.partition(", ")[2]]
        ratios = (measuring.ratio(rounds, other, lambda r: r.per_cpu_s) for other in (same, plain))
        rows.append([name, measuring.spread([r.per_cpu_s for r in rounds]), *ratios])
    measuring.print_table(["step", "tokens/CPU-s", "x plain, same softmax", "x plain, full softmax"], rows)


class Parts:
    """CPU seconds of each part of a step, step by step."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        start = process_time()
        yield
        self.seconds.setdefault(name, []).append(process_time() - start)


def time_parts(
    models: Models, sampled: bool, text: Text, number: int, parts: Parts, options: argparse.Namespace
) -> None:
    """Do one step of ours with its graph cut between char CNN, LSTMs and softmax, so that each can be timed."""
    model = models.sampled if sampled else models.full
    with parts.part("batch making"):
        batch = text.batch(number)
    with parts.part("negatives"):
        negatives = draw(options, number) if sampled else None
    with parts.part("char CNN forward"):
        types = model.bilm.token_encoder(batch.chars)
    leaf = types.detach().requires_grad_()
    with parts.part("LSTMs forward"):
        packing = pack(batch.lengths)
        x = torch.nn.functional.embedding(batch.tokens[packing.order], leaf)
        states = model.bilm.language_model_states(x, packing)
    tops = tuple(state.detach().requires_grad_() for state in states)
    with parts.part("softmax forward"):
        targets, first = batch.targets[packing.order], packing.sentence_count
        read = (tops[0].index_select(0, packing.previous), tops[1][first:])
        wanted = (targets[first:], targets[packing.previous])
        if negatives is None:
            losses = [model.softmax.full_loss(h, t) for h, t in zip(read, wanted, strict=True)]
        else:
            losses = [model.softmax.sampled_loss(h, t, n) for h, t, n in zip(read, wanted, negatives, strict=True)]
        loss = (losses[0].mean() + losses[1].mean()) / 2
    with parts.part("softmax backward"):
        torch.autograd.backward(loss)
    with parts.part("LSTMs backward"):
        torch.autograd.backward(states, [top.grad for top in tops])
    with parts.part("char CNN backward"):
        torch.autograd.backward(types, leaf.grad)
    with parts.part("optimizer"):
        models.optimizers[model].update(_RATE)


def print_parts(models: Models, text: Text, options: argparse.Namespace) -> None:
    found = {True: Parts(), False: Parts()}
    for number in range(options.rounds + 1):
        for sampled, parts in found.items():
            time_parts(models, sampled, text, number, parts if number else Parts(), options)
    medians = {s: {name: 1000 * median(values) for name, values in found[s].seconds.items()} for s in found}
    sums = {s: sum(values.values()) for s, values in medians.items()}
    rows = [
        [
            name,
            *(
                cell
                for s in (False, True)
                for cell in (f"{medians[s][name]:,.0f}", f"{medians[s][name] / sums[s]:.0%}")
            ),
        ]
        for name in medians[True]
    ]
    rows.append(["sum", f"{sums[False]:,.0f}", "", f"{sums[True]:,.0f}", ""])
    measuring.print_table(["part of elmo's step", "full: CPU ms", "share", "sampled: CPU ms", "share"], rows)


def main() -> None:
    options = parse_options()
    measuring.print_machine()
    torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory(prefix="elmo-benchmark-") as name:
        folder = Path(name)
        path = options.text or made_up.make_text(folder / "text.txt", 8 * _EQUAL_TOKENS * options.batch)
        text, models = Text(path, folder, options), Models(options)
        batch = text.batch(0)
        print(
            f"{options.preset}, {len(text.vocabulary):,} types, {options.negatives:,} negatives; first batch:"
            f" {len(batch.lengths)} sentences of {min(batch.lengths) - MARKERS_A_SENTENCE} to"
            f" {max(batch.lengths) - MARKERS_A_SENTENCE} tokens,"
            f" {sum(batch.lengths):,} with markers, {len(batch.chars):,} types\n"
        )
        check(models, text, options)
        print_speeds(time_steps(models, text, options))
        print_parts(models, text, options)


if __name__ == "__main__":
    main()
