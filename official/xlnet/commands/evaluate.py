"""Evaluates a model: held-out loss and perplexity, or task metrics.

A pre-trained model is evaluated on a data set of `xlnet prepare`. The loss is in nats per target;
unigram_loss is the loss of a unigram baseline. A fine-tuned model is evaluated on labelled data of
its task; with --output, predictions, metrics and a plot are written as well.
"""

from __future__ import annotations

from typing import Any

from absl import flags

from official.xlnet.files.staging import on_local_disk

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_multi_string(
    "model",
    None,
    "Model directory. Repeat it to evaluate an ensemble of fine-tuned models.",
    required=True,
    flag_values=FLAGS,
)
_DATA = flags.DEFINE_string(
    "data",
    None,
    "Data set of `xlnet prepare`, or labelled data of the model's task.",
    required=True,
    flag_values=FLAGS,
)
_SPLIT = flags.DEFINE_enum(
    "split", "heldout", ["heldout", "train"], "Split of the data set.", flag_values=FLAGS
)
_MEM_LEN = flags.DEFINE_integer(
    "mem_len",
    None,
    "Memory length in tokens, for pre-trained models; default: as in training. May be longer.",
    lower_bound=0,
    upper_bound=2**31 - 1,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output",
    None,
    "Output directory for predictions, metrics and plots of a task.",
    flag_values=FLAGS,
)
_MAX_LOST = flags.DEFINE_float(
    "max_lost",
    0.05,
    "Largest share of rows that may be unusable: these are left out and counted; more are an "
    "error.",
    lower_bound=0,
    upper_bound=1,
    flag_values=FLAGS,
)


@on_local_disk(FLAGS, reads=["model", "data"], writes_directory=["output"])
def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and `targets`, or the metrics of the task."""
    from official.xlnet.api.prediction import evaluate

    models = _MODEL.value
    model = models[0] if len(models) == 1 else models
    return evaluate(
        model, _DATA.value, _SPLIT.value, _MEM_LEN.value, _OUTPUT.value, _MAX_LOST.value
    )
