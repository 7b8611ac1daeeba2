"""Static word vectors of the same training text, for the layers of a model to be compared with.

    pip install gensim
    python tests/benchmarks/static_vectors.py train-0?.txt.xz -o vectors.txt -m small-en

Skip-gram with negative sampling (Mikolov et al. 2013), by gensim, on the text as `elmo train` tokenizes it: window 5,
5 negatives, frequent words thinned out at 1e-4, words that occur 5 times or more. They are as wide as the model's
vectors, twice its projection. One worker, so that a seed gives the same vectors again.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from gensim.models import Word2Vec
from prepared_texts import prepared, sentences_of

from elmo_cli.storage.model_dir import read_config
from elmo_cli.storage.registry import find_model

_LONGEST_SENTENCE = 10_000  # gensim drops the rest of a longer line


def write_sentences(names: list[str], language: str, file: Path, max_tokens: int | None) -> int:
    """Write prepared texts as tokens parted by spaces, a sentence a line, and return how many tokens these are."""
    done = 0
    with file.open("w", encoding="utf-8", errors="replace") as out:
        for sentence in sentences_of(prepared(names, language)):
            if max_tokens is not None and done >= max_tokens:
                break
            for start in range(0, len(sentence), _LONGEST_SENTENCE):
                out.write(" ".join(sentence[start : start + _LONGEST_SENTENCE]) + "\n")
            done += len(sentence)
    return done


def main() -> None:
    """Learn the vectors and write them in word2vec's text format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", nargs="+", help="a sentence a line")
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("-m", "--model", default="small-en", help="whose width and language are taken")
    parser.add_argument("--size", type=int, help="another width")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--min-count", type=int, default=5)
    parser.add_argument("--max-tokens", type=int, help="of the corpus, from its start")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    config = read_config(find_model(arguments.model))
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder) / "sentences.txt"
        tokens = write_sentences(arguments.corpus, config.language, text, arguments.max_tokens)
        started = time.process_time()
        model = Word2Vec(
            corpus_file=str(text),
            vector_size=arguments.size or config.bilm.vector_dim,
            window=5,
            negative=5,
            sg=1,
            sample=1e-4,
            min_count=arguments.min_count,
            epochs=arguments.epochs,
            seed=arguments.seed,
            workers=1,
        )
    model.wv.save_word2vec_format(arguments.output)
    seconds = time.process_time() - started
    print(f"{len(model.wv):,} vectors from {tokens:,} tokens in {seconds:.0f} CPU s", file=sys.stderr)


if __name__ == "__main__":
    main()
