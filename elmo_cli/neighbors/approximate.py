"""An approximate index beside an exact one, for more tokens than can be compared one by one: a graph, by usearch."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from elmo_cli.neighbors.index import Index, Occurrence, alone
from elmo_cli.neighbors.index_info import damaged, write_info
from elmo_cli.neighbors.part import Floats
from elmo_cli.neighbors.search import BLOCK_ROWS, Scored, Space, all_tokens, search
from elmo_cli.reporting import Reporter
from elmo_cli.storage.extras import usearch_module
from elmo_cli.storage.files import whole_file

_SAMPLE: Final = 100  # queries of which the recall is measured
_DEPTH: Final = 10  # neighbours of each that should be found
_LEAST_FETCHED: Final = 64  # of the graph, then compared exactly


def add_approximate(folder: Path, *, seed: int, reporter: Reporter) -> dict[int, float]:
    """Make an approximate index of each layer and measure it.

    All vectors go through the memory of this process; a query only maps the file.

    Args:
        folder: of an index; it takes the files.
        seed: of the sample of queries.
        reporter: told about progress.

    Returns:
        By layer, the share of the 10 nearest tokens that it finds, over a sample of the index's own tokens.

    Raises:
        ConfigError: usearch is not installed.
        DataError: there is no index, or it is damaged.
        OutputError: another process is adding to it, or the files cannot be written.
    """
    usearch = usearch_module()
    with alone(folder):  # else a part that is added meanwhile would be lost from index.json
        index = Index(folder)
        names = {layer: f"approximate-{layer}.usearch" for layer in index.info.layers if layer}  # 0 goes by types
        for layer, name in names.items():
            graph = _graph(usearch, index, layer, reporter)
            with whole_file(folder / name) as file:
                file.write(memoryview(graph.save()))
        index.info = replace(index.info, approximate=names)
        write_info(folder, index.info)
    return {layer: _recall(index, layer, seed) for layer in names}


def _graph(usearch: Any, index: Index, layer: int, reporter: Reporter) -> Any:  # noqa: ANN401 (usearch has no types)
    graph = _empty_graph(usearch, index)
    done = 0
    with reporter.progress(f"graph of layer {layer}", index.info.rows, "tokens") as progress:
        for part in index.parts:
            for start in range(0, part.info.rows, BLOCK_ROWS):
                block = part.vectors(layer, slice(start, start + BLOCK_ROWS))
                graph.add(np.arange(done, done + len(block), dtype=np.uint64), block)
                done += len(block)
                progress.update(done)
    return graph


def _empty_graph(usearch: Any, index: Index) -> Any:  # noqa: ANN401
    return usearch.Index(ndim=index.info.vector_dim, metric="cos", dtype="f16")


def search_approximate(index: Index, queries: Floats, layer: int, *, count: int) -> list[list[Scored]]:
    """Return occurrences near to each query, most of the nearest among them, with their exact cosines, best first.

    Raises:
        DataError: the file is damaged or of another state of the index.
        ConfigError: usearch is not installed.
    """
    usearch = usearch_module()
    path = index.folder / index.info.approximate[layer]
    graph = _open(usearch, path, index)
    found = []
    for query in queries:
        keys = np.sort(graph.search(query, max(_LEAST_FETCHED, count)).keys.astype(np.int64))
        found.append(_compare(index, keys, query, layer, count))
    return found


def _open(usearch: Any, path: Path, index: Index) -> Any:  # noqa: ANN401
    try:
        graph = _empty_graph(usearch, index)
        graph.view(str(path))
    except (RuntimeError, OSError, ValueError) as error:
        raise damaged(index.folder, f"{path.name} cannot be read ({error})") from error
    if len(graph) != index.info.rows:
        raise damaged(index.folder, f"{path.name} has {len(graph):,} vectors, the index {index.info.rows:,}")
    return graph


def _compare(
    index: Index, keys: "np.ndarray[Any, np.dtype[np.int64]]", query: Floats, layer: int, count: int
) -> list[Scored]:
    scored: list[Scored] = []
    plain = Space(index, [], layer)
    [unit] = plain.unit(query[None])
    first = 0
    for number, part in enumerate(index.parts):
        rows = keys[(keys >= first) & (keys < first + part.info.rows)] - first
        first += part.info.rows
        scores = plain.unit(part.vectors(layer, rows)) @ unit
        scored += [Scored(float(score), Occurrence(number, int(row))) for score, row in zip(scores, rows, strict=True)]
    scored.sort(key=lambda hit: -hit.score)
    return scored[:count]


def _recall(index: Index, layer: int, seed: int) -> float:
    """Return which share of the nearest tokens is found for a sample of tokens."""
    random = np.random.default_rng(seed)
    rows = np.sort(random.choice(index.info.rows, min(_SAMPLE, index.info.rows), replace=False))
    queries = np.concatenate(_vectors_of(index, rows, layer))
    exact = search(index, all_tokens(index), queries, layer, count=_DEPTH, space=Space(index, [], layer))
    near = search_approximate(index, queries, layer, count=_DEPTH)
    # By score: of tokens that are equally near, any will do.
    found = [
        sum(hit.score >= best[-1].score - 1e-6 for hit in other) / len(best)
        for best, other in zip(exact, near, strict=True)
    ]
    return float(np.mean(found))


def _vectors_of(index: Index, rows: "np.ndarray[Any, np.dtype[np.int64]]", layer: int) -> Sequence[Floats]:
    blocks, first = [], 0
    for part in index.parts:
        blocks.append(part.vectors(layer, rows[(rows >= first) & (rows < first + part.info.rows)] - first))
        first += part.info.rows
    return blocks
