"""Evaluation reports: predictions.jsonl, metrics.json and a plot."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from official.xlnet.data.examples import Example
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import write_json
from official.xlnet.tasks.task import Prediction, Task

METRICS_FILE = "metrics.json"
PREDICTIONS_FILE = "predictions.jsonl"
PICTURE_FILE = "evaluation.png"


def write_report(
    directory: str,
    task: Task,
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    metrics: dict,
) -> None:
    """Writes predictions, metrics and a plot of an evaluation. Each file is written atomically.

    Args:
      directory: output directory; created if missing.
      task: the task, which draws the plot.
      examples: the evaluated examples, with labels.
      predictions: their predictions.
      metrics: the metrics.
    """
    import matplotlib

    from official.xlnet.runtime.pictures import new_figure, png

    os.makedirs(directory, exist_ok=True)
    write_json(os.path.join(directory, METRICS_FILE), metrics)
    write_json_lines(os.path.join(directory, PREDICTIONS_FILE), predictions)
    with matplotlib.rc_context({"text.parse_math": False}):  # A label with a $ is not a formula.
        figure = new_figure(6, 5)
        task.draw(figure.subplots(), examples, predictions)
        write_bytes(os.path.join(directory, PICTURE_FILE), png(figure, bbox_inches="tight"))


def draw_confusion(axes, labels: Sequence[Any], true: Sequence[Any], predicted: Sequence[Any]):
    """Draws a confusion matrix on matplotlib axes.

    Args:
      axes: the axes.
      labels: the labels, in the order of rows and columns.
      true: label of each item.
      predicted: predicted label of each item.
    """
    from sklearn import metrics

    matrix = metrics.confusion_matrix(true, predicted, labels=labels)
    display = metrics.ConfusionMatrixDisplay(matrix, display_labels=labels)
    display.plot(ax=axes, cmap="Blues", colorbar=False, xticks_rotation="vertical")
    axes.set_title("Confusion matrix")
