"""Continued pre-training on a domain, with and without new pieces in the vocabulary.

    python -m benchmarks.learning.vocabulary_extension --general=FILE --domain=FILE --output=DIR \
        --document=docs/vocabulary_extension.md

Pre-trains configs/tiny.yaml on general text, extends its vocabulary by pieces of the domain, and
trains both models further on the domain. Every tenth document of both texts is held out. Losses are
nats per character of the same passages: the log-likelihood of a passage is the sum over its tokens,
left to right, whatever tokens it is divided into. An interrupted benchmark goes on when it is run
again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.learning.common import make_data, markdown_table, mean_and_range, parse_arguments
from official import xlnet

CONFIG = "configs/tiny.yaml"
VOCAB_SIZE = 4000
_HELD_OUT = 10  # One document in so many.
_PASSAGES = 600  # Number of held-out passages of each text.


@dataclasses.dataclass(frozen=True)
class Row:
    """Losses of a model, in nats per character.

    Attributes:
      name: what the model is.
      steps: steps of continued pre-training.
      domain: loss on the domain for each seed.
      general: loss on general text for each seed.
    """

    name: str
    steps: int
    domain: list[float]
    general: list[float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--general", required=True, help="general text, blank between documents")
    parser.add_argument("--domain", required=True, help="text of the domain, likewise")
    parser.add_argument("--pieces", type=int, default=2000, help="number of pieces to add")
    parser.add_argument("--steps", type=int, default=600, help="steps on the domain")
    parser.add_argument("--rate", type=float, default=2e-3, help="learning rate on the domain")
    arguments = parse_arguments(parser, "seeds", "set")
    general, extended = _make_models(arguments)
    texts = {
        name: passages(_path(arguments, f"{name}_heldout.txt"), (general, extended))
        for name in ("domain", "general")
    }
    tokens = {model: _num_tokens(model, texts["domain"]) for model in (general, extended)}
    same_text = round(arguments.steps * tokens[general] / tokens[extended])
    rows = [
        _row("general model", texts, [general]),
        _row("with new pieces, untrained", texts, [extended]),
        _continued("trained further, old pieces", arguments, texts, general, arguments.steps),
        _continued("trained further, old pieces, equal text", arguments, texts, general, same_text),
        _continued("trained further, new pieces", arguments, texts, extended, arguments.steps),
    ]
    num_words = sum(len(text.split()) for text in texts["domain"])
    per_word = {model: number / num_words for model, number in tokens.items()}
    table = _table(rows, per_word[general], per_word[extended])
    if arguments.document:
        fill_table(arguments.document, "vocabulary_extension", table)
    print(table)
    print(json.dumps({row.name: float(np.mean(row.domain)) for row in rows}))


def _path(arguments: argparse.Namespace, name: str) -> str:
    return os.path.join(arguments.output, name)


def _make_models(arguments: argparse.Namespace) -> tuple[str, str]:
    """Directories of the general model and of the same with new pieces."""
    from data_prep.pipelines.prepare import prepare

    for name in ("general", "domain"):
        split(getattr(arguments, name), _path(arguments, name))
    general, extended = _path(arguments, "general"), _path(arguments, "extended")
    config = xlnet.XLNetConfig.load(CONFIG, arguments.set)
    make_data([f"{general}.txt"], arguments.output, {"general_data": config}, VOCAB_SIZE)
    xlnet.pretrain(config, _path(arguments, "general_data"), general)
    domain = [_path(arguments, "domain.txt")]
    if not os.path.exists(extended):
        xlnet.extend_vocabulary(general, domain, extended, arguments.pieces)
    for model in (general, extended):
        prepare(domain, model, xlnet.load_config(model), f"{model}_domain_data")
    return general, extended


def split(path: str, prefix: str) -> None:
    """Writes every tenth document of a text to `PREFIX_heldout.txt`, the others to `PREFIX.txt`."""
    with open(path, encoding="utf-8") as file:
        documents = file.read().strip().split("\n\n")
    parts: dict[str, list[str]] = {".txt": [], "_heldout.txt": []}
    for number, document in enumerate(documents):
        parts["_heldout.txt" if number % _HELD_OUT == _HELD_OUT - 1 else ".txt"].append(document)
    for suffix, chosen in parts.items():
        with open(prefix + suffix, "w", encoding="utf-8") as file:
            file.write("\n\n".join(chosen) + "\n")


def passages(path: str, models: tuple[str, ...]) -> list[str]:
    """Passages of consecutive words of a text, spread over it, each of which fits into a window.

    Passages with an unknown character in any of the vocabularies are left out: which one it is
    costs nothing.
    """
    from official.xlnet.tokenization.special_tokens import UNK_ID

    tokenizers = [xlnet.load_tokenizer(model) for model in models]
    longest = xlnet.load_config(models[0]).data.seq_len
    found: list[str] = []
    words: list[str] = []
    with open(path, encoding="utf-8") as file:
        for word in file.read().split():
            tokens = [tokenizer.encode(" ".join([*words, word])) for tokenizer in tokenizers]
            if max(map(len, tokens)) > longest:
                text = " ".join(words)
                if all(UNK_ID not in tokenizer.encode(text) for tokenizer in tokenizers):
                    found.append(text)
                words = []
            words.append(word)
    return found[:: max(1, len(found) // _PASSAGES)][:_PASSAGES]


def _num_tokens(model: str, texts: list[str]) -> int:
    return sum(len(ids) for ids in xlnet.load_tokenizer(model).encode_batch(texts))


def _continued(
    name: str,
    arguments: argparse.Namespace,
    texts: dict[str, list[str]],
    model: str,
    steps: int,
) -> Row:
    """Trains a model on the domain with several seeds, and measures the results."""
    runs = []
    for seed in range(arguments.seeds):
        overrides = [f"training.num_steps={steps}", f"training.warmup_steps={steps // 20}"]
        overrides += [f"training.learning_rate={arguments.rate}", f"training.seed={seed}"]
        runs.append(f"{model}_{steps}_{seed}")
        xlnet.pretrain(model, f"{model}_domain_data", runs[-1], overrides, init_from=model)
    return _row(name, texts, runs, steps)


def _row(name: str, texts: dict[str, list[str]], models: list[str], steps: int = 0) -> Row:
    losses = {text: [loss_per_character(model, texts[text]) for model in models] for text in texts}
    return Row(name, steps, losses["domain"], losses["general"])


def loss_per_character(model: str, texts: list[str]) -> float:
    """Negative log-likelihood of texts, left to right, in nats per character."""
    return -sum(result.total for result in xlnet.score(model, texts)) / sum(map(len, texts))


def _table(rows: list[Row], before: float, after: float) -> str:
    titles = ["", "steps on the domain"]
    titles += ["domain, nats per character", "general text, nats per character"]
    cells = [
        [row.name, row.steps, mean_and_range(row.domain), mean_and_range(row.general)]
        for row in rows
    ]
    words = f"Tokens per word of the domain: {before:.2f} before, {after:.2f} with new pieces."
    return f"{markdown_table([titles, *cells])}\n\n{words}"


if __name__ == "__main__":
    main()
