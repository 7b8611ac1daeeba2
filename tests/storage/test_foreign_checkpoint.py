"""Checkpoints of TensorFlow, for which a stand-in is enough to tell what is damaged."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from elmo_cli.errors import ModelError
from elmo_cli.storage.allennlp_weights import CheckpointWeights


class DataLossError(Exception):
    """One of the errors of TensorFlow, which are no `OSError`."""


class Reader:
    """Reads a checkpoint of one variable, whose numbers are lost."""

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        return {"lm/char_embed": [261, 4], "global_step": []}

    def get_tensor(self, name: str) -> None:
        raise DataLossError(f"{name} is lost")


def load(prefix: str) -> Reader:
    if prefix.endswith("damaged"):
        raise DataLossError("not an sstable")
    return Reader()


@pytest.fixture(autouse=True)
def _tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    module = SimpleNamespace(train=SimpleNamespace(load_checkpoint=load), errors=SimpleNamespace(OpError=DataLossError))
    monkeypatch.setitem(sys.modules, "tensorflow", module)


def test_variables_have_the_names_of_a_dump_and_counters_are_left_out() -> None:
    assert CheckpointWeights(Path("model.ckpt-9")).shapes() == {"char_embed": (261, 4)}


def test_damage_is_told_with_the_place_when_it_is_opened() -> None:
    with pytest.raises(ModelError) as caught:
        CheckpointWeights(Path("damaged"))
    assert str(caught.value) == (
        "damaged: is a damaged TensorFlow checkpoint: not an sstable\n  fix: copy all of its files again"
    )


def test_damage_is_told_with_the_place_when_it_is_read() -> None:
    with pytest.raises(ModelError) as caught:
        CheckpointWeights(Path("model.ckpt-9")).read("char_embed")
    assert caught.value.message == "is a damaged TensorFlow checkpoint: lm/char_embed is lost"
