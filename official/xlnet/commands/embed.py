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
    pooling: Annotated[str, OneOf((*POOLINGS, "words"))] = "mean",
    layer: Annotated[int, Range(-1001, 1000)] = -1,
    layers: Annotated[Sequence[int], COMMAS] = (),
    max_length: Annotated[int, Range(1)] | None = None,
    window_stride: Annotated[int, Range(0)] = 0,
    batch_size: Annotated[int, Range(1, 65_536)] = 32,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
) -> dict[str, Any]:
    """Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

    Row n of the output is the vector of text n; an empty line is an empty text. With the pooling
    none or words, a row is one of a token or word, with its text and place.

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
    if others := [name for name in rows[0] if name != "text"]:
        Progress(sys.stderr).log_line(
            f"{input}: texts are read from text; not read: {', '.join(others)}"
        )
    with waiting("reading the model"):
        tokenizer, encoder = load_tokenizer(model), load_encoder(model)
    uncounted = load_tokenizer(model)  # For offsets of texts that `tokenizer` has counted.
    embedder = TextEmbedder(encoder, tokenizer, layers or layer, max_length, window_stride)
    size, done = batch_size * _CHUNK_BATCHES, 0
    start = time.monotonic()

    def said() -> str:
        left = (time.monotonic() - start) / max(done, 1) * (len(texts) - done)
        left_words = f"  {minutes_and_seconds(left)} left" if 0 < done < len(texts) else ""
        return f"{done}/{len(texts)} texts, {embedder.num_windows} windows{left_words}"

    vectors = vector_file(output, len(texts), embedder.width)
    with matmul_precision(products), vectors as write, elapsed_time(said):
        for first in range(0, len(texts), size):
            chunk = texts[first : first + size]
            if of_parts:
                write(*_parts(embedder, uncounted, chunk, first, pooling, batch_size))
            else:
                named = [{"text": text} for text in chunk]
                write(named, embedder(chunk, pooling, batch_size))
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


def _parts(
    embedder: Any, tokenizer: Any, texts: list[str], first: int, pooling: str, batch_size: int
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """A row for each token, or word, of texts: where it stands; and its vector."""
    from official.xlnet.inference.words import word_spans

    rows, vectors = [], []
    vectors_NTD = embedder(texts, "none", batch_size)[:, :-2]  # Without SEP and CLS.
    for number, (text, vectors_TD) in enumerate(zip(texts, vectors_NTD, strict=True), first + 1):
        offsets = tokenizer.encode_with_offsets(text)[1][: vectors_NTD.shape[1]]
        spans = ((span, [piece]) for piece, span in enumerate(offsets))
        for (start, end), pieces in word_spans(text, offsets) if pooling == "words" else spans:
            rows.append({"text_id": number, "start": start, "end": end, "part": text[start:end]})
            # Padding is on the left.
            vectors.append(vectors_TD[np.array(pieces) - len(offsets)].mean(axis=0))
    return rows, np.array(vectors, np.float32).reshape(len(rows), embedder.width)
