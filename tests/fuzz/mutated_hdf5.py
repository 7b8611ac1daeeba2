"""Convert the weights of a folder, changed in a few places again and again, in a process that may crash.

``python mutated_hdf5.py FOLDER COUNT`` ends with 0 if each time there was a model, or a refusal.
"""

import faulthandler
import random
import shutil
import sys
import tempfile
from pathlib import Path

from elmo_cli.errors import ElmoError
from elmo_cli.storage.convert import import_model

MEMORY_BYTES = 4 << 30
ONE_S = 20  # longest time of one conversion


def main() -> None:
    """Run."""
    if sys.platform != "win32":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    folder, count = Path(sys.argv[1]), int(sys.argv[2])
    sound = (folder / "weights.hdf5").read_bytes()
    for seed in range(count):
        (folder / "weights.hdf5").write_bytes(damaged(sound, random.Random(seed)))
        faulthandler.dump_traceback_later(ONE_S, exit=True)
        sys.stdout.write(f"seed {seed}\n")
        sys.stdout.flush()
        with tempfile.TemporaryDirectory() as scratch:
            try:
                import_model([folder], Path(scratch, "new"), language="en", replace=False)
            except ElmoError:
                shutil.rmtree(Path(scratch, "new"), ignore_errors=True)
        faulthandler.cancel_dump_traceback_later()


def damaged(sound: bytes, chance: random.Random) -> bytes:
    """Return bytes changed in up to five places; most of them in the first part, where the headers are."""
    data = bytearray(sound)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(4096 if chance.random() < 0.6 else len(data))
        kind = chance.randrange(5)
        if kind == 0:
            data[at] = chance.randrange(256)
        elif kind == 1:
            data[at : at + 8] = chance.choice((b"\xff" * 8, bytes(8), (1 << 40).to_bytes(8, "little")))
        elif kind == 2:
            data[at] ^= 1 << chance.randrange(8)
        elif kind == 3:
            data[at : at + 4] = b"\xff\xff\xff\x7f"
        else:
            other = chance.randrange(4096)
            data[at : at + 64] = data[other : other + 64]
    return bytes(data)


if __name__ == "__main__":
    main()
