"""From nothing to the first vector with AllenNLP, in stages: ``python peer_first_vector.py STARTED FOLDER LINE``."""

import importlib
import json
import sys
from pathlib import Path

import stand_ins
from measuring import Stages


def main() -> None:
    started, folder, line = sys.argv[1:]
    stages = Stages(float(started))
    import torch

    stages.done("torch")
    stand_ins.install()
    elmo = importlib.import_module("allennlp.modules.elmo")
    stages.done("package")
    bilm = elmo._ElmoBiLm(str(Path(folder) / "options.json"), str(Path(folder) / "weights.hdf5")).eval()
    stages.done("model")
    tokens = line.split()
    with torch.no_grad():
        found = bilm(elmo.batch_to_ids([tokens]))
        vectors = torch.stack(found["activations"]).mean(dim=0)[0, 1:-1].numpy()
    stages.done("work")
    print(json.dumps({"stages": stages.seconds, "tokens": len(vectors)}))


if __name__ == "__main__":
    main()
