"""The baselines of a text task beside the result of a fine-tuned model."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from absl import logging

from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.configs.registry import BASELINES, TASKS
from official.xlnet.data.examples import Example
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.reports import METRICS_FILE
from official.xlnet.tasks.task import Task
from official.xlnet.training.finetuning_loop import metric_of


def add_baselines(
    model_dir: str, metrics: Mapping[str, Any], train: Sequence[Example], dev: Sequence[Example]
) -> dict[str, Any] | None:
    """Evaluates the baselines of a model's task, and shows them beside its result.

    They are added to `metrics.json` as `baselines`. No error here is raised, as the model is
    complete without them; it is logged as a warning.

    Args:
      model_dir: the directory of the fine-tuned model.
      metrics: its metrics on `dev`.
      train: the training examples.
      dev: the examples that the model was evaluated on.

    Returns:
      The first result of `BASELINES`; None for a task that has none, or after an error.
    """
    try:
        config = load_config(model_dir)
        task = TASKS[config.task.name](config, load_tokenizer(model_dir))
        found = (BASELINES[name](task, train, dev) for name in BASELINES.names())
        baselines = next(filter(None, found), None)
        Progress(sys.stderr).keep(_line(task, metrics, baselines))
        path = os.path.join(model_dir, METRICS_FILE)
        write_json(path, {**read_json(path), "baselines": baselines})
    except Exception as error:
        logging.warning("no baselines: %s: %s", type(error).__name__, error)
        return None
    return baselines


def _line(task: Task, metrics: Mapping[str, Any], baselines: dict[str, Any] | None) -> str:
    """The main metric of the model and of its baselines."""
    name = metric_of(task, dict(metrics))
    line = f"{name}: model {metrics[name]:.4f}"
    if baselines is None:
        return f"{line} (no bag of words to compare with in {task.config.task.name})"
    linear, majority = (baselines[key][name] for key in ("bag_of_words", "majority"))
    line += f", bag of words {linear:.4f}, majority class or mean {majority:.4f}"
    if metrics[name] < linear:
        line += "; the model is behind the bag of words"
    return line
