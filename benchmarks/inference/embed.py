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
import tensorflow as tf

from benchmarks.harness.command_line import flag, parse
from benchmarks.harness.models import write_model
from benchmarks.harness.tables import fill_table, markdown_table
from official import xlnet
from official.xlnet.modeling.networks.xlnet_encoder import XLNetEncoder
from official.xlnet.runtime.cores import num_cores

_MAX_LENGTH = 128
_BATCH = 32
_MOST_WORDS = 80

Embed = Callable[[list[str]], np.ndarray]


def main() -> None:
    flags = parse(
        __doc__,
        shape=flag("small", "recipe in configs/", choices=["base", "small", "tiny"]),
        rounds=flag(7, "turns of each"),
        texts=flag(256, "number of texts"),
        table=flag(None, "document to write the table into"),
    )
    rng = np.random.default_rng(0)
    words = " ".join(topics.values()).split()
    sizes = np.clip(rng.lognormal(3.0, 0.8, flags.texts), 3, _MOST_WORDS).astype(int)
    starts = rng.integers(0, len(words) - _MOST_WORDS, flags.texts)
    texts = [" ".join(words[i : i + n]) for i, n in zip(starts, sizes, strict=True)]
    workloads = {
        "texts of mixed lengths, all at once": (texts, len(texts)),
        f"texts of mixed lengths, {_BATCH} at a time": (texts, _BATCH),
        "short texts, one at a time": ([" ".join(text.split()[:9]) for text in texts[:32]], 1),
    }
    with tempfile.TemporaryDirectory() as folder:
        overrides = ["vocab_size=3000", "mem_len=0"]
        config = xlnet.XLNetConfig.load(f"configs/{flags.shape}.yaml", overrides)
        write_model(f"{folder}/model", _encoder, config)
        embedders = {"embed": _embedder(f"{folder}/model"), "exported": _exported(folder)}
    results: dict[str, Any] = {"shape": flags.shape, "cores": num_cores(), "texts_per_second": {}}
    differences = []
    for name, (given, size) in workloads.items():
        seconds = _take_turns(embedders, given, size, flags.rounds)
        results["texts_per_second"][name] = {
            who: round(len(given) / statistics.median(times), 1) for who, times in seconds.items()
        }
        ours, exported = (embed(given) for embed in embedders.values())
        differences.append(float(np.abs(ours - exported).max()))
    results["difference"] = max(differences)
    if flags.table:
        fill_table(flags.table, "embed", _table(results))
    print(json.dumps(results))


def _take_turns(
    embedders: dict[str, Embed], texts: list[str], size: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each turn of each embedder, after a turn that is not timed."""
    batches = [texts[i : i + size] for i in range(0, len(texts), size)]
    seconds: dict[str, list[float]] = {name: [] for name in embedders}
    for _ in range(rounds + 1):
        for name, embed in embedders.items():
            start = time.perf_counter()
            for batch in batches:
                embed(batch)
            seconds[name].append(time.perf_counter() - start)
    return {name: times[1:] for name, times in seconds.items()}


def _encoder(config: Any) -> XLNetEncoder:
    encoder = XLNetEncoder(config)
    encoder.build()
    return encoder


def _embedder(model_dir: str) -> Embed:
    encoder, tokenizer = xlnet.load_encoder(model_dir), xlnet.load_tokenizer(model_dir)
    return xlnet.TextEmbedder(encoder, tokenizer, max_length=_MAX_LENGTH)


def _exported(folder: str) -> Embed:
    """The signature for raw text of an exported model; its `mean`."""
    model_dir, output = f"{folder}/model", f"{folder}/export"
    exported = xlnet.export(model_dir, output, head="encoder", max_length=_MAX_LENGTH)
    model = tf.saved_model.load(exported["path"])  # Its signatures do not keep it alive.
    return lambda texts: model.signatures["serving_default"](text=tf.constant(texts))[
        "mean"
    ].numpy()


def _table(results: dict[str, Any]) -> str:
    rows = [
        (name, row["embed"], row["exported"], f"{row['embed'] / row['exported']:.2f}")
        for name, row in results["texts_per_second"].items()
    ]
    return (
        f"`configs/{results['shape']}.yaml`, {results['cores']} CPU cores, texts per second; the "
        f"largest difference of the vectors is {results['difference']:.0e}:\n\n"
        + markdown_table([("", "`TextEmbedder`", "exported model", "ratio"), *rows])
    )


if __name__ == "__main__":
    main()
