"""Lets AllenNLP 2.10.1 be imported beside today's packages: what it only mentions is stood in for.

Its ELMo needs torch, numpy and h5py. On the way there it imports a dozen packages that ELMo never calls, some of them
gone or changed since. A finder on `sys.meta_path` answers for those: packages that are not there become modules in
which every name is an empty class, and packages of AllenNLP whose ``__init__`` would import everything it has become
bare, so that one of their modules can be imported alone.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

_MENTIONED = frozenset({"_jsonnet", "fairscale", "torchvision", "wandb", "tensorboardX", "boto3", "botocore"})
_BARE = frozenset({"allennlp.modules"})
# Names that newer versions no longer have, and that AllenNLP imports at the top of its files.
_REMOVED = {"huggingface_hub": ("HfFolder", "Repository"), "transformers": ("AdamW",)}


class _Loader(importlib.abc.Loader):
    """Makes a module without running any code of it."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return ModuleType(spec.name) if spec.name in _BARE else _Everything(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: a stand-in has no code."""


class _Everything(ModuleType):
    """A module that has an empty class for any name asked of it."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {"__module__": self.__name__})


class _Bare(importlib.abc.MetaPathFinder):
    """Finds packages whose ``__init__`` shall not run; asked before all other finders."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in _BARE:
            return None
        real = importlib.machinery.PathFinder.find_spec(fullname, path)
        if real is None:
            return None
        bare = importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)
        bare.submodule_search_locations = real.submodule_search_locations
        return bare


class _Mentioned(importlib.abc.MetaPathFinder):
    """Finds what no other finder has found; asked last."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in _MENTIONED:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Loader(), is_package=True)


def install() -> None:
    """Stand in from now on for what AllenNLP mentions."""
    sys.meta_path.insert(0, _Bare())
    sys.meta_path.append(_Mentioned())
    for package, names in _REMOVED.items():
        module = importlib.import_module(package)
        for name in names:
            if not hasattr(module, name):
                setattr(module, name, type(name, (), {}))
