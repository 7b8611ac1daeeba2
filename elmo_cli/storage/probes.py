"""What `elmo doctor` tries out in processes of its own: a library that is broken may bring down all of Python.

``python -m elmo_cli.storage.probes NAME ARGUMENT...`` writes what was found, as JSON, to standard output.
"""

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from elmo_cli.errors import ElmoError

Facts = dict[str, Any]


def probe_torch(*devices: str) -> Facts:
    """Return what torch can do on this machine, and for each named device what forbids its use."""
    import torch

    from elmo_cli.bilm.device import choose_device
    from elmo_cli.bilm.products import has_bfloat16, has_onednn

    gpus = [torch.cuda.get_device_properties(k) for k in range(torch.cuda.device_count())]
    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "onednn": has_onednn(),
        "bfloat16": has_bfloat16(),
        "int8": "onednn" in torch.backends.quantized.supported_engines,
        "built_for_cuda": torch.version.cuda,
        "cuda": [{"name": gpu.name, "bytes": gpu.total_memory} for gpu in gpus],
        "mps": torch.backends.mps.is_available(),
        "refused": _refusals(devices, choose_device),
    }


def probe_tokenizer(*languages: str) -> Facts:
    """Return for each language what keeps spaCy from cutting text."""
    from elmo_cli.text.tokenizer import SpacyTokenizer

    return {"refused": _refusals(languages, lambda language: SpacyTokenizer(language).load())}


def probe_models(*folders: str) -> Facts:
    """Return for each model's folder what it is, or what is wrong with it."""
    from elmo_cli.storage.fingerprints import check_weights
    from elmo_cli.storage.model_dir import WEIGHTS_FILE, read_vocabulary
    from elmo_cli.storage.model_info import model_info

    found: Facts = {}
    for folder in folders:
        try:
            info = model_info(Path(folder))
            if info.config.vocabulary_size is not None:
                read_vocabulary(Path(folder), info.config)
            check_weights(Path(folder) / WEIGHTS_FILE)
            found[folder] = {"dim": info.config.bilm.vector_dim, "language": info.config.language, "bytes": info.size}
        except ElmoError as error:
            found[folder] = _told(error)
    return found


def probe_module(*names: str) -> Facts:
    """Import modules by their names."""
    import importlib

    for name in names:
        importlib.import_module(name)
    return {}


def _refusals(names: tuple[str, ...], use: Callable[[str], object]) -> Facts:
    found: Facts = {}
    for name in names:
        try:
            use(name)
        except ElmoError as error:
            found[name] = _told(error)
    return found


def _told(error: ElmoError) -> Facts:
    return {"problem": error.message, "where": str(error.where) if error.where else None, "fix": error.fix}


PROBES: Final[Mapping[str, Callable[..., Facts]]] = {
    "torch": probe_torch,
    "tokenizer": probe_tokenizer,
    "models": probe_models,
    "module": probe_module,
}


def main() -> None:
    """Run the probe that is named on the command line."""
    name, *arguments = sys.argv[1:]
    sys.stdout.write(json.dumps(PROBES[name](*arguments)))


if __name__ == "__main__":
    main()
