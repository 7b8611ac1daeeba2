"""The child that embeds with another tool, run by a Python that has it: ``python peer_side.py allennlp FOLDER TEXT``.

Imports nothing of this package. FOLDER holds ``options.json`` and ``weights.hdf5``; BERT needs none.
"""

import argparse
import importlib
import zlib
from pathlib import Path

import stand_ins
from measuring import Task, first_sentences, read_sentences, serve

_BERT_TYPES = 30_000


def allennlp_tasks(folder: Path, sentences: list[list[str]]) -> dict[str, Task]:
    """Return what AllenNLP's biLM can do, loaded."""
    stand_ins.install()
    import numpy as np
    import torch

    elmo = importlib.import_module("allennlp.modules.elmo")
    without_markers = importlib.import_module("allennlp.nn.util").remove_sentence_boundaries
    bilm = elmo._ElmoBiLm(str(folder / "options.json"), str(folder / "weights.hdf5")).eval()

    @torch.no_grad()
    def layers_of(batch: list[list[str]]) -> list["np.ndarray"]:
        """Return [tokens, layers, dim] of each sentence."""
        bilm._elmo_lstm.reset_states()  # else vectors would depend on the batch before, and not be ours
        found = bilm(elmo.batch_to_ids(batch))
        layers = [without_markers(layer, found["mask"])[0] for layer in found["activations"]]
        stacked = torch.stack(layers, dim=2)
        return [stacked[row, : len(sentence)].numpy() for row, sentence in enumerate(batch)]

    def batches(size: int) -> int:
        parts = (layers_of(sentences[start : start + size]) for start in range(0, len(sentences), size))
        vectors = [vector for part in parts for vector in part]
        return sum(map(len, vectors))

    def one_by_one(tokens: int) -> int:
        return sum(len(layers_of([sentence])[0]) for sentence in first_sentences(sentences, tokens))

    def save(path: str, tokens: int) -> int:
        vectors = layers_of(first_sentences(sentences, tokens))
        np.save(path, np.concatenate(vectors))
        return sum(map(len, vectors))

    return {"batches": batches, "one_by_one": one_by_one, "save": save}


def bert_tasks(sentences: list[list[str]]) -> dict[str, Task]:
    """Return what a BERT-base encoder of random weights can do: its top layer, each word read as one word piece."""
    import torch

    transformers = importlib.import_module("transformers")
    bert = transformers.BertModel(transformers.BertConfig(), add_pooling_layer=False).eval()

    @torch.no_grad()
    def batches(size: int) -> int:
        for start in range(0, len(sentences), size):
            batch = [[1, *(2 + zlib.crc32(w.encode()) % _BERT_TYPES for w in s), 1] for s in sentences[start:][:size]]
            longest = min(max(map(len, batch)), 512)  # of more positions BERT knows nothing
            ids = torch.tensor([(row + [0] * longest)[:longest] for row in batch])
            vectors = bert(input_ids=ids, attention_mask=(ids > 0).long()).last_hidden_state
            _ = [vectors[row, 1 : len(tokens) - 1].numpy() for row, tokens in enumerate(batch)]
        return sum(map(len, sentences))

    return {"batches": batches}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tool", choices=("allennlp", "bert"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path)
    parser.add_argument("--tokens", type=int, required=True)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()

    import torch

    torch.set_num_threads(options.threads)
    sentences = read_sentences(options.text, options.tokens)
    serve(allennlp_tasks(options.folder, sentences) if options.tool == "allennlp" else bert_tasks(sentences))


if __name__ == "__main__":
    main()
