"""Evaluation reports: predictions.jsonl, metrics.json and a plot."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from official.xlnet.data.examples import Example
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
    os.makedirs(directory, exist_ok=True)
    write_json(os.path.join(directory, METRICS_FILE), metrics)
    path = os.path.join(directory, PREDICTIONS_FILE)
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        file.writelines(json.dumps(p, ensure_ascii=False) + "\n" for p in predictions)
    os.replace(path + ".tmp", path)
    _draw(os.path.join(directory, PICTURE_FILE), task, examples, predictions)


def write_json(path: str, tree) -> None:
    """Writes a JSON file atomically, by renaming a temporary file."""
    with open(path + ".tmp", "w", encoding="utf-8") as file:
        json.dump(tree, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(path + ".tmp", path)


def _draw(path, task, examples, predictions):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 5))
    task.draw(axes, examples, predictions)
    figure.savefig(path + ".tmp", format="png", dpi=120, bbox_inches="tight")
    plt.close(figure)
    os.replace(path + ".tmp", path)
