"""From nothing to the first vector with a BERT-base of random weights, in stages; with no line, the model is made.

    python bert_first_vector.py STARTED FOLDER [LINE]

Each word is read as one word piece, without a tokenizer, as in `peer_side`.
"""

import importlib
import json
import sys
import zlib

from measuring import Stages

_TYPES = 30_000


def main() -> None:
    started, folder, *lines = sys.argv[1:]
    stages = Stages(float(started))
    import torch

    stages.done("torch")
    transformers = importlib.import_module("transformers")
    model_class = transformers.BertModel
    stages.done("package")
    if not lines:
        model_class(transformers.BertConfig(), add_pooling_layer=False).save_pretrained(folder)
        return
    bert = model_class.from_pretrained(folder, add_pooling_layer=False).eval()
    stages.done("model")
    ids = [[1, *(2 + zlib.crc32(word.encode()) % _TYPES for word in lines[0].split()), 1]]
    with torch.no_grad():
        vectors = bert(input_ids=torch.tensor(ids)).last_hidden_state[0, 1:-1].numpy()
    stages.done("work")
    print(json.dumps({"stages": stages.seconds, "tokens": len(vectors)}))


if __name__ == "__main__":
    main()
