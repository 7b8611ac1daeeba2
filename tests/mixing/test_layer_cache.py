"""Layers on the disk: computed once, mapped, and made anew when they are not what they should be."""

import os
import tempfile
from pathlib import Path

import numpy as np
import pytest
import torch
from made_up_encoder import DIM, MadeUpEncoder

from elmo_cli.errors import OutputError
from elmo_cli.mixing.layer_cache import LayerCache
from elmo_cli.reporting import SilentReporter
from elmo_cli.storage import pruning

SENTENCES = [["at", "be"], [], ["cu"]]


def cache(folder: Path | None, dtype: str = "float32") -> LayerCache:
    return LayerCache(folder, dtype, SilentReporter())  # type: ignore[arg-type]


def test_layers_are_computed_once(tmp_path: Path) -> None:
    encoder = MadeUpEncoder()
    first = cache(tmp_path).get(encoder, SENTENCES, "a text")
    again = cache(tmp_path).get(encoder, SENTENCES, "a text of another name")
    assert encoder.asked == SENTENCES
    assert isinstance(again.rows, np.memmap)
    np.testing.assert_array_equal(first.rows, again.rows)
    expected = torch.cat(list(MadeUpEncoder().layers(SENTENCES)), dim=1)
    torch.testing.assert_close(again.take([0, 1, 2], [0, 1, 2]), expected, rtol=0, atol=0)
    torch.testing.assert_close(again.take([2, 0], [1]), expected[[1]][:, [2, 0, 1]], rtol=0, atol=0)


def test_another_text_encoder_or_type_has_layers_of_its_own(tmp_path: Path) -> None:
    cache(tmp_path).get(MadeUpEncoder(), SENTENCES, "a")
    cache(tmp_path).get(MadeUpEncoder(), [["at", "be", "cu"]], "a")
    cache(tmp_path).get(MadeUpEncoder(fingerprint="e" * 64), SENTENCES, "a")
    half = cache(tmp_path, "float16").get(MadeUpEncoder(), SENTENCES, "a")
    assert len(list(tmp_path.glob("*.npy"))) == 4
    assert half.rows.dtype == np.float16
    assert half.take([0], [0]).dtype == torch.float32


def test_a_damaged_file_is_made_anew(tmp_path: Path) -> None:
    cache(tmp_path).get(MadeUpEncoder(), SENTENCES, "a")
    [path] = tmp_path.glob("*.npy")
    whole = path.read_bytes()
    for content in (b"", whole[:90], whole[:-4]):
        path.write_bytes(content)
        found = cache(tmp_path).get(MadeUpEncoder(), SENTENCES, "a")
        assert found.rows.shape == (3, 3, DIM)
        assert path.read_bytes() == whole


def test_layers_are_had_where_they_cannot_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    told: list[str] = []
    reporter = SilentReporter()
    monkeypatch.setattr(SilentReporter, "warn", lambda _, text: told.append(text))
    blocked = LayerCache(tmp_path / "file" / "layers", "float32", reporter)
    found = blocked.get(MadeUpEncoder(), SENTENCES, "a.conll")
    np.testing.assert_array_equal(found.rows, cache(None).get(MadeUpEncoder(), SENTENCES, "a").rows)
    [warning] = told
    assert warning.startswith("the layers of a.conll are not kept for the next time: cannot write ")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    with pytest.raises(OutputError) as caught:
        blocked.get(MadeUpEncoder(), SENTENCES, "a.conll")
    assert all(name in str(caught.value.fix) for name in ("TMPDIR", "--no-cache", "ELMO_CACHE"))


def test_nothing_stays_where_nothing_is_to_be_kept(tmp_path: Path) -> None:
    kept = cache(tmp_path).get(MadeUpEncoder(), SENTENCES, "a")
    found = cache(None).get(MadeUpEncoder(), SENTENCES, "a")
    np.testing.assert_array_equal(found.rows, kept.rows)
    assert cache(None).get(MadeUpEncoder(), [[]], "a").rows.shape == (0, 3, DIM)


def test_layers_that_were_not_used_for_longest_make_room_for_new_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pruning, "LARGEST_BYTES", 1)
    names = []
    for sentences in ([["at"]], [["be"]]):
        cache(tmp_path).get(MadeUpEncoder(), sentences, "a")
        names += [path.name for path in tmp_path.glob("*.npy") if path.name not in names]
        os.utime(tmp_path / names[-1], (0, 0))
    found = cache(tmp_path).get(MadeUpEncoder(), [["be"]], "a")  # used again
    cache(tmp_path).get(MadeUpEncoder(), [["cu"]], "a")
    assert not (tmp_path / names[0]).exists()
    assert (tmp_path / names[1]).exists()
    assert len(list(tmp_path.glob("*.npy"))) == 2
    assert found.rows.shape == (1, 3, DIM)
