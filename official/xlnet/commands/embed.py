"""Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

--input is a UTF-8 file with one text per line, or a table with a column `text`. Row n of the output
is the vector of text n; an empty line is an empty text. The ending of --output is its format. With
--pooling=none or words a row is one of a token or word, with its text and place.

Example:
  xlnet embed --model=runs/model --input=texts.txt --output=texts.npy
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import numpy as np

from data_prep.tasks.text_rows import read_text_rows
from official.xlnet.commands import (
    PRODUCTS_FLAG,
    REQUIRED,
    batch_size,
    choice,
    comma_list,
    flag_table,
    integer,
    string,
)
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.result_files import VECTORS, check_ending, vector_file
from official.xlnet.errors import ConfigError
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.progress import Progress, minutes_and_seconds, per_second

FLAGS = flag_table(
    string("model", REQUIRED, "Model directory, HF folder or TF1 release."),
    string("input", REQUIRED, "Text file, or a table with a column `text`."),
    string("output", REQUIRED, "File ending in .npy, .jsonl or .parquet."),
    choice(
        "pooling",
        default="mean",
        values=["mean", "text_mean", "cls", "words", "none"],
        text="Mean over all tokens, or without SEP and CLS; CLS; or a row for each word, or token.",
    ),
    integer(
        "layer",
        default=-1,
        text="Layer: 0 is the word embedding; negative numbers count from the last.",
        least=-1001,
        most=1000,
    ),
    comma_list("layers", [], "Several layers, whose vectors are put side by side."),
    integer(
        "max_length",
        default=None,
        text="Maximum length in tokens; default: data.seq_len of the model.",
        least=1,
    ),
    integer(
        "window_stride",
        default=0,
        text="Read longer texts in windows, this many tokens apart; 0: they lose their end.",
    ),
    batch_size("Batch size."),
    PRODUCTS_FLAG,
)

_INTEGER = re.compile(r"-?\d+")
_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length together.


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Embeds the texts; returns `texts`, `width` and `texts_per_second`."""
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.model_directory import load_encoder
    from official.xlnet.inference.embedding import TextEmbedder
    from official.xlnet.modeling.kernels.product_type import products_in

    of_parts = FLAGS.pooling in ("words", "none")
    if of_parts and not FLAGS.output.endswith((".jsonl", ".parquet")):
        raise ConfigError(
            f"{FLAGS.output}: expected .jsonl or .parquet for rows of words or tokens"
        )
    check_ending(FLAGS.output, VECTORS)
    progress = Progress(sys.stderr)
    rows = read_text_rows([], FLAGS.input)
    texts = [row["text"] for row in rows]
    if others := [name for name in rows[0] if name != "text"]:
        progress.keep(f"{FLAGS.input}: texts are read from text; not read: {', '.join(others)}")
    tokenizer, encoder = load_tokenizer(FLAGS.model), load_encoder(FLAGS.model)
    uncounted = load_tokenizer(FLAGS.model)  # For offsets of texts that `tokenizer` has counted.
    layers = [int(each) if _INTEGER.fullmatch(each) else each for each in FLAGS.layers]
    embedder = TextEmbedder(
        encoder, tokenizer, layers or FLAGS.layer, FLAGS.max_length, FLAGS.window_stride
    )
    size = FLAGS.batch_size * _CHUNK_BATCHES
    start = time.monotonic()
    vectors = vector_file(FLAGS.output, len(texts), embedder.width)
    with products_in(FLAGS.products), vectors as write:
        for first in range(0, len(texts), size):
            chunk = texts[first : first + size]
            if of_parts:
                write(*_parts(embedder, uncounted, chunk, first))
            else:
                named = [{"text": text} for text in chunk]
                write(named, embedder(chunk, FLAGS.pooling, FLAGS.batch_size))
            done = first + len(chunk)
            left = (time.monotonic() - start) / done * (len(texts) - done)
            said = f"{done}/{len(texts)} texts  {minutes_and_seconds(left)} left"
            progress.show(said, done / len(texts))
    progress.keep(f"{len(texts)}/{len(texts)} texts")
    counts = {
        "texts": len(texts),
        "empty": sum(not text.strip() for text in texts),
        "truncated": embedder.num_truncated,
    }
    say_counts(FLAGS.input, {**counts, **tokenizer.counts})
    return {
        **counts,
        "width": embedder.width,
        "texts_per_second": per_second(len(texts), start),
        **check_unknown(tokenizer.counts, FLAGS.input),
    }


def _parts(
    embedder: Any, tokenizer: Any, texts: list[str], first: int
) -> tuple[list[dict[str, Any]], np.ndarray]:
    """A row for each token, or word, of texts: where it stands; and its vector."""
    from official.xlnet.inference.words import word_spans

    rows, vectors = [], []
    vectors_NTD = embedder(texts, "none", FLAGS.batch_size)[:, :-2]  # Without SEP and CLS.
    for number, (text, vectors_TD) in enumerate(zip(texts, vectors_NTD, strict=True), first + 1):
        offsets = tokenizer.encode_with_offsets(text)[1][: vectors_NTD.shape[1]]
        spans = ((span, [piece]) for piece, span in enumerate(offsets))
        for (start, end), pieces in (
            word_spans(text, offsets) if FLAGS.pooling == "words" else spans
        ):
            rows.append({"text_id": number, "start": start, "end": end, "part": text[start:end]})
            # Padding is on the left.
            vectors.append(vectors_TD[np.array(pieces) - len(offsets)].mean(axis=0))
    return rows, np.array(vectors, np.float32).reshape(len(rows), embedder.width)
