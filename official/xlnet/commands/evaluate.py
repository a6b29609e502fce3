"""Evaluates a model: held-out loss and perplexity, or task metrics.

A pre-trained model is evaluated on a data set of `xlnet prepare`. The loss is in nats per target;
unigram_loss is the loss of a unigram baseline. A fine-tuned model is evaluated on labelled data of
its task; with --output, predictions, metrics and a plot are written as well.
"""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.data.schema import MANIFEST_FILE

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
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


def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and `targets`, or the metrics of the task."""
    config = load_config(_MODEL.value)
    if not config.task.name or os.path.exists(os.path.join(_DATA.value, MANIFEST_FILE)):
        from official.xlnet.training.evaluation import evaluate

        return evaluate(_MODEL.value, _DATA.value, _SPLIT.value, _MEM_LEN.value)
    from data_prep.tasks.task_data import read_task
    from official.xlnet.inference.task_prediction import evaluate_task

    examples, counts = read_task(_DATA.value, config.task)
    return evaluate_task(_MODEL.value, examples, _OUTPUT.value) | counts
