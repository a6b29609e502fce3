"""`xlnet embed`: vectors of the texts of a file, to a file."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.configs.choices import POOLINGS, PRODUCTS
from official.xlnet.data.reading import check_unknown, log_counts
from official.xlnet.data.result_files import VECTORS, check_ending, vector_file
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import COMMAS, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import (
    Progress,
    elapsed_time,
    minutes_and_seconds,
    per_second,
    waiting,
)

_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length together.


@public()
def embed_file(
    model: Path,
    input: Path,
    output: OutputFile,
    pooling: Annotated[str, OneOf(POOLINGS)] = "mean",
    layer: Annotated[int, Range(-1001, 1000)] = -1,
    layers: Annotated[Sequence[int], COMMAS] = (),
    max_length: Annotated[int, Range(1)] | None = None,
    window_stride: Annotated[int, Range(0)] = 0,
    batch_size: Annotated[int, Range(1, 65_536)] = 32,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
) -> dict[str, Any]:
    """Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

    Row n of the output is the vector of text n; an empty line is an empty text. With the pooling
    none or words, a row is one of a token or word, with the number of its text and its place. The
    other columns of a table come back, except in .npy.

    Args:
      model: model directory, HF folder or TF1 release.
      input: UTF-8 file with one text per line, or a table with a column `text`.
      output: file ending in .npy, .jsonl or .parquet, which is its format.
      pooling: `mean` over all tokens, or `text_mean` without SEP and CLS; `cls`; or a row for each
        word (`words`) or token (`none`).
      layer: layer: 0 is the word embedding; negative numbers count from the last.
      layers: several layers, whose vectors are concatenated, separated by commas.
      max_length: maximum length in tokens; default: data.seq_len of the model.
      window_stride: read longer texts in windows, this many tokens apart; 0: they are truncated.
      batch_size: batch size.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.

    Returns:
      `texts`, `width`, `texts_per_second`, and counts of empty and truncated texts.

    Example:
      $ xlnet embed --model=runs/model --input=texts.txt --output=texts.npy
    """
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.model_directory import load_encoder
    from official.xlnet.inference.embedding import TextEmbedder
    from official.xlnet.modeling.kernels.product_type import matmul_precision

    of_parts = pooling in ("words", "none")
    if of_parts and not output.endswith((".jsonl", ".parquet")):
        raise ConfigError(f"{output}: expected .jsonl or .parquet for rows of words or tokens")
    check_ending(output, VECTORS)
    rows = read_text_rows([], input)
    texts = [row["text"] for row in rows]
    written = [_part(1, row, (0, 0)) for row in rows] if of_parts else rows
    columns = {name for row in rows for name in row}
    reserved = {"vector", *(_part(1, {}, (0, 0)) if of_parts else {})}
    if taken := columns & reserved:
        raise ConfigError(
            f"{input}: expected a table without the columns that embed writes, got "
            f"{', '.join(sorted(taken))}; rename them"
        )
    if output.endswith(".npy") and (left_out := sorted(columns - {"text"})):
        Progress(sys.stderr).log_line(
            f"{input}: texts are read from text; not in {output}: {', '.join(left_out)}"
        )
    with waiting("reading the model"):
        tokenizer, encoder = load_tokenizer(model), load_encoder(model)
    embedder = TextEmbedder(encoder, tokenizer, layers or layer, max_length, window_stride)
    size, done, start = batch_size * _CHUNK_BATCHES, 0, time.monotonic()

    def said() -> str:
        left = (time.monotonic() - start) / max(done, 1) * (len(texts) - done)
        left_words = f"  {minutes_and_seconds(left)} left" if 0 < done < len(texts) else ""
        return f"texts: {done}/{len(texts)}, windows: {embedder.num_windows}{left_words}"

    vectors = vector_file(output, written, embedder.width)
    with matmul_precision(products), vectors as write, elapsed_time(said):
        for first in range(0, len(texts), size):
            chunk = texts[first : first + size]
            if of_parts:
                parts = embedder.parts(chunk, pooling, batch_size)
                some = [
                    _part(number, rows[number - 1], span)
                    for number, (spans, _) in enumerate(parts, first + 1)
                    for span in spans
                ]
                write(some, np.concatenate([vectors_WD for _, vectors_WD in parts]))
            else:
                write(rows[first : first + size], embedder(chunk, pooling, batch_size))
            done = first + len(chunk)
    counts = {
        "texts": len(texts),
        "empty": sum(not text.strip() for text in texts),
        "truncated": embedder.num_truncated,
    }
    log_counts(input, {**counts, **tokenizer.counts})
    return {
        **counts,
        "width": embedder.width,
        "texts_per_second": per_second(len(texts), start),
        **check_unknown(tokenizer.counts, input),
    }


def _part(number: int, row: dict[str, Any], span: tuple[int, int]) -> dict[str, Any]:
    """The row of a word or token, but for its vector: where it stands, and the other columns."""
    start, end = span
    others = {name: row[name] for name in row if name != "text"}
    part = row.get("text", "")[start:end]
    return {"text_id": number, **others, "start": start, "end": end, "part": part}
