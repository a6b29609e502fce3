"""The recipes for WikiText-103 and enwik8 at toy scale, on any text, beside a compressor.

    python -m benchmarks.learning.language_models --text=FILE --output=DIR \
        --document=docs/pretraining.md

Brings the documents of a text into the form of WikiText-103 and of enwik8, the last tenth of them
as the test text. Trains the recipe of each for a few minutes, with a smaller network, and evaluates
it with several lengths of memory. Beside them are the bits a character that LZMA needs for the test
text after it has read the training text. An interrupted run goes on. The last line is JSON: for
each recipe and length of memory, what `xlnet evaluate` gives.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
from collections.abc import Callable
from typing import Any

from benchmarks.harness.document import fill_table
from benchmarks.learning.common import make_data, markdown_table, parse_arguments
from official import xlnet

_TEST_SHARE = 0.1
# The network of configs/tiny.yaml with AdamW, and batches of about 2,500 tokens.
_TOY = (
    *("vocab_size=4000", "num_layers=2", "d_model=128", "num_heads=4", "d_inner=512"),
    *("dropout=0", "init_std=0.1", "heldout_fraction=0", "parallel_slices=0"),
    *("num_steps=800", "warmup_steps=80", "learning_rate=2e-3", "checkpoint_steps=200"),
)


def _wikitext(documents: list[str]) -> str:
    """Articles as in `wiki.train.tokens`, each with its first line as its title."""
    parts = [document.partition("\n") for document in documents]
    return "".join(f" = {title} = \n\n {text}\n\n" for title, _, text in parts)


def _enwik(documents: list[str]) -> str:
    """Pages as in a dump of Wikipedia, without what stands between a title and its text."""
    parts = [document.partition("\n") for document in documents]
    return "".join(
        f"  <page>\n    <title>{title}</title>\n    <text>{text}</text>\n  </page>\n"
        for title, _, text in parts
    )


# Recipe: (form of the text, start of a document, settings, lengths of memory).
_RECIPES: dict[str, tuple[Callable[[list[str]], str], str, tuple[str, ...], tuple[int, ...]]] = {
    "wikitext103": (_wikitext, " = (?!=)", ("batch_size=16", "num_lanes=16"), (0, 150, 640)),
    "enwik8": (_enwik, "  <page>", ("batch_size=5", "num_lanes=5"), (0, 512, 3800)),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments = parse_arguments(parser, "text", "set")
    with open(arguments.text, encoding="utf-8") as file:
        documents = [part.strip() for part in re.split(r"\n\s*\n", file.read()) if part.strip()]
    results = {
        name: run(name, documents, os.path.join(arguments.output, name), arguments.set)
        for name in _RECIPES
    }
    if arguments.document:
        fill_table(arguments.document, "language_models", table_of(results))
    print(json.dumps({name: result["evaluated"] for name, result in results.items()}))


def run(name: str, documents: list[str], output: str, overrides: list[str]) -> dict[str, Any]:
    """Prepares, trains and evaluates one recipe.

    Args:
      name: name of the recipe.
      documents: text of each document, its first line the title.
      output: directory for texts, data and model.
      overrides: `key=value` overrides.

    Returns:
      `evaluated` {length of memory: metrics}, and `lzma`, bits per character of the test text.
    """
    form, start, settings, memories = _RECIPES[name]
    os.makedirs(output, exist_ok=True)
    train, test, model = (f"{output}/{n}" for n in ("train.txt", "test.txt", "model"))
    num_test = max(round(_TEST_SHARE * len(documents)), 1)
    texts = form(documents[:-num_test]), form(documents[-num_test:])
    for path, text in zip((train, test), texts, strict=True):
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
    config, test_config = (
        xlnet.XLNetConfig.load(f"configs/{name}.yaml", [*_TOY, *settings, *overrides, *more])
        for more in ((), ("num_lanes=1",))
    )
    size = config.model.vocab_size
    make_data([train], output, {"data": config}, size, document_start=start)
    make_data([test], output, {"test": test_config}, size, document_start=start)
    xlnet.pretrain(config, f"{output}/data", model)
    return {
        "evaluated": {
            length: xlnet.evaluate(model, f"{output}/test", "train", mem_len=length)
            for length in memories
        },
        "lzma": compressed_bits(*texts) / len(texts[1]),
    }


def compressed_bits(seen: str, text: str) -> int:
    """Returns the bits that LZMA needs for a text after another one.

    Example:
      >>> text = "colorless green ideas"
      >>> compressed_bits(text, text) < compressed_bits("", text)
      True
    """
    with_text = len(lzma.compress((seen + text).encode(), preset=9 | lzma.PRESET_EXTREME))
    return 8 * (with_text - len(lzma.compress(seen.encode(), preset=9 | lzma.PRESET_EXTREME)))


def table_of(results: dict[str, dict[str, Any]]) -> str:
    """Formats results of `run` for each recipe as a Markdown table."""
    lines = [["recipe", "memory", "perplexity of words", "bits a character"]]
    for name, result in results.items():
        for length, metrics in result["evaluated"].items():
            figures = f"{metrics['word_perplexity']:.0f}", f"{metrics['bits_per_character']:.3f}"
            lines.append([f"`{name}`", length, *figures])
        lines.append([f"LZMA, the text of `{name}`", "", "", f"{result['lzma']:.3f}"])
    return markdown_table(lines)


if __name__ == "__main__":
    main()
