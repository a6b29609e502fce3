"""Simple models on the dev set of a fine-tuned model, and the line that compares it with them."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from official.xlnet.configs.registry import BASELINES
from official.xlnet.data.examples import Example
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.reports import METRICS_FILE
from official.xlnet.tasks.task import Task, comparable
from official.xlnet.training.finetuning_loop import metric_of


def baselines_of(
    task: Task, train: Sequence[Example], dev: Sequence[Example]
) -> dict[str, Any] | None:
    """Returns the first result of the registry `BASELINES`; None if none suits the task.

    Args:
      task: the task, with complete labels.
      train: the training examples.
      dev: the examples to evaluate on.
    """
    for name in BASELINES.names():
        result = BASELINES[name](task, train, dev)
        if result:
            return result
    return None


def add_baselines(
    model_dir: str, metrics: Mapping[str, Any], train: Sequence[Example], dev: Sequence[Example]
) -> dict[str, Any] | None:
    """Evaluates the baselines of a model's task, and shows them with its result.

    They are added to `metrics.json` as `baselines`. No error here is raised, as the model is
    complete without them; it is logged as a warning.

    Args:
      model_dir: the directory of the fine-tuned model.
      metrics: its metrics on `dev`.
      train: the training examples.
      dev: the examples that the model was evaluated on.

    Returns:
      The metrics of `Task.baselines`, or else of `baselines_of`; None for a task without
      baselines, or after an error.
    """
    try:
        task = task_of(model_dir)
        baselines = task.baselines(dev) or baselines_of(task, train, dev)
        Progress(sys.stderr).log_line(comparison(task, metrics, baselines))
        path = os.path.join(model_dir, METRICS_FILE)
        report = read_json(path)
        report["baselines"] = baselines
        write_json(path, report)
    except Exception as error:
        logging.warning("no baselines: %s: %s", type(error).__name__, error)
        return None
    return baselines


def comparison(task: Task, metrics: Mapping[str, Any], baselines: dict[str, Any] | None) -> str:
    """Returns a line with the main metric of the model and of its baselines.

    Args:
      task: the task of the model.
      metrics: metrics of the model.
      baselines: {name of a baseline: its metrics}; None for a task without baselines.
    """
    metric = metric_of(task, dict(metrics))
    line = f"{metric}{task.metric_note}: model {_value_text(metric, metrics)}"
    if baselines is None:
        return f"{line} (no bag of words to compare with in {task.config.task.name})"
    titles = {
        "run": "run that it reranks",
        "bag_of_words": "bag of words",
        "majority": task.majority_name,
    }
    names = [name for name in titles if name in baselines]
    if not names:
        return line
    for name in names:
        line += f", {titles[name]} {_value_text(metric, baselines[name])}"
    first_baseline = baselines[names[0]]
    model_value = round(comparable(metric, metrics[metric]), 4)
    baseline_value = round(comparable(metric, first_baseline[metric]), 4)
    if model_value < baseline_value:
        line += f"; the model is behind the {titles[names[0]]}"
    return line


def _value_text(metric: str, metrics: Mapping[str, Any]) -> str:
    return metric_text(metrics[metric], metrics.get(f"{metric}_is_over"))
