"""Where the arithmetic runs."""

import torch

from elmo_cli.errors import ConfigError

_KINDS = ("cpu", "cuda", "mps", "xpu")


def choose_device(name: str) -> torch.device:
    """Return the device of a name: ``auto`` (a GPU if there is one), ``cpu``, ``cuda``, ``cuda:1``, ``mps`` ...

    Raises:
        ConfigError: the name is no device, or this machine has none of that kind.
    """
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    if name.partition(":")[0] not in _KINDS:
        raise ConfigError(f"device {name!r} is not known", fix=f"choose {_choices()}")
    try:
        device = torch.device(name)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"device {name!r} cannot be used: {reason}", fix=f"choose {_choices()}") from error
    return device


def _choices() -> str:
    """Return the devices that this machine has, for a person."""
    gpus = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    *names, last = ["auto", "cpu", *(name for name, is_there in gpus.items() if is_there)]
    return f"{', '.join(names)} or {last}"
