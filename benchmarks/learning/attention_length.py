"""Evaluation with recurrent memory vs. a sliding window (section 4 of Transformer-XL).

    python -m benchmarks.learning.attention_length --text=FILE --output=DIR \
        --document=docs/experiments.md

Trains configs/transformer_xl.yaml and evaluates the longest held-out document. The attention length
A is the minimum context of a prediction:

* with memory: consecutive segments of 128 tokens, with a memory of A tokens;
* with a sliding window of stride 1: for each token, a forward pass over the A tokens before it, of
  which only the last position predicts.
"""

from __future__ import annotations

import json
import os
import time

import numpy as np

from benchmarks.harness.command_line import flag
from benchmarks.harness.tables import fill_table, markdown_table, recipe_digests
from benchmarks.learning.common import (
    SET,
    TEXT,
    heldout_documents,
    make_data,
    model_with,
    parse_experiment,
)
from official import xlnet

CONFIG = "configs/transformer_xl.yaml"
VOCAB_SIZE = 1000
LENGTHS = (16, 32, 64, 128, 256, 512)
SEGMENT = 128
_WINDOW_ROWS = 16  # Batch size of sliding windows.


def main() -> None:
    flags = parse_experiment(
        __doc__, text=TEXT, set=SET, tokens=flag(1024, "number of tokens to evaluate")
    )
    config = xlnet.XLNetConfig.load(CONFIG, flags.set)
    data, model = (os.path.join(flags.output, name) for name in ("data", "model"))
    make_data([flags.text], flags.output, {"data": config}, VOCAB_SIZE)
    xlnet.pretrain(config, data, model)
    document = longest_document(data)
    rows = [measure(model, document, length, flags.tokens) for length in LENGTHS]
    if flags.document:
        write(rows, flags.document, len(document))
    columns = ("memory_perplexity", "sliding_perplexity")
    print(json.dumps({row["length"]: [row[name] for name in columns] for row in rows}))


def longest_document(data_dir: str) -> np.ndarray:
    """Returns the tokens of the longest document in the held-out lanes of a forward data set."""
    return max(heldout_documents(data_dir), key=len)


def measure(model_dir: str, document: np.ndarray, length: int, num_tokens: int) -> dict:
    """Measures perplexity and seconds per token with memory and with a sliding window.

    Args:
      model_dir: the model directory.
      document: tokens of the document.
      length: attention length A.
      num_tokens: number of tokens to evaluate, at the end of the document.

    Raises:
      ValueError: the document is too short.
    """
    with_memory, without = model_with(model_dir, length), model_with(model_dir, 0)
    last = len(document) - num_tokens
    if last < max(LENGTHS):
        raise ValueError(f"expected a document of {num_tokens + max(LENGTHS)} tokens, got {last}")
    losses, seconds = read_with_memory(with_memory, document)
    sliding, sliding_seconds = read_sliding(without, document, length, num_tokens)
    return {
        "length": length,
        "memory_perplexity": float(np.exp(losses[-num_tokens:].mean())),
        "sliding_perplexity": float(np.exp(sliding.mean())),
        "memory_seconds": seconds,
        "sliding_seconds": sliding_seconds,
        "times_cheaper": sliding_seconds / seconds,
    }


def read_with_memory(model, document: np.ndarray) -> tuple[np.ndarray, float]:
    """Evaluates a document in consecutive segments with memory.

    Args:
      model: the model, with batch size 1.
      document: tokens of the document.

    Returns:
      Negative log-likelihoods of the last S · SEGMENT tokens, float64, and seconds per token.
    """
    import tensorflow as tf

    settings = model.config.model
    num_segments = (len(document) - 1) // SEGMENT
    first = len(document) - 1 - num_segments * SEGMENT
    positions = tf.range(SEGMENT)[None]

    @tf.function(autograph=False)
    def read(token_ids, labels, memory, memory_length):
        outputs = model(
            {
                "token_ids": token_ids,
                "order": positions,
                "content_positions": positions,
                "memory": memory,
                "memory_length": memory_length,
            }
        )
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels, outputs["logits"])
        return losses, outputs["memory"]

    start = 0.0
    for run in range(2):  # The first run compiles.
        memory = tf.zeros([settings.num_layers, 1, settings.mem_len, settings.d_model])
        losses = []
        start = time.perf_counter()
        for segment in range(num_segments):
            begin = first + segment * SEGMENT
            part = tf.constant(document[None, begin : begin + SEGMENT + 1])
            seen = tf.constant([min(segment * SEGMENT, settings.mem_len)])
            found, memory = read(part[:, :-1], part[:, 1:], memory, seen)
            losses.append(found.numpy()[0])
            if not run:
                break
    seconds = (time.perf_counter() - start) / (num_segments * SEGMENT)
    return np.concatenate(losses).astype(np.float64), seconds


def read_sliding(model, document: np.ndarray, length: int, num: int) -> tuple[np.ndarray, float]:
    """Evaluates the last tokens of a document with a sliding window of stride 1.

    Args:
      model: the model, without memory.
      document: tokens of the document.
      length: window length in tokens.
      num: number of tokens to evaluate.

    Returns:
      Negative log-likelihoods, float64 [num], and seconds per token.
    """
    import tensorflow as tf

    order = tf.tile(tf.range(length)[None], [_WINDOW_ROWS, 1])
    last = tf.fill([_WINDOW_ROWS, 1], length - 1)

    @tf.function(autograph=False)
    def read(token_ids, labels):
        inputs = {"token_ids": token_ids, "order": order, "content_positions": last}
        logits = model(inputs)["logits"][:, 0]
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits)

    targets = np.arange(len(document) - num, len(document)).reshape(-1, _WINDOW_ROWS)
    windows = [document[rows[:, None] + np.arange(-length, 0)] for rows in targets]
    read(tf.constant(windows[0]), tf.constant(document[targets[0]]))  # Compiles.
    start = time.perf_counter()
    losses = [
        read(tf.constant(window), tf.constant(document[rows])).numpy()
        for window, rows in zip(windows, targets, strict=True)
    ]
    return np.concatenate(losses).astype(np.float64), (time.perf_counter() - start) / num


def write(rows: list[dict], document: str, num_tokens: int) -> None:
    """Writes the table of a document."""
    head = (
        "attention length",
        "perplexity, memory",
        "perplexity, sliding",
        "ms per token, memory",
        "ms per token, sliding",
        "speedup",
    )
    cells = (
        (
            row["length"],
            f"{row['memory_perplexity']:.2f}",
            f"{row['sliding_perplexity']:.2f}",
            f"{1000 * row['memory_seconds']:.4f}",
            f"{1000 * row['sliding_seconds']:.3f}",
            f"{row['times_cheaper']:.0f}",
        )
        for row in rows
    )
    table = f"{markdown_table([head, *cells])}\n\nThe document has {num_tokens} tokens."
    fill_table(document, "attention_length", table, recipe_digests(CONFIG))


if __name__ == "__main__":
    main()
