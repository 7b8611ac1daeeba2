"""What the environment says: the one place that reads ``os.environ``."""

import os
import tempfile
from pathlib import Path

DEFAULT_MODEL = "small-en"


def model_folders() -> list[Path]:
    """Return the folders in which a model's name is looked up, in order.

    ``./models``, each folder of ``$ELMO_MODELS``, the user's data folder, the models that ship with the package.
    """
    return [Path("models"), *named_model_folders(), data_folder() / "models", *_shipped_folders()]


def named_model_folders() -> list[Path]:
    """Return the folders of ``$ELMO_MODELS``."""
    return [Path(part) for part in os.environ.get("ELMO_MODELS", "").split(os.pathsep) if part]


def data_folder() -> Path:
    """Return the user's data folder for elmo, ``$XDG_DATA_HOME/elmo`` or ``~/.local/share/elmo``."""
    return _xdg_folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """Return the folder for what can be made again: ``$ELMO_CACHE``, else ``$XDG_CACHE_HOME/elmo``."""
    named = os.environ.get("ELMO_CACHE")
    return Path(named) if named else _xdg_folder("XDG_CACHE_HOME", ".cache")


def available_cpus() -> int:
    """Return the number of processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def launched() -> tuple[int, int, int] | None:
    """Return what ``torchrun`` says of this process: its rank, the number of processes, its rank on this machine.

    None where it was not launched so.
    """
    try:
        rank, size, local_rank = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK"))
    except (KeyError, ValueError):
        return None
    return rank, size, local_rank


def thread_variables() -> dict[str, str]:
    """Return what the environment says of the threads of arithmetic, by variable."""
    names = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
    return {name: os.environ[name] for name in names if name in os.environ}


def own_variables() -> dict[str, str]:
    """Return the variables of the environment that are meant for elmo, misspelled ones included."""
    return {name: value for name, value in sorted(os.environ.items()) if name.startswith("ELMO_")}


def calm_threads() -> None:
    """Let waiting threads of torch's arithmetic sleep. To be called before torch is loaded.

    By default they spin, and where another program wants the processor too, each of the thousand small steps of an
    LSTM then waits for a thread that is not running: measured, twice to fifty times as long.
    """
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")


def _xdg_folder(variable: str, fallback: str) -> Path:
    """Return the elmo folder under an XDG base folder; a relative value is ignored, as the XDG rules ask.

    A user without a home, as containers have them, gets a folder of its own among the temporary files, and none that
    is called ``~``.
    """
    named = os.environ.get(variable, "")
    home = os.path.expanduser("~")
    if os.path.isabs(named):
        return Path(named) / "elmo"
    if os.path.isabs(home):
        return Path(home) / fallback / "elmo"
    return Path(tempfile.gettempdir()) / f"elmo-{os.getuid()}" / fallback / "elmo"


def _shipped_folders() -> list[Path]:
    """Return the models inside an installed package and, run from a checkout, the ones beside the package."""
    package = Path(__file__).resolve().parent
    folders = [package / "bundled"]
    if (package.parent / "pyproject.toml").is_file():
        folders.append(package.parent / "models")
    return folders
