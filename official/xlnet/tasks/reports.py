"""Evaluation reports: predictions.jsonl, metrics.json and a plot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from official.xlnet.data.examples import Example
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json
from official.xlnet.files.new_folder import files_together
from official.xlnet.tasks.task import Prediction, Task

METRICS_FILE = "metrics.json"
PREDICTIONS_FILE = "predictions.jsonl"
PICTURE_FILE = "evaluation.png"
REPORT_FILES = (METRICS_FILE, PREDICTIONS_FILE, PICTURE_FILE)
_MOST_DRAWN = 50


def write_report(
    directory: str,
    task: Task,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    metrics: dict,
) -> None:
    """Writes predictions and metrics of an evaluation, together, and a plot.

    Args:
      directory: output directory; created if missing.
      task: the task, which draws the plot.
      examples: the evaluated examples, with labels.
      predictions: their predictions.
      metrics: the metrics.
    """
    import matplotlib

    from official.xlnet.runtime.pictures import new_figure, png

    details = task.details(examples, predictions)
    with_labels = (
        {**prediction, "expected": example.expected}
        for example, prediction in zip(examples, predictions, strict=True)
    )
    with files_together(directory, last=METRICS_FILE) as new:
        write_json_lines(os.path.join(new, PREDICTIONS_FILE), with_labels)
        write_json(os.path.join(new, METRICS_FILE), {**metrics, **details})
    with matplotlib.rc_context({"text.parse_math": False}):  # A label with a $ is not a formula.
        figure = new_figure(6, 5)
        task.draw(figure.subplots(), examples, predictions)
        write_bytes(os.path.join(directory, PICTURE_FILE), png(figure, bbox_inches="tight"))


def class_details(labels: Sequence[str], true: Any, predicted: Any) -> dict[str, Any]:
    """Returns precision, recall, F1 and support of each class.

    Args:
      labels: the classes, in the order of the columns of tables.
      true: class of each item, or for several classes, a table of truth values.
      predicted: predicted class of each item, in the same form.
    """
    from sklearn import metrics

    classes = labels if isinstance(true, list) else list(range(len(labels)))
    columns = metrics.precision_recall_fscore_support(
        true, predicted, labels=classes, zero_division=0
    )
    names = ("precision", "recall", "f1", "support")
    details = {}
    for label, values in zip(labels, zip(*columns, strict=True), strict=True):
        details[label] = {name: value.item() for name, value in zip(names, values, strict=True)}
    return details


def calibration_error(confidence: Sequence[float], is_right: Sequence[bool]) -> float:
    """Returns the expected calibration error over ten bins of equal width (Guo et al., 2017).

    Args:
      confidence: probability of each prediction.
      is_right: whether the prediction is right.

    Example:
      >>> calibration_error([0.9, 0.9, 0.55, 0.55], [True, True, True, False])
      0.075
    """
    bins = np.minimum((np.array(confidence) * 10).astype(int), 9)
    gap = np.array(is_right, float) - np.array(confidence)
    return float(sum(abs(gap[bins == b].sum()) for b in range(10)) / max(len(gap), 1))


def draw_confusion(axes, labels: Sequence[Any], true: Sequence[Any], predicted: Sequence[Any]):
    """Draws a confusion matrix on matplotlib axes; of many classes, those confused most.

    Args:
      axes: the axes.
      labels: the labels, in the order of rows and columns.
      true: label of each item.
      predicted: predicted label of each item.
    """
    from sklearn import metrics

    matrix = metrics.confusion_matrix(true, predicted, labels=labels)
    title = "Confusion matrix"
    if len(labels) > _MOST_DRAWN:
        title = f"The {_MOST_DRAWN} of {len(labels)} classes that are confused most"
        num_errors = matrix.sum(axis=0) + matrix.sum(axis=1) - 2 * np.diag(matrix)
        drawn = np.sort(np.argsort(-num_errors, kind="stable")[:_MOST_DRAWN])
        matrix = matrix[np.ix_(drawn, drawn)]
        labels = [labels[index] for index in drawn]
    axes.imshow(matrix, cmap="Blues")
    axes.set(xlabel="Predicted label", ylabel="True label", title=title)
    axes.set_xticks(range(len(labels)), labels, rotation="vertical")
    axes.set_yticks(range(len(labels)), labels)
    for (row, column), count in np.ndenumerate(matrix):
        color = "white" if count > matrix.max() / 2 else "black"
        axes.text(column, row, count, ha="center", va="center", color=color)
