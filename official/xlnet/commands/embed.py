"""Embeds texts: one vector per text, as .npy, JSON lines or Parquet.

--input is a UTF-8 file with one text per line, or JSON lines with a key `text`. Row n of the output
is the vector of text n; an empty line is an empty text. The ending of --output is its format.
"""

from __future__ import annotations

import sys
import time
from typing import Any

from absl import flags

from official.xlnet.data.text_files import read_rows
from official.xlnet.data.vector_files import check_ending, vector_file
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.progress import Progress, minutes_and_seconds
from official.xlnet.tokenization.unknown_text import check_unknown

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string(
    "model", None, "Model directory, HF folder or TF1 release.", required=True, flag_values=FLAGS
)
_INPUT = flags.DEFINE_string(
    "input", None, "Text file, or JSON lines.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "File ending in .npy, .jsonl or .parquet.", required=True, flag_values=FLAGS
)
_POOLING = flags.DEFINE_enum(
    "pooling",
    "mean",
    ["mean", "cls"],
    "Mean over all tokens, or the vector of CLS.",
    flag_values=FLAGS,
)
_LAYER = flags.DEFINE_integer(
    "layer",
    -1,
    "Layer: 0 is the word embedding; negative numbers count from the last.",
    lower_bound=-1001,
    upper_bound=1000,
    flag_values=FLAGS,
)
_MAX_LENGTH = flags.DEFINE_integer(
    "max_length",
    None,
    "Maximum length in tokens; default: data.seq_len of the model.",
    lower_bound=1,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Batch size.", 1, 65_536, flag_values=FLAGS)

_CHUNK_BATCHES = 16  # Batches whose texts are sorted by length together.


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def run() -> dict[str, Any]:
    """Embeds the texts; returns `texts`, `width` and `texts_per_second`."""
    from official.xlnet.checkpoints.any_format import load_tokenizer
    from official.xlnet.checkpoints.model_directory import load_encoder
    from official.xlnet.inference.embedding import TextEmbedder

    check_ending(_OUTPUT.value)
    texts = read_rows(_INPUT.value)
    tokenizer, encoder = load_tokenizer(_MODEL.value), load_encoder(_MODEL.value)
    embedder = TextEmbedder(encoder, tokenizer, _LAYER.value, _MAX_LENGTH.value)
    width = encoder.config.model.d_model
    size = _BATCH_SIZE.value * _CHUNK_BATCHES
    progress, start = Progress(sys.stderr), time.monotonic()
    with vector_file(_OUTPUT.value, len(texts), width) as write:
        for first in range(0, len(texts), size):
            chunk = texts[first : first + size]
            write(chunk, embedder(chunk, _POOLING.value, _BATCH_SIZE.value))
            done = first + len(chunk)
            left = (time.monotonic() - start) / done * (len(texts) - done)
            progress.show(f"{done}/{len(texts)} texts  {minutes_and_seconds(left)} left")
    progress.keep(f"{len(texts)}/{len(texts)} texts")
    seconds = max(time.monotonic() - start, 1e-9)
    return {
        "texts": len(texts),
        "width": width,
        "texts_per_second": round(len(texts) / seconds, 1),
        **check_unknown(tokenizer.counts, _INPUT.value),
    }
