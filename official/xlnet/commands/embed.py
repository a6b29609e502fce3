"""Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

--input is a UTF-8 file with one text per line, or JSON lines with a key `text`. Row n of the output
is the vector of text n; an empty line is an empty text. The ending of --output is its format.

Example:
  xlnet embed --model=runs/model --input=texts.txt --output=texts.npy
"""

from __future__ import annotations

import sys
import time
from typing import Any

from official.xlnet.commands import REQUIRED, batch_size, choice, flag_table, integer, string
from official.xlnet.data.reading import check_unknown
from official.xlnet.data.text_files import read_rows
from official.xlnet.data.vector_files import check_ending, vector_file
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.progress import Progress, minutes_and_seconds, per_second

FLAGS = flag_table(
    string("model", REQUIRED, "Model directory, HF folder or TF1 release."),
    string("input", REQUIRED, "Text file, or JSON lines."),
    string("output", REQUIRED, "File ending in .npy, .jsonl or .parquet."),
    choice("pooling", "mean", ["mean", "cls"], "Mean over all tokens, or the vector of CLS."),
    integer(
        "layer",
        default=-1,
        text="Layer: 0 is the word embedding; negative numbers count from the last.",
        least=-1001,
        most=1000,
    ),
    integer(
        "max_length",
        default=None,
        text="Maximum length in tokens; default: data.seq_len of the model.",
        least=1,
    ),
    batch_size("Batch size."),
)

_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length together.


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Embeds the texts; returns `texts`, `width` and `texts_per_second`."""
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.model_directory import load_encoder
    from official.xlnet.inference.embedding import TextEmbedder

    check_ending(FLAGS.output)
    texts = read_rows(FLAGS.input)
    tokenizer, encoder = load_tokenizer(FLAGS.model), load_encoder(FLAGS.model)
    embedder = TextEmbedder(encoder, tokenizer, FLAGS.layer, FLAGS.max_length)
    width = encoder.config.model.d_model
    size = FLAGS.batch_size * _CHUNK_BATCHES
    progress, start = Progress(sys.stderr), time.monotonic()
    with vector_file(FLAGS.output, len(texts), width) as write:
        for first in range(0, len(texts), size):
            chunk = texts[first : first + size]
            write(chunk, embedder(chunk, FLAGS.pooling, FLAGS.batch_size))
            done = first + len(chunk)
            left = (time.monotonic() - start) / done * (len(texts) - done)
            progress.show(f"{done}/{len(texts)} texts  {minutes_and_seconds(left)} left")
    progress.keep(f"{len(texts)}/{len(texts)} texts")
    return {
        "texts": len(texts),
        "width": width,
        "texts_per_second": per_second(len(texts), start),
        **check_unknown(tokenizer.counts, FLAGS.input),
    }
