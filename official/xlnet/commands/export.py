"""Exports a model as a SavedModel for TF Serving.

Writes --output/<version>/ with the signatures serving_default (raw text), examples (tf.Example)
and token_ids, and example server configurations and requests next to it. --head is task for a
fine-tuned model, and encoder (embeddings) or lm (left-to-right log-likelihoods) for a pre-trained
one.

Example:
  xlnet export --model=runs/sst2 --output=exported/sst2
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import (
    MODEL,
    PRODUCTS_FLAG,
    REQUIRED,
    choice,
    comma_list,
    flag_table,
    integer,
    string,
)
from official.xlnet.configs.choices import SERVED_HEADS, WEIGHT_STORAGE
from official.xlnet.configs.validation import require
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    MODEL,
    string("output", REQUIRED, "Base directory of the model's versions."),
    integer(
        "version",
        default=None,
        text="Version number; default: the latest plus one.",
        least=1,
        most=2**63 - 1,
    ),
    choice(
        "head",
        default=None,
        values=SERVED_HEADS,
        text="Output of the model; default: task if fine-tuned, else encoder.",
    ),
    integer(
        "max_length",
        default=None,
        text="Maximum sequence length in tokens; default: as in training.",
        least=1,
    ),
    comma_list(
        "buckets", [], "Sequence lengths that inputs are padded to; default: powers of two."
    ),
    choice("weights", "float32", WEIGHT_STORAGE, "Storage type of weight matrices."),
    comma_list("text_columns", [], "Names of the text inputs; default: as in training."),
    integer(
        "max_characters",
        default=200_000,
        text="Maximum characters per text; longer texts are rejected.",
        least=1,
    ),
    integer(
        "max_windows",
        default=512,
        text="Maximum windows per text; longer texts are rejected.",
        least=1,
    ),
    PRODUCTS_FLAG,
)


@on_local_disk(FLAGS, reads=["model"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Runs the export; returns what `official.xlnet.serving.export.export` returns."""
    require(
        all(
            bucket.isascii() and bucket.isdecimal() and len(bucket) < 10 for bucket in FLAGS.buckets
        ),
        "--buckets",
        "integers",
        FLAGS.buckets,
    )
    from official.xlnet.modeling.kernels.product_type import products_in
    from official.xlnet.serving.export import export

    with products_in(FLAGS.products):
        return export(
            FLAGS.model,
            FLAGS.output,
            FLAGS.version,
            head=FLAGS.head,
            max_length=FLAGS.max_length,
            lengths=[int(bucket) for bucket in FLAGS.buckets],
            weights=FLAGS.weights,
            text_columns=FLAGS.text_columns,
            max_characters=FLAGS.max_characters,
            max_windows=FLAGS.max_windows,
        )
