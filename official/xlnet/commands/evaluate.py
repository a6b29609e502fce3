"""Evaluates a model: held-out loss and perplexity, or task metrics.

A pre-trained model is evaluated on a data set of `xlnet prepare`. The loss is in nats per target;
unigram_loss is the loss of a unigram baseline. A fine-tuned model is evaluated on labelled data of
its task; with --output, predictions, metrics and a plot are written as well.

Example:
  xlnet evaluate --model=runs/model --data=runs/data
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import (
    MAX_LOST_ROWS,
    PRODUCTS_FLAG,
    REQUIRED,
    choice,
    flag_table,
    integer,
    repeated,
    string,
)
from official.xlnet.data.reading import say_counts
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    repeated(
        "model",
        default=REQUIRED,
        text="Model directory. Repeat it to evaluate an ensemble of fine-tuned models.",
    ),
    string(
        "data",
        default=REQUIRED,
        text="Data set of `xlnet prepare`, or labelled data of the model's task.",
    ),
    choice("split", "heldout", ["heldout", "train"], "Split of the data set."),
    integer(
        "mem_len",
        default=None,
        text="Memory length in tokens, for pre-trained models; default: as in training. May be "
        "longer.",
    ),
    string("output", None, "Output directory for predictions, metrics and plots of a task."),
    MAX_LOST_ROWS,
    PRODUCTS_FLAG,
)


@on_local_disk(FLAGS, reads=["model", "data"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and `targets`, or the metrics of the task."""
    from official.xlnet.api.prediction import evaluate
    from official.xlnet.modeling.kernels.product_type import products_in

    models = FLAGS.model
    model = models[0] if len(models) == 1 else models
    with products_in(FLAGS.products):
        found = evaluate(
            model, FLAGS.data, FLAGS.split, FLAGS.mem_len, FLAGS.output, FLAGS.max_lost
        )
    if "examples" in found:
        say_counts(FLAGS.data, found)
    return found
