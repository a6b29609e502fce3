"""A plain Keras classifier as the fine-tuned model of a task: its configuration and its head."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import tensorflow as tf
import tf_keras

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.modeling.models.xlnet_classifier import XLNetClassifier

_TASKS = ("classification", "multi_label", "regression")


def task_configuration(
    model: XLNetClassifier, labels: Sequence[str], text_columns: Sequence[str], task: str
) -> XLNetConfig:
    """The configuration of the model of a task that a classifier is; see `save_pretrained`.

    Raises:
      ConfigError: an argument is out of range or does not fit the number of logits.
    """
    num_logits = model.num_classes
    kind = task or ("regression" if num_logits == 1 and not labels else "classification")
    require_one_of("task", kind, _TASKS)
    if kind == "regression":
        require(num_logits == 1, "task", f"classification with {num_logits} logits", kind)
        require(not labels, "labels", "none for regression", list(labels))
    else:
        is_sigmoid = kind == "classification" and num_logits == 1
        number = 2 if is_sigmoid else num_logits
        labels = [str(label) for label in labels or range(number)]
        names = f"{number} different names for {num_logits} logits"
        require(len(set(labels)) == len(labels) == number, "labels", names, list(labels))
    config = copy.deepcopy(model.encoder.config)
    config.task = TaskConfig(
        name=kind,
        labels=tuple(labels),
        text_columns=tuple(text_columns),
        summary=config.task.summary,
        max_length=max(config.task.max_length, config.data.seq_len),
    )
    config.check()
    return config


def head_parts(model: XLNetClassifier, config: XLNetConfig) -> dict[str, tf_keras.layers.Layer]:
    """The layers of the task's head, by their attribute.

    The sigmoid of one logit z is the softmax of two: 0 and z.
    """
    logits = model.logits
    if config.task.name == "classification" and model.num_classes == 1:
        kernel, bias = (tf.pad(x, [[0, 0]] * (x.shape.rank - 1) + [[1, 0]]) for x in logits.weights)
        logits = tf_keras.layers.Dense(2, dtype="float32")
        logits.build([None, kernel.shape[0]])
        logits.set_weights([kernel, bias])
    return {"summary": model.sequence_summary, "logits": logits}
