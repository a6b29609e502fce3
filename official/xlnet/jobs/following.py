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
from official.xlnet.errors import ConfigError, DataError, require_data
from official.xlnet.files import file_system
from official.xlnet.files.arguments import require_apart
from official.xlnet.files.urls import local_copy
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.reports import METRICS_FILE
from official.xlnet.training.run_end import RunEnd, read_end

_PAUSE_SECONDS = 10.0


def follow_run(
    models: Sequence[str], output: str | None, evaluate: Callable[[str], dict[str, Any]]
) -> dict[str, Any]:
    """Evaluates the checkpoints of a run until it ends; returns the metrics of the last one.

    A run has ended after its last step, or as `end.json` says. One that was preempted or has lost a
    worker is waited for, and so is one that was killed, as that is not known here.

    Args:
      models: the model directory of the run.
      output: directory of the metrics for TensorBoard.
      evaluate: function of a model directory to its metrics.

    Raises:
      ConfigError: there are several models, or there is no output.
      DataError: the run has ended without a checkpoint.
    """
    if len(models) != 1 or output is None:
        raise ConfigError("follow: expected one model, of a run, and output for its logs")
    (model,) = models
    require_apart("output", output, models)
    progress, metrics, last_step = Progress(sys.stderr), {"step": -1}, math.inf
    last_change = time.monotonic()
    with tf.summary.create_file_writer(output).as_default():
        while metrics["step"] < last_step:
            # Before the checkpoints: a task writes its metrics after its checkpoints.
            end = _end_of(model)
            steps = recorded_steps(model)
            newest = max(steps, default=-1)
            if newest > metrics["step"]:
                try:
                    metrics, config = _metrics_of_newest(model, evaluate)
                except (DataError, OSError):
                    if recorded_steps(model) == steps:  # The run has not removed files meanwhile.
                        raise
                    continue
                last_change = time.monotonic()
                last_step = math.inf if config.task.name else config.training.num_steps
                numbers = {name: x for name, x in metrics.items() if isinstance(x, int | float)}
                for name, value in numbers.items():
                    tf.summary.scalar(name, value, metrics["step"])
                tf.summary.flush()
                progress.log_line(
                    "  ".join(f"{name} {value:.6g}" for name, value in numbers.items())
                )
            elif end is not None and not end.is_resumed:
                progress.log_line(f"the run in {model} has ended: {_description(end)}")
                require_data(newest >= 0, model, "a checkpoint", f"a run without: {end.how}")
                break
            else:
                seconds = time.monotonic() - last_change
                progress.show(f"{_awaited(model, newest, end)}, {seconds:.0f} s")
                time.sleep(_PAUSE_SECONDS)
    return metrics


def _end_of(model: str) -> RunEnd | None:
    """Returns how a run has ended; None if that is not known.

    A task of a former version wrote its metrics, and no record of its end.
    """
    end = read_end(model)
    if end is None and file_system.exists(os.path.join(model, METRICS_FILE)):
        return RunEnd(max(recorded_steps(model), default=0), "completed")
    return end


def _description(end: RunEnd) -> str:
    message = f" ({end.message})" if end.message else ""
    return f"{end.how} at step {end.step}{message}"


def _awaited(model: str, newest: int, end: RunEnd | None) -> str:
    """Returns what the follower of a run waits for.

    Args:
      model: its model directory.
      newest: step of its newest checkpoint, or -1.
      end: how it has ended, so that it will be resumed; None if it goes on.
    """
    if end is not None:
        return f"waiting for the run in {model} to be resumed: {_description(end)}"
    if newest >= 0:
        return f"waiting for a checkpoint of {model} after step {newest}"
    if file_system.exists(model):
        return f"waiting for the first checkpoint of {model}"
    return f"waiting for a run in {model}, which does not exist yet"


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
