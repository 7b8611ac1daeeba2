"""Examples of the manual pages: for each page, what is done and the line that does it."""

from typing import Final

EXAMPLES: Final = {
    "elmo": [
        ("Vectors of a text, from the bundled model", "elmo embed file.txt > vectors.npy"),
        ("A model of one's own, then vectors from it", "elmo train corpus.txt -o mine && elmo embed file.txt -m mine"),
        ("What a command would run with, and why", "elmo --config elmo.toml --show-settings embed --layers top"),
    ],
    "elmo-train": [
        ("With no options", "elmo train corpus.txt"),
        (
            "Text that is already tokenized, for an hour and a half",
            "elmo train wiki.tok --input tokens --max-time 90m -o wiki",
        ),
        ("Go on after Ctrl-C", "elmo train --resume models/wiki"),
        ("The same run again", "elmo --config models/wiki/run/settings.toml train wiki.tok -o wiki2"),
    ],
    "elmo-finetune": [
        ("One epoch, as models/wiki-reviews/", "elmo finetune reviews.txt -m wiki"),
        (
            "With the words of the domain, and an eye on what is forgotten",
            "elmo finetune reviews.txt --extend-vocab 5000 --general news.txt",
        ),
        ("Published weights, converted", "elmo finetune reviews.txt -m original -o original-reviews"),
    ],
    "elmo-embed": [
        (
            "One row a token, and a table that says what each row is",
            "elmo embed file.txt -o vectors.npy --tokens-out rows.tsv",
        ),
        ("In a pipeline", "zcat news.gz | elmo embed -f jsonl | head -1"),
        ("All layers, one vector a line", "elmo embed file.txt --layers all --pool mean -o lines.npy"),
        ("A file for each text of a folder, in two goes", "elmo embed corpus/ --out-dir vectors/ --skip-existing"),
    ],
    "elmo-convert": [
        ("Weights of AllenNLP", "elmo convert options.json weights.hdf5 -o original"),
        ("Back again, with a check", "elmo convert original -o there/ --to allennlp --check"),
    ],
    "elmo-perplexity": [
        ("Two texts and both together, by the bundled model", "elmo perplexity dev.txt test.txt"),
        ("One figure", "elmo perplexity test.txt -m wiki --json | jq .both"),
    ],
    "elmo-surprisal": [
        ("A row a token", "elmo surprisal story.txt > story.tsv"),
        (
            "A row a word of a table of stimuli, whose columns are kept",
            "elmo surprisal items.tsv --text-col sentence --words -o surprisal.tsv",
        ),
    ],
    "elmo-runs": [
        ("All trainings below models/", "elmo runs"),
        ("The ones that were interrupted", "elmo runs --json | jq -r 'select(.state == \"interrupted\").name'"),
    ],
    "elmo-info": [
        ("The bundled model", "elmo info small-en"),
        ("One figure", "elmo info small-en --json | jq .parameters"),
    ],
    "elmo-mix": [
        ("The weights for a task, learned on labelled text", "elmo mix learn ner.conll -o ner.mix.json"),
        ("Vectors for that task", "elmo embed file.txt --mix ner.mix.json -o ner.npy"),
    ],
    "elmo-mix-learn": [
        ("Names, in CoNLL columns", "elmo mix learn train.conll --dev dev.conll -o ner.mix.json"),
        (
            "Sentences with a label before them, once, quickly",
            "elmo mix learn reviews.tsv --seeds 1 -o reviews.mix.json",
        ),
    ],
    "elmo-mix-show": [
        ("Weights and scores", "elmo mix show ner.mix.json"),
        ("Several tasks side by side, as Figure 2 of the paper", "elmo mix show *.mix.json --plot mixes.svg"),
    ],
    "elmo-mix-apply": [
        ("Layers that are stored already", "elmo mix apply layers.npy --mix ner.mix.json -o ner.npy"),
        ("Weights of one's own", "elmo mix apply layers.npy --weights 0.2,0.5,0.3 -o mine.npy"),
    ],
    "elmo-mix-predict": [
        ("Labels for plain text", "elmo mix predict file.txt --mix ner.mix.json > file.conll"),
    ],
    "elmo-mix-score": [
        ("On text that was not learned on", "elmo mix score test.conll --mix ner.mix.json"),
    ],
    "elmo-neighbors": [
        ("Where else the word is used like this", 'elmo neighbors play in "They saw a play" --corpus news.txt'),
        ("In the demonstration sentences, of any word", 'elmo neighbors bank "He sat on the bank" --any'),
        ("Words spelled alike", "elmo neighbors playing --corpus news.txt"),
    ],
    "elmo-senses": [
        ("The senses of a word in a text", "elmo senses bank --corpus news.txt"),
        ("A drawing, by year", "elmo senses bank --index news.idx --plot bank.html --color-by year"),
    ],
    "elmo-index": [
        ("For many queries", "elmo index news.txt -o news.idx"),
        ("A few words of a large text", "elmo index news/ --only bank,play -o words.idx"),
        ("More text, added to it", "elmo index more.txt --append -o words.idx"),
    ],
    "elmo-doctor": [
        ("Before a report of an error", "elmo doctor"),
        ("In a script", "elmo doctor -m wiki --json | jq .problems"),
    ],
}
