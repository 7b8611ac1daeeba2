"""The child that embeds with this package's Embedder: ``python own_side.py MODEL TEXT``, told what to do by stdin."""

import argparse
from pathlib import Path

import numpy as np
import torch
from measuring import first_sentences, read_sentences, serve

from elmo_cli.config import PRECISIONS
from elmo_cli.embedding.embedder import Embedder
from elmo_cli.embedding.selection import LayerChoice
from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.weights import load_bilm


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", choices=PRECISIONS, default="float32")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    config = read_config(options.model)
    bilm = load_bilm(options.model, config)
    sentences = read_sentences(options.text, options.tokens)
    choice = LayerChoice(tuple(range(config.bilm.layer_count)))

    def fresh() -> Embedder:
        """Return an embedder that has seen no word of the text, its weights laid out."""
        embedder = Embedder(bilm, torch.device("cpu"), options.precision)
        list(embedder.embed([["\N{SNOWMAN}"]] * 32, choice))
        return embedder

    embedders = [fresh()]

    def forget() -> int:
        embedders[0] = fresh()
        return 0

    def batches() -> int:
        vectors = [part.numpy() for part in embedders[0].embed(sentences, choice)]
        return sum(map(len, vectors))

    def one_by_one(tokens: int) -> int:
        some = first_sentences(sentences, tokens)
        return sum(len(part.numpy()) for sentence in some for part in embedders[0].embed([sentence], choice))

    def save(path: str, tokens: int) -> int:
        vectors = [part.numpy() for part in embedders[0].embed(first_sentences(sentences, tokens), choice)]
        np.save(path, np.concatenate(vectors))
        return sum(map(len, vectors))

    serve({"forget": forget, "batches": batches, "one_by_one": one_by_one, "save": save})


if __name__ == "__main__":
    main()
