"""A fuzzer that is guided by coverage: atheris (libFuzzer) on the targets of `fuzz_targets`. No part of the tests.

    pip install atheris
    python tests/fuzz/coverage_guided.py text-jsonl --seconds 60 [--corpus FOLDER]

An input that fails stands, as ``crash-...``, in the folder it is started from; one that is made smaller with
``-minimize_crash=1`` belongs into ``seeds/``, under a name that begins with the target's. The corpus, the inputs that
reach something new, is kept in FOLDER from one time to the next.
"""

import argparse
import json
import sys
import tempfile
import zipfile
from io import BytesIO
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["elmo_cli"]):
    from fuzz_targets import TARGETS, tokenizer

OPTIONS = {
    "lstm": {"dim": 16, "projection_dim": 8, "n_layers": 2, "cell_clip": 3, "proj_clip": 3},
    "char_cnn": {
        "embedding": {"dim": 4},
        "filters": [[1, 4], [2, 6]],
        "activation": "relu",
        "n_highway": 1,
        "max_characters_per_token": 50,
    },
}


def starts(target: str) -> list[bytes]:
    """Return a few sound inputs to start from."""
    packed = BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("options.json", json.dumps(OPTIONS))
        archive.writestr("weights.hdf5", b"\x89HDF\r\n\x1a\n")
    by_kind = {
        "jsonl": [b'{"text": "The boat left.", "id": 7}\n{"tokens": ["a", "b c"]}\n'],
        "conll": [b"-DOCSTART- -X-\n\nThe\tDT\tO\nboat\tNN\tO\n\n"],
        "conllu": [b"# sent_id = 1\n# text = im Boot\n1-2\tim" + b"\t_" * 8 + b"\n1\tin" + b"\t_" * 8 + b"\n"],
        "stimuli": [b"id\tsentence\n1\tThe boat left .\n"],
        "settings": [b'model = "small"\n[embed]\nlayers = "top"\nlist = [1, 2.5, "x"]\n'],
        "options": [json.dumps(OPTIONS).encode()],
        "config": [b'{"format": 1, "bilm": {"char_cnn": {"filters": [[1, 8]]}, "lstm": {"cell_dim": 8}}}'],
        "metrics": [b'{"step": 3, "tokens": 40, "seconds": 0.5, "heldout": {"both": 20.5}}\n'],
        "zip": [packed.getvalue()],
    }
    return [b"The boat left.\n\nMr. O'Neil's (http://a.b) :-)\n", *by_kind.get(target.rpartition("-")[2], [])]


def main() -> None:
    """Run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        corpus = asked.corpus or Path(scratch, "corpus")
        corpus.mkdir(exist_ok=True)
        for number, data in enumerate(starts(asked.target)):
            (corpus / f"start-{number}").write_bytes(data)
        folder = Path(scratch, "folder")
        folder.mkdir()

        if asked.target.startswith(("text", "stimuli")):
            tokenizer().load()  # seconds, which are no hang of the first input

        def feed(data: bytes) -> None:
            TARGETS[asked.target](data, folder)

        limits = (f"-max_total_time={asked.seconds}", "-rss_limit_mb=3000", "-timeout=30", "-max_len=4096")
        atheris.Setup([sys.argv[0], *limits, str(corpus)], feed)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
