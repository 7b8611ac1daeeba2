"""Which packages are there, and whether their versions will do."""

from importlib.metadata import PackageNotFoundError, version

import pytest

from elmo_cli.storage.packages import Package, is_within, packages


@pytest.mark.parametrize(
    ("found", "bounds", "expected"),
    [
        ("2.13.0+cpu", "<2.14,>=2.6", True),
        ("2.14", "<2.14,>=2.6", False),
        ("2.14.0", "<2.14,>=2.6", False),
        ("2.5.1", "<2.14,>=2.6", False),
        ("2.6", ">=2.6.0", True),
        ("2.10", ">=2.9", True),
        ("2.0.0rc1", ">=2", True),
        ("3", "<=3.0", True),
        ("3.0.1", ">3", True),
        ("1.0", "", True),
        ("1.0", "~=2.0", True),
    ],
)
def test_versions_are_compared_number_by_number(found: str, bounds: str, expected: bool) -> None:
    assert is_within(found, bounds) is expected


def test_what_elmo_needs_is_there_and_within_bounds() -> None:
    needed = {package.name: package for package in packages() if package.extra is None}
    assert {"torch", "numpy", "safetensors", "spacy", "typer", "rich"} <= needed.keys()
    assert needed["torch"].version == version("torch")
    assert [p.name for p in needed.values() if p.is_missing or p.is_out_of_bounds] == []


def test_the_extras_of_users_are_listed_and_those_of_developers_are_not() -> None:
    extras = {package.extra for package in packages()} - {None}
    assert {"hdf5", "parquet", "zh"} <= extras
    assert extras.isdisjoint({"test", "dev"})


def test_a_package_that_is_missing_is_told_with_the_command_that_installs_it() -> None:
    needed = Package("torch", ">=2.6,<2.14", None, None)
    assert (needed.is_missing, needed.is_out_of_bounds) == (True, False)
    assert needed.install == "pip install 'torch>=2.6,<2.14'"
    wanted = Package("h5py", ">=3.10", "hdf5", None)
    assert (wanted.is_missing, wanted.install) == (False, "pip install 'elmo-cli[hdf5]'")


def test_an_elmo_that_is_not_installed_has_no_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("elmo_cli.storage.packages.requires", gone)
    assert packages() == []
