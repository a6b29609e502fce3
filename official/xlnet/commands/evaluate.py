"""Evaluates a model: held-out loss and perplexity, or a task's figures.

A pre-trained model is evaluated on records of `xlnet prepare`: the loss is in nats per target;
unigram_loss is that of a model that knows only word counts. A fine-tuned model is evaluated on a
labelled file of its task; with --output, predictions, figures and a picture are written too.
"""

from __future__ import annotations

import os
from typing import Any

from absl import flags

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.schema import MANIFEST_FILE

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", required=True, flag_values=FLAGS)
_DATA = flags.DEFINE_string(
    "data",
    None,
    "Data set of `xlnet prepare`, or labelled file of the model's task.",
    required=True,
    flag_values=FLAGS,
)
_SPLIT = flags.DEFINE_enum(
    "split", "heldout", ["heldout", "train"], "Which windows of records.", flag_values=FLAGS
)
_MEM_LEN = flags.DEFINE_integer(
    "mem_len",
    None,
    "Length of memory on records; default: that of training. It may be longer.",
    lower_bound=0,
    flag_values=FLAGS,
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Directory for the files of a task's evaluation.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and `targets`, or the task's figures."""
    config = XLNetConfig.load(_MODEL.value)
    if not config.task.name or os.path.exists(os.path.join(_DATA.value, MANIFEST_FILE)):
        from official.xlnet.training.evaluation import evaluate

        return evaluate(_MODEL.value, _DATA.value, _SPLIT.value, _MEM_LEN.value)
    from data_prep.tasks.task_data import read_task
    from official.xlnet.inference.task_prediction import evaluate_task

    examples, counts = read_task(_DATA.value, config.task)
    return evaluate_task(_MODEL.value, examples, _OUTPUT.value) | counts
