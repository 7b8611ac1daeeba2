"""A step of training on streams: state is carried from step to step, and the gradient stops where a step begins."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from elmo_cli.bilm.language_model import StreamBatch
from elmo_cli.config import UNROLL_STEPS
from elmo_cli.text.characters import SENTENCE_END, SENTENCE_START, character_ids
from elmo_cli.text.vocabulary import END_ID, START_ID
from elmo_cli.training.precision import reduced
from elmo_cli.training.sentences import StepLoss, mixed_seed, step_negatives
from elmo_cli.training.session import Session
from elmo_cli.training.stream_reader import END, FIRST_TYPE, START, StreamReader, stream_count


class StreamLessons:
    """Windows of 20 tokens of many streams, as bilm-tf trains (truncated back-propagation through time).

    The forward and the backward LM read streams of their own, so in one step they see different text.

    Args:
        session: text and model.
        device: to train on.
    """

    def __init__(self, session: Session, device: torch.device) -> None:
        self.session = session
        self.device = device
        self.streams = stream_count(session.choices.batch_tokens)
        seed = session.settings.seed
        self.readers = [
            StreamReader(session.corpus, session.pieces, self.streams, seed=seed, backward=backward)
            for backward in (False, True)
        ]
        self.states = [layer.zero_state(self.streams) for layer in session.model.bilm.lstm_layers]
        known = session.vocabulary.ids(session.corpus.all_type_texts)
        self._targets = np.concatenate(([START_ID, END_ID], known))

    def epoch(self, epoch: int, first: int) -> Iterator[int]:
        """Yield the numbers of an epoch's steps; what is read is where the streams are, which know no epochs."""
        yield from range(first, self.session.choices.steps_an_epoch)

    def learn(self, lesson: int, step: int, scale: float) -> StepLoss:
        """Read on and add the gradient of what is read."""
        model = self.session.model
        model.bilm.dropout.seed(mixed_seed(self.session.settings.seed, step, 0), self.device)
        batch, tokens = self._read()
        negatives = step_negatives(self.session, step, self.device)
        with reduced(self.session.settings.precision, self.device):
            forward, backward = model.stream_losses(batch.to(self.device), self.states, negatives)
        loss = (forward.mean() + backward.mean()) / 2
        (loss * scale).backward()  # type: ignore[no-untyped-call]
        return StepLoss(loss.detach(), tokens)

    def _read(self) -> tuple[StreamBatch, int]:
        """Return the next window of all streams, and its tokens without marks, of the forward direction."""
        windows = [reader.window(UNROLL_STEPS) for reader in self.readers]
        inputs = np.stack([inputs.ravel() for inputs, _ in windows])
        targets = np.stack([targets.ravel() for _, targets in windows])
        ids, rows = np.unique(np.concatenate(([START, END], inputs.ravel())), return_inverse=True)
        types = ids[FIRST_TYPE:] - FIRST_TYPE  # the marks come first, and are always there
        texts = [SENTENCE_START, SENTENCE_END, *self.session.corpus.type_texts(types.tolist())]
        batch = StreamBatch(
            chars=torch.from_numpy(character_ids(texts, self.session.config.char_cnn.max_characters)),
            tokens=torch.from_numpy(rows[2:].reshape(inputs.shape)),
            targets=torch.from_numpy(self._targets[targets]),
            streams=self.streams,
        )
        return batch, int((inputs[0] >= FIRST_TYPE).sum())

    def state(self) -> dict[str, Tensor]:
        """Return where the streams are, and the LSTMs in them."""
        tensors: dict[str, Tensor] = {}
        for number, state in enumerate(self.states):
            tensors |= {f"{number}.hidden": state.hidden, f"{number}.cell": state.cell}
        for name, reader in zip(("forward", "backward"), self.readers, strict=True):
            tensors |= {f"{name}.{key}": torch.from_numpy(value) for key, value in reader.state().items()}
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Go to where `state` was taken."""
        for number, state in enumerate(self.states):
            state.hidden.copy_(tensors[f"{number}.hidden"])
            state.cell.copy_(tensors[f"{number}.cell"])
        for name, reader in zip(("forward", "backward"), self.readers, strict=True):
            reader.load_state({key: tensors[f"{name}.{key}"].cpu().numpy() for key in reader.state()})
