"""Packages that only some formats need: imported when asked for, named with the way to install them when missing."""

import importlib
from typing import Any

from elmo_cli.errors import ConfigError


def h5py_module() -> Any:  # noqa: ANN401 (a module that may not be there)
    """Return h5py.

    Raises:
        ConfigError: it is not installed.
    """
    return _extra("h5py", "hdf5", "HDF5 files")


def tensorflow_module() -> Any:  # noqa: ANN401
    """Return TensorFlow.

    Raises:
        ConfigError: it is not installed.
    """
    return _extra("tensorflow", "tf", "TensorFlow checkpoints")


def pyarrow_module(name: str) -> Any:  # noqa: ANN401
    """Return pyarrow, or one of its modules by its full name.

    Raises:
        ConfigError: it is not installed.
    """
    return _extra(name, "parquet", "Parquet and Arrow files")


def usearch_module() -> Any:  # noqa: ANN401
    """Return usearch's module of indexes.

    Raises:
        ConfigError: it is not installed.
    """
    return _extra("usearch.index", "ann", "approximate indexes")


def sklearn_module(name: str) -> Any:  # noqa: ANN401
    """Return one of scikit-learn's modules by its full name.

    Raises:
        ConfigError: it is not installed.
    """
    return _extra(name, "sklearn", "groups of occurrences")


def umap_module() -> Any:  # noqa: ANN401
    """Return umap-learn.

    Raises:
        ConfigError: it is not installed.
    """
    try:
        return importlib.import_module("umap")
    except ImportError as error:
        raise ConfigError("--map umap needs the package umap-learn", fix="pip install umap-learn") from error


def pyplot_figure() -> Any:  # noqa: ANN401
    """Return matplotlib's class of figures, which needs no screen.

    Raises:
        ConfigError: matplotlib is not installed.
    """
    return _extra("matplotlib.figure", "plot", "PNG plots").Figure


def _extra(module: str, extra: str, what: str) -> Any:  # noqa: ANN401
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ConfigError(
            f"{what} need the package {module.split('.')[0]}", fix=f"pip install 'elmo-cli[{extra}]'"
        ) from error
