"""Evaluation of each checkpoint of a run as it comes, for `evaluate(…, follow=True)`."""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.checkpoints.checkpoint_files import recorded_steps
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.files import file_system
from official.xlnet.files.arguments import require_apart
from official.xlnet.files.urls import local_copy
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.reports import METRICS_FILE

_PAUSE_SECONDS = 10.0


def follow_run(
    models: Sequence[str], output: str | None, evaluate: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """Evaluates the checkpoints of a run until it ends; returns the metrics of the last one.

    Args:
      models: the model directory of the run.
      output: directory of the metrics for TensorBoard.
      evaluate: function of a model directory to its metrics.

    Raises:
      ConfigError: there are several models, or there is no output.
    """
    if len(models) != 1 or output is None:
        raise ConfigError("follow: expected one model, of a run, and output for its logs")
    (model,) = models
    require_apart("output", output, models)
    progress, metrics, last_step = Progress(sys.stderr), {"step": -1}, math.inf
    with tf.summary.create_file_writer(output).as_default():
        while metrics["step"] < last_step:
            # Before the checkpoints: a task writes its metrics after its checkpoints.
            has_ended = file_system.exists(os.path.join(model, METRICS_FILE))
            steps = recorded_steps(model)
            newest = max(steps, default=-1)
            if newest > metrics["step"]:
                try:
                    metrics, config = _metrics_of_newest(model, evaluate)
                except (DataError, OSError):
                    if recorded_steps(model) == steps:  # The run has not removed files meanwhile.
                        raise
                    continue
                last_step = math.inf if config.task.name else config.training.num_steps
                numbers = {name: x for name, x in metrics.items() if isinstance(x, int | float)}
                for name, value in numbers.items():
                    tf.summary.scalar(name, value, metrics["step"])
                tf.summary.flush()
                progress.log_line(
                    "  ".join(f"{name} {value:.6g}" for name, value in numbers.items())
                )
            elif has_ended:
                break
            else:
                progress.show(f"waiting for a checkpoint of {model} after step {newest}")
                time.sleep(_PAUSE_SECONDS)
    return metrics


def _metrics_of_newest(
    model: str, evaluate: Callable[[str], dict[str, Any]]
) -> tuple[dict[str, Any], XLNetConfig]:
    """Metrics of the newest checkpoint of a run, with its step, and the run's configuration."""
    with local_copy(model) as run_dir, tempfile.TemporaryDirectory(prefix="xlnet-") as alone:
        step = recorded_steps(run_dir)[-1]
        for name in os.listdir(run_dir):  # The run may write the next checkpoint at any time.
            source = os.path.join(os.path.abspath(run_dir), name)
            if os.path.isfile(source) and (not name.startswith("ckpt-") or f"-{step}." in name):
                os.symlink(source, os.path.join(alone, name))
        return {"step": step, **evaluate(alone)}, load_config(alone)
