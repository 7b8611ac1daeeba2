"""What all tests share: folders of their own, unchanged settings of torch, and a tiny biLM.

Nothing of `elmo_cli` may be imported outside the fixtures: pytest reads this file before jaxtyping's hook stands, and
what is imported earlier goes unchecked.
"""

import os
import signal
import sys
from collections.abc import Iterator
from copy import deepcopy
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from tiny_options import TINY_OPTIONS
from twin import Options, random_weights

if TYPE_CHECKING:
    from elmo_cli.bilm.bilm import BiLM
    from elmo_cli.config import BiLMConfig

# As `settings.calm_threads` does for the command; torch reads it when it is loaded.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# A shell lets what it starts in the background ignore Ctrl-C, and so would the programs that tests send it to.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# `nohup` does the same with the end of a terminal; the tests themselves go on ignoring it.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda number, frame: None)

# A slow example is no failure: other programs may want the processor.
settings.register_profile("elmo", deadline=None)
settings.register_profile("long", deadline=None, max_examples=10_000)  # pytest tests/fuzz --hypothesis-profile=long
settings.load_profile("elmo")

_XDG_FOLDERS = ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")


@pytest.fixture(scope="session", autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep the user's caches, data and ELMO_* variables out of the tests, and the tests out of them."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("ELMO_")]:
            patch.delenv(name)
        for name in _XDG_FOLDERS:
            patch.setenv(name, str(home / name.lower()))
        patch.setenv("ELMO_CACHE", str(home / "elmo-cache"))
        patch.setenv("HOME", str(home))
        patch.setenv("ELMO_WORKERS", "0")  # spaCy is loaded here already; the tests of the workers ask for some
        yield


@pytest.fixture(autouse=True)
def _same_threads() -> Iterator[None]:
    """Give torch its number of threads back after a test that changes it; tests without torch do not load it."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 0
    yield
    if torch and torch.get_num_threads() != before:
        torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_options() -> Options:
    """Options of the tiny biLM as bilm-tf writes them."""
    return deepcopy(TINY_OPTIONS)


@pytest.fixture(scope="session")
def tiny_config(tiny_options: Options) -> "BiLMConfig":
    """Shape with several filters, a highway, two layers, a skip connection and both clips."""
    from weights import config_from_options

    return config_from_options(tiny_options)


@pytest.fixture(scope="session")
def tiny_bilm(tiny_options: Options) -> "BiLM":
    """A biLM whose neighbours matter: LSTM weights twice as large as usual, all biases non-zero, no dropout."""
    from weights import build_bilm

    return build_bilm(tiny_options, random_weights(tiny_options, seed=1, scale=2.0))
