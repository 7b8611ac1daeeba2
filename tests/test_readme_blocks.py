"""The README's shell blocks, run line by line as they stand, on small texts of these names."""

import lzma
import os
import re
import subprocess
from pathlib import Path

import pytest
from command_line import DATA, elmo_program

pytestmark = pytest.mark.slow

README = Path(__file__).parents[1] / "README.md"
ALL_BLOCKS = re.findall(r"^```sh\n(.*?)^```", README.read_text(), re.S | re.M)
BLOCKS = [block for block in ALL_BLOCKS if block.count("\n") > 1]  # the two lines of an installation are the CI's
CONLL = "Anna B-PER\nSmith I-PER\nsails O\nto O\nOslo B-LOC\n. O\n\nThe O\nferry O\nleft O\nBergen B-LOC\n. O\n\n"
# What a block takes for granted, made before it.
BEFORE = {
    "elmo mix": "elmo embed file.txt --layers all -o layers.npy --force\n"
    "elmo mix learn train.conll --dev dev.conll -o pos.mix.json --seeds 1 --epochs 1",
    "elmo convert": "elmo convert small-en -o published --to allennlp\n"
    "mv published/*options*.json options.json; mv published/*.hdf5 weights.hdf5",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with texts of the names that the README uses."""
    place = tmp_path_factory.mktemp("readme")
    lines = (DATA / "harbour.txt").read_text().splitlines(keepends=True)
    news = ["The kids play outside .\n", "He went to the bank .\n", "The river bank was wet .\n", *lines[:30]] * 2
    (place / "file.txt").write_text("".join(lines[:5]))
    (place / "story.txt").write_text("".join(lines[5:8]))
    (place / "corpus.txt").write_text("".join(lines[:60]))
    for name in ("corpus", "reviews"):
        (place / name).mkdir()
        (place / name / "one.txt").write_text("The children play a game .\n")
    (place / "news.txt.xz").write_bytes(lzma.compress("".join(news).encode()))
    (place / "queries.tsv").write_text("play\tThe kids play .\n")
    (place / "items.tsv").write_text("item\tsentence\n1\tThe kids play .\n")
    for name in ("train", "dev", "test"):
        (place / f"{name}.conll").write_text(CONLL * 4)
    (place / "tests").mkdir()
    (place / "tests" / "data").symlink_to(DATA)
    return place


@pytest.mark.parametrize("block", BLOCKS, ids=[block.split("#")[0].split("\n")[0].strip() for block in BLOCKS])
def test_a_block_of_the_readme_runs(block: str, folder: Path) -> None:
    before = next((lines for command, lines in BEFORE.items() if command in block), "")
    script = f"set -euo pipefail\n{before}\n" + re.sub(r"^pip install .*$", "", block, flags=re.M)
    paths = f"{Path(elmo_program()).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": paths, "ELMO_CACHE": str(folder / "cache")}
    run = subprocess.run(["bash", "-c", script], cwd=folder, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
