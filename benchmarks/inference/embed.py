"""Benchmark of `xlnet.embed` against the exported encoder, on the same texts.

    python -m benchmarks.inference.embed --shape=small --table=docs/embeddings.md

Creates an encoder with random weights, exports it, and lets `TextEmbedder` and the SavedModel embed
the same texts in turns, so that other load affects both alike. Writes the table between the markers
in --table. The last line is JSON: texts per second of both, by workload, and the largest difference
of their vectors.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pydoc_data.topics import topics
from typing import Any

import numpy as np
from absl import app, flags, logging

from benchmarks.harness.document import fill_table
from official.xlnet.cli import set_environment_defaults
from official.xlnet.runtime.cores import num_cores

FLAGS = flags.FLAGS
flags.DEFINE_enum("shape", "small", ["base", "small", "tiny"], "Name of a recipe in configs/.")
flags.DEFINE_integer("rounds", 7, "Number of turns of each.")
flags.DEFINE_integer("texts", 256, "Number of texts.")
flags.DEFINE_string("table", None, "Document to write the table into.")

_VOCAB_SIZE = 3000
_MAX_LENGTH = 128
_BATCH = 32
_MOST_WORDS = 80

Embed = Callable[[list[str]], np.ndarray]


def main(argv: list[str]) -> None:
    del argv
    set_environment_defaults()
    rng = np.random.default_rng(0)
    words = " ".join(topics.values()).split()
    sizes = np.clip(rng.lognormal(3.0, 0.8, FLAGS.texts), 3, _MOST_WORDS).astype(int)
    starts = rng.integers(0, len(words) - _MOST_WORDS, FLAGS.texts)
    texts = [" ".join(words[i : i + n]) for i, n in zip(starts, sizes, strict=True)]
    workloads = {
        "texts of mixed lengths, all at once": (texts, len(texts)),
        f"texts of mixed lengths, {_BATCH} at a time": (texts, _BATCH),
        "short texts, one at a time": ([" ".join(text.split()[:9]) for text in texts[:32]], 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        _make_model(f"{folder}/model")
        ours, exported = _embedder(f"{folder}/model"), _exported(folder)
    results: dict[str, Any] = {"shape": FLAGS.shape, "cores": num_cores(), "texts_per_second": {}}
    difference = 0.0
    for name, (given, size) in workloads.items():
        seconds = _take_turns({"embed": ours, "exported": exported}, given, size)
        results["texts_per_second"][name] = {
            who: round(len(given) / statistics.median(times), 1) for who, times in seconds.items()
        }
        difference = max(difference, float(np.abs(ours(given) - exported(given)).max()))
        logging.info("%s: %s", name, results["texts_per_second"][name])
    results["difference"] = difference
    if FLAGS.table:
        fill_table(FLAGS.table, "embed", _table(results))
    print(json.dumps(results))


def _take_turns(embedders: dict[str, Embed], texts: list[str], size: int) -> dict[str, list[float]]:
    """Seconds of each turn of each embedder, after a turn that is not timed."""
    batches = [texts[i : i + size] for i in range(0, len(texts), size)]
    seconds: dict[str, list[float]] = {name: [] for name in embedders}
    for round_number in range(FLAGS.rounds + 1):
        for name, embed in embedders.items():
            start = time.perf_counter()
            for batch in batches:
                embed(batch)
            if round_number:
                seconds[name].append(time.perf_counter() - start)
    return seconds


def _make_model(model_dir: str) -> None:
    """Writes the model directory of an encoder with random weights."""
    from data_prep.corpus.vocabulary import train_vocabulary
    from official import xlnet
    from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder

    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/text.txt", "w", encoding="utf-8") as file:
            file.write("\n".join(topics.values()))
        train_vocabulary([f"{folder}/text.txt"], folder, _VOCAB_SIZE)
        overrides = [f"vocab_size={_VOCAB_SIZE}", "mem_len=0"]
        config = xlnet.XLNetConfig.load(f"configs/{FLAGS.shape}.yaml", overrides)
        encoder = XLNetEncoder(config)
        encoder.build()
        xlnet.save_pretrained(encoder, model_dir, f"{folder}/spiece.model")


def _embedder(model_dir: str) -> Embed:
    from official import xlnet

    encoder, tokenizer = xlnet.load_encoder(model_dir), xlnet.load_tokenizer(model_dir)
    return xlnet.TextEmbedder(encoder, tokenizer, max_length=_MAX_LENGTH)


def _exported(folder: str) -> Embed:
    """The signature for raw text of an exported model; its `mean`."""
    import tensorflow as tf

    from official.xlnet.serving.export import export

    output = f"{folder}/export"
    path = export(f"{folder}/model", output, head="encoder", max_length=_MAX_LENGTH)["path"]
    model = tf.saved_model.load(path)
    serve = model.signatures["serving_default"]

    def embed(texts: list[str]) -> np.ndarray:
        return serve(text=tf.constant(texts))["mean"].numpy()

    embed.model = model  # type: ignore[attr-defined]  # Signatures do not keep it alive.
    return embed


def _table(results: dict[str, Any]) -> str:
    lines = [
        f"`configs/{FLAGS.shape}.yaml`, {results['cores']} CPU cores, texts per second; the "
        f"largest difference of the vectors is {results['difference']:.0e}:",
        "",
        "| | `TextEmbedder` | exported model | ratio |",
        "|---|---|---|---|",
    ]
    for name, row in results["texts_per_second"].items():
        ratio = row["embed"] / row["exported"]
        lines.append(f"| {name} | {row['embed']} | {row['exported']} | {ratio:.2f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    app.run(main)
