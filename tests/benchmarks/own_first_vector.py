"""From nothing to the first vector with this package, in stages: ``python own_first_vector.py STARTED MODEL LINE``.

The command `elmo embed` lets a second process load the tokenizer meanwhile; here all stages follow each other.
"""

import json
import sys
from pathlib import Path

from measuring import Stages


def main() -> None:
    started, model, line = sys.argv[1:]
    stages = Stages(float(started))
    import elmo_cli.commands.app  # noqa: F401 (what the command itself imports first)

    stages.done("command line")
    import torch

    stages.done("torch")
    from elmo_cli.embedding.embedder import Embedder
    from elmo_cli.embedding.selection import LayerChoice
    from elmo_cli.storage.model_dir import read_config
    from elmo_cli.storage.weights import load_bilm
    from elmo_cli.text.reader import TextOptions

    stages.done("package")
    config = read_config(Path(model))
    embedder = Embedder(load_bilm(Path(model), config), torch.device("cpu"))
    stages.done("model")
    tokenizer = TextOptions("lines", config.language, "strict").make_tokenizer()
    spans = tokenizer.spans([line])[0] if tokenizer is not None else []
    stages.done("tokenizer")
    vectors = next(embedder.embed([[line[start:end] for start, end in spans]], LayerChoice(None)))
    stages.done("work")
    print(json.dumps({"stages": stages.seconds, "tokens": len(vectors)}))


if __name__ == "__main__":
    main()
