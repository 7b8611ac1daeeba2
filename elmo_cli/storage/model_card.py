"""The card of a model, written by the tool from what the model's config records."""

import shlex
from typing import Any

from elmo_cli.errors import harmless
from elmo_cli.reporting import counted
from elmo_cli.storage.model_dir import ModelConfig


def model_card(name: str, config: ModelConfig) -> str:
    """Return the text of a model's README.md."""
    return "\n".join(
        [
            f"# {harmless(name)}",
            "",
            *_summary(config),
            *_text(config),
            *_quality(config),
            *_adaptation(config),
            *_use(name),
            "",
        ]
    )


def _summary(config: ModelConfig) -> list[str]:
    cnn, lstm = config.bilm.char_cnn, config.bilm.lstm
    filters = ", ".join(f"{count} of width {width}" for width, count in cnn.filters)
    layers, highways = counted(lstm.layers, "layer"), counted(cnn.highway_layers, "highway layer")
    projected = f" projected to {lstm.projection_dim}" if lstm.has_projection else ""
    softmax = "with" if config.vocabulary_size else "without"
    rows = {
        "kind": f"ELMo biLM (Peters et al. 2018), char CNN and biLSTM, {softmax} softmax",
        "language": config.language,
        "tokenizer": " ".join(str(config.tokenizer.get(key, "")) for key in ("name", "version")).strip(),
        "layers": f"{config.bilm.layer_count} (0 = char CNN), {config.bilm.vector_dim} numbers a token each",
        "LSTM": f"{lstm.cell_dim} cells{projected}, {layers} a direction",
        "char CNN": f"{filters}; {highways}; reads {cnn.max_characters - 2} bytes of a word",
        "vocabulary": f"{config.vocabulary_size:,} word types" if config.vocabulary_size else "none",
        "parent": _parent(config),
        "made": " ".join(str(config.provenance.get(key, "")) for key in ("tool", "created")).strip(),
    }
    return ["| | |", "|---|---|", *(f"| {key} | {value} |" for key, value in rows.items() if value), ""]


def _parent(config: ModelConfig) -> str | None:
    parent = config.provenance.get("parent")
    return f"{parent['name']}, weights of SHA-256 `{parent['sha256']}`" if parent else None


def _text(config: ModelConfig) -> list[str]:
    training = config.provenance.get("training")
    if not training:
        return []
    corpora = [
        f"| {_cell(file['name'])} | {file['size']:,} | `{file['sha256']}` |"
        for file in config.provenance.get("corpora", [])
    ]
    return [
        "## Training text",
        "",
        f"{training['text_tokens']:,} tokens; {training['tokens_read']:,} were read in "
        f"{counted(training['steps'], 'step')} and "
        f"{training['seconds'] / 60:,.1f} minutes.",
        "",
        "| file | bytes | SHA-256 |",
        "|---|---|---|",
        *corpora,
        "",
    ]


def _quality(config: ModelConfig) -> list[str]:
    found: dict[str, Any] = config.provenance.get("heldout", {})
    if not found:
        return []
    what = "of the training text itself" if found.get("is_training_text") else f"of {found['tokens']:,} held-out tokens"
    return [
        f"## Perplexity {what}",
        "",
        "Exp of the mean negative log-likelihood in nats a predicted token, full softmax; sentence marks count as",
        "targets, words outside the vocabulary as `<UNK>`.",
        "",
        "| forward | backward | both (geometric mean) | unigram model | outside the vocabulary |",
        "|---|---|---|---|---|",
        f"| {found['forward']:,.2f} | {found['backward']:,.2f} | {found['both']:,.2f} | {found['unigram']:,.2f} "
        f"| {found['oov_rate']:.2%} |",
        "",
    ]


def _adaptation(config: ModelConfig) -> list[str]:
    """Return the perplexities before and after fine-tuning, a row a text, as in Table 7 of Peters et al. (2018)."""
    made: dict[str, Any] = config.provenance.get("finetuning", {})
    if not made:
        return []
    extended = f"; {counted(made['words_added'], 'word')} added to its vocabulary" if made["words_added"] else ""
    pulled = f"; all were drawn back to it with a strength of {made['l2sp']:g} (L2-SP)" if made["l2sp"] else ""
    kept = "" if made["best_step"] else " No step was better than the base, so that these are its weights."
    found: dict[str, dict[str, Any]] = made["perplexity"]
    columns = {"base": "before", "start": "before, with this model's softmax", "after": "after"}
    shown = [name for name in columns if any(name in figures for figures in found.values())]
    names = {"domain": "this domain, held out", "general": "general text"}
    rows = [[names[name], *(_figure(figures.get(column)) for column in shown)] for name, figures in found.items()]
    return [
        "## Fine-tuning",
        "",
        "Perplexity of both directions before and after, and the share of tokens outside the vocabulary. Frozen parts",
        f"of the base: {made['freeze']}{pulled}{extended}.{kept}",
        "",
        f"| text | {' | '.join(columns[name] for name in shown)} |",
        "|" + "---|" * (len(shown) + 1),
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def _figure(found: dict[str, Any] | None) -> str:
    return f"{found['both']:,.2f} ({found['oov_rate']:.2%})" if found else ""


def _use(name: str) -> list[str]:
    return ["## Use", "", "```sh", f"elmo embed text.txt -m {shlex.quote(name)} > vectors.npy", "```"]


def _cell(name: str) -> str:
    """Return the name of a file as a cell of a table, which neither a line end nor a bar in it ends."""
    return harmless(name).replace("|", r"\|")
