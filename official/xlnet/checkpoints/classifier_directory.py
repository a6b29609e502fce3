"""A plain Keras classifier as the fine-tuned model of a task: its configuration and its head."""

from __future__ import annotations

import copy
from collections.abc import Sequence

import tensorflow as tf

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.validation import require, require_one_of
from official.xlnet.modeling.models.xlnet_classifier import TASKS, XLNetClassifier


def task_configuration(
    model: XLNetClassifier, labels: Sequence[str], text_columns: Sequence[str], task: str
) -> XLNetConfig:
    """The configuration of the model of a task that a classifier is; see `save_pretrained`.

    Raises:
      ConfigError: an argument is out of range or does not fit the number of logits.
    """
    config, num_logits = copy.deepcopy(model.config), model.num_classes
    task_of_model, labels = config.task, labels or model.config.task.labels
    is_number = num_logits == 1 and not labels
    task_name = task or task_of_model.name or ("regression" if is_number else "classification")
    require_one_of("task", task_name, (task_of_model.name,) if task_of_model.name else TASKS)
    if task_name == "regression":
        require(num_logits == 1, "task", f"classification with {num_logits} logits", task_name)
        require(not labels, "labels", "none for regression", list(labels))
    else:
        is_sigmoid = task_name == "classification" and num_logits == 1
        num_labels = 2 if is_sigmoid else num_logits
        labels = [str(label) for label in labels or range(num_labels)]
        names = f"{num_labels} different names for {num_logits} logits"
        require(len(set(labels)) == len(labels) == num_labels, "labels", names, list(labels))
    default_columns = () if task_of_model.name else ("text",)
    settings = {
        "name": task_name,
        "labels": tuple(labels),
        "text_columns": tuple(text_columns or task_of_model.text_columns or default_columns),
        "max_length": max(
            task_of_model.max_length, 0 if model.preprocessor else config.data.seq_len
        ),
    }
    config.task = task_of_model.updated(settings, "")
    config.check()
    return config


def sigmoid_head(model: XLNetClassifier) -> tf.train.Checkpoint:
    """The head of two classes that a head with one logit is: sigmoid(z) is the softmax of 0, z."""
    kernel, bias = model.head.logits.weights
    logits = tf.train.Checkpoint(
        kernel=tf.Variable(tf.pad(kernel, [[0, 0], [1, 0]])),
        bias=tf.Variable(tf.pad(bias, [[1, 0]])),
    )
    return tf.train.Checkpoint(summary=model.head.summary, logits=logits)
