"""How long an index takes to build, how large it is, and how long a query takes.

    python tests/benchmarks/neighbors_speed.py --rows 1000000
    python tests/benchmarks/neighbors_speed.py --text news.txt.xz --tokens 200000 -m small-en

The first makes an index of random vectors, sentences of 25 tokens of 50,000 word types by Zipf's law, and times queries
in it: opening (all sums but those of the vectors are looked at), the occurrences of a word, any token, and the last
through an approximate index too with --approximate. The second builds an index of real text and tells tokens a second.
Queries are the least of three; the pages of the files are in memory by then.
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import measuring
import numpy as np

import elmo_cli
from elmo_cli.errors import Place
from elmo_cli.neighbors.approximate import add_approximate, search_approximate
from elmo_cli.neighbors.corpus_text import CorpusText, Reading
from elmo_cli.neighbors.index import Index
from elmo_cli.neighbors.index_info import IndexInfo, ModelMark, write_info
from elmo_cli.neighbors.part_writer import PartWriter, write_part
from elmo_cli.neighbors.search import Space, all_tokens, occurrences_of, search
from elmo_cli.neighbors.selecting import TokenSelection
from elmo_cli.reporting import SilentProgress, SilentReporter
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.registry import find_model
from elmo_cli.text.sentence import Sentence

SENTENCE, TYPES, DIM = 25, 50_000, 256


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, help="tokens of the random index")
    parser.add_argument("--approximate", action="store_true", help="also an approximate index of it")
    parser.add_argument("--text", help="real text to index instead")
    parser.add_argument("--tokens", type=int, default=200_000, help="of the real text")
    parser.add_argument("-m", "--model", default="small-en")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if not arguments.rows and not arguments.text:
        parser.error("name --rows or --text")
    with tempfile.TemporaryDirectory() as folder:
        if arguments.text:
            build(Path(folder), arguments.text, arguments.tokens, arguments.model, arguments.threads)
        if arguments.rows:
            query(random_index(Path(folder) / "random.idx", arguments.rows), approximate=arguments.approximate)
    print(f"peak memory {measuring.max_rss_mb(resource.getrusage(resource.RUSAGE_SELF)):,.0f} MB")


def build(folder: Path, text: str, tokens: int, model: str, threads: int) -> None:
    """Index the first tokens of a text and print how fast."""
    import torch

    torch.set_num_threads(threads)
    model_folder = find_model(model)
    config = read_config(model_folder)
    embedder = elmo_cli.load(model, device="cpu")._embedder
    corpus = CorpusText([text], Reading(language=config.language))
    total, cut = 0, []
    for number, sentence in corpus.read(None):
        if total >= tokens:
            break
        cut.append((number, sentence))
        total += len(sentence.tokens)
    (folder / "part-1").mkdir()
    started, cpu = time.perf_counter(), time.process_time()
    part = write_part(
        folder / "part-1",
        cut,
        corpus.sources,
        embedder,
        (config.bilm.layer_count - 1,),
        vector_dim=config.bilm.vector_dim,
        selection=TokenSelection(),
        progress=SilentProgress(),
    )
    wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    size = sum(mark.size for mark in part.files.values())
    print(f"{part.rows:,} tokens in {wall:.1f} s, {cpu:.1f} CPU s: {part.rows / cpu:,.0f} tokens a CPU second")
    print(f"{size / 1e6:,.1f} MB, {size / part.rows:,.0f} bytes a token (one layer of {config.bilm.vector_dim})")


def random_index(folder: Path, rows: int) -> Index:
    """Make an index of random vectors."""
    random = np.random.default_rng(1)
    (folder / "part-1").mkdir(parents=True)
    frequencies = 1 / np.arange(1, TYPES + 1)
    words = random.choice(TYPES, rows, p=frequencies / frequencies.sum())
    progress_from = time.perf_counter()
    with PartWriter(folder / "part-1", (2,), DIM) as writer:
        for number, start in enumerate(range(0, rows, SENTENCE), start=1):
            tokens = [f"w{word}" for word in words[start : start + SENTENCE]]
            vectors = random.standard_normal((len(tokens), 2, DIM), np.float32)
            sentence = Sentence(tokens, Place("random.txt", number), line=" ".join(tokens))
            writer.add(0, sentence, range(len(tokens)), vectors, (0, 2))
    info = IndexInfo(ModelMark("random", "0" * 64), (2,), DIM, Reading("tokens"))
    write_info(folder, replace(info, parts=(writer.info(["random.txt"], rows),)))
    print(f"{rows:,} random tokens written in {time.perf_counter() - progress_from:.1f} s")
    return Index(folder)


def query(index: Index, *, approximate: bool) -> None:
    """Print how long queries take."""
    vectors = np.random.default_rng(2).standard_normal((1, DIM), np.float32)
    size = sum(path.stat().st_size for path in index.folder.rglob("*") if path.is_file())
    print(f"{index.info.rows:,} tokens, {size / 1e6:,.0f} MB, {size / index.info.rows:,.0f} bytes a token")
    print(f"opening {least(lambda: Index(index.folder).parts)}")
    space = Space(index, [], 2)
    for word in ("w0", "w100", "w10000"):
        count = sum(group.count(index) for group in occurrences_of(index, [(word,)], ignore_case=False))

        def near(word: str = word) -> object:
            return search(index, occurrences_of(index, [(word,)], ignore_case=False), vectors, 2, count=10, space=space)

        print(f"a word of {count:,} occurrences {least(near)}")
    print(f"any token {least(lambda: search(index, all_tokens(index), vectors, 2, count=10, space=space))}")
    if approximate:
        started = time.perf_counter()
        recall = add_approximate(index.folder, seed=1, reporter=SilentReporter())
        print(f"approximate index in {time.perf_counter() - started:.0f} s, recall {recall[2]:.3f}")
        index = Index(index.folder)
        print(f"any token, approximately {least(lambda: search_approximate(index, vectors, 2, count=10))}")


def least(work: Callable[[], object]) -> str:
    """Return the least time of three, by the clock and of the processor, in milliseconds."""
    clock, processor = [], []
    for _ in range(3):
        started, cpu = time.perf_counter(), time.process_time()
        work()
        clock.append(time.perf_counter() - started)
        processor.append(time.process_time() - cpu)
    return f"{1000 * min(clock):,.1f} ms ({1000 * min(processor):,.1f} CPU ms)"


if __name__ == "__main__":
    main()
