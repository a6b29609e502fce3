"""Evaluates a model: held-out loss and perplexity, or task metrics.

A pre-trained model is evaluated on a data set of `xlnet prepare`. The loss is in nats per target;
unigram_loss is the loss of a unigram baseline. A fine-tuned model is evaluated on labelled data of
its task; with --output, predictions, metrics and a plot are written as well.

--follow is a job of its own beside a run: it evaluates each checkpoint as it comes, writes the
metrics to --output for TensorBoard, and ends when the run has taken its last step.

Example:
  xlnet evaluate --model=runs/model --data=runs/data
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from typing import Any

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.commands import (
    MAX_LOST_ROWS,
    PRODUCTS_FLAG,
    REQUIRED,
    boolean,
    choice,
    flag_table,
    integer,
    repeated,
    string,
)
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.data.reading import say_counts
from official.xlnet.errors import ConfigError, DataError
from official.xlnet.files import file_system
from official.xlnet.files.arguments import require_apart
from official.xlnet.files.staging import local_copy, on_local_disk
from official.xlnet.runtime.progress import Progress

_PAUSE_SECONDS = 10.0

FLAGS = flag_table(
    repeated(
        "model",
        default=REQUIRED,
        text="Model directory. Repeat it to evaluate an ensemble of fine-tuned models.",
    ),
    string(
        "data",
        default=REQUIRED,
        text="Data set of `xlnet prepare`, or labelled data of the model's task.",
    ),
    choice("split", "heldout", ["heldout", "train"], "Split of the data set."),
    integer(
        "mem_len",
        default=None,
        text="Memory length in tokens, for pre-trained models; default: as in training. May be "
        "longer.",
    ),
    string("output", None, "Output directory for predictions, metrics and plots of a task."),
    boolean(
        "follow",
        default=False,
        text="Evaluate each new checkpoint of a run until the run is finished; --output gets logs "
        "for TensorBoard.",
    ),
    MAX_LOST_ROWS,
    PRODUCTS_FLAG,
)


def run() -> dict[str, Any]:
    """Returns `loss`, `unigram_loss`, `perplexity` and `targets`, or the metrics of the task."""
    return _follow() if FLAGS.follow else _once()


@on_local_disk(FLAGS, reads=["model", "data"], writes_directory=["output"])
def _once() -> dict[str, Any]:
    from official.xlnet.api.prediction import evaluate
    from official.xlnet.modeling.kernels.product_type import products_in

    with products_in(FLAGS.products):
        found = evaluate(
            FLAGS.model, FLAGS.data, FLAGS.split, FLAGS.mem_len, FLAGS.output, FLAGS.max_lost
        )
    if "examples" in found:
        say_counts(FLAGS.data, found)
    return found


@on_local_disk(FLAGS, reads=["data"], writes_directory=["output"])
def _follow() -> dict[str, Any]:
    """Evaluates the checkpoints of a run as they come; returns the metrics of the last one."""
    import tensorflow as tf

    from official.xlnet.checkpoints.checkpoint_files import recorded_steps
    from official.xlnet.tasks.reports import METRICS_FILE

    if len(FLAGS.model) != 1 or FLAGS.output is None:
        raise ConfigError("--follow: expected one --model, of a run, and --output for its logs")
    (model,) = FLAGS.model
    require_apart("--output", FLAGS.output, FLAGS.model)
    progress, metrics, last_step = Progress(sys.stderr), {"step": -1}, math.inf
    with tf.summary.create_file_writer(FLAGS.output).as_default():
        while metrics["step"] < last_step:
            # Before the checkpoints: a task writes its metrics after its checkpoints.
            has_ended = file_system.exists(os.path.join(model, METRICS_FILE))
            newest = max(recorded_steps(model), default=-1)
            if newest > metrics["step"]:
                try:
                    metrics, config = _metrics_of_newest(model)
                except (DataError, OSError):
                    if newest in recorded_steps(model):  # The run has not removed it meanwhile.
                        raise
                    continue
                last_step = math.inf if config.task.name else config.training.num_steps
                numbers = {name: x for name, x in metrics.items() if isinstance(x, int | float)}
                for name, value in numbers.items():
                    tf.summary.scalar(name, value, metrics["step"])
                tf.summary.flush()
                progress.keep("  ".join(f"{name} {value:.6g}" for name, value in numbers.items()))
            elif has_ended:
                break
            else:
                progress.show(f"waiting for a checkpoint of {model} after step {newest}")
                time.sleep(_PAUSE_SECONDS)
    return metrics


def _metrics_of_newest(model: str) -> tuple[dict[str, Any], XLNetConfig]:
    """Metrics of the newest checkpoint of a run, with its step, and the run's configuration."""
    from official.xlnet.api.prediction import evaluate
    from official.xlnet.checkpoints.checkpoint_files import recorded_steps
    from official.xlnet.modeling.kernels.product_type import products_in

    with local_copy(model) as run_dir, tempfile.TemporaryDirectory(prefix="xlnet-") as alone:
        step = recorded_steps(run_dir)[-1]
        for name in os.listdir(run_dir):  # The run may write the next checkpoint at any time.
            own = os.path.join(os.path.abspath(run_dir), name)
            if os.path.isfile(own) and (not name.startswith("ckpt-") or f"-{step}." in name):
                os.symlink(own, os.path.join(alone, name))
        with products_in(FLAGS.products):
            found = evaluate(alone, FLAGS.data, FLAGS.split, FLAGS.mem_len, None, FLAGS.max_lost)
        return {"step": step, **found}, load_config(alone)
