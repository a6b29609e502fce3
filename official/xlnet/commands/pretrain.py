"""Pre-trains a model on a data set of `xlnet prepare`.

Running the same command again resumes an interrupted run.

Example:
  xlnet pretrain --config=configs/tiny.yaml --data=runs/data --model_dir=runs/model
"""

from __future__ import annotations

from typing import Any

from official.xlnet.commands import (
    DEVICES,
    REQUIRED,
    SET,
    comma_list,
    config,
    flag_table,
    integer,
    number,
    string,
)
from official.xlnet.files.staging import on_local_disk

FLAGS = flag_table(
    config(REQUIRED),
    comma_list(
        "data",
        REQUIRED,
        "Data set of `xlnet prepare`; or several, separated by commas, each with its share of a "
        "batch: a:3,b:1. The first is evaluated.",
    ),
    string("model_dir", REQUIRED, "Output model directory."),
    integer(
        "steps",
        default=None,
        text="Stop at this step; default: training.num_steps, over which the learning rate is "
        "scheduled.",
        least=1,
    ),
    number("minutes", None, "Stop after this time, in minutes.", 0, 10_000_000),
    string("init_from", None, "Model directory to initialize the weights from."),
    DEVICES,
    SET,
)


@on_local_disk(FLAGS, reads=["config", "data", "init_from"], resumes=["model_dir"])
def run() -> dict[str, Any]:
    """Runs pre-training; returns `step`, `loss` (nats per target) and `tokens_per_second`."""
    from official.xlnet.training.pretraining import pretrain

    return pretrain(
        FLAGS.config,
        FLAGS.data,
        FLAGS.model_dir,
        FLAGS.set,
        steps=FLAGS.steps,
        minutes=FLAGS.minutes,
        init_from=FLAGS.init_from,
        strategy=FLAGS.strategy,
        cpu_devices=FLAGS.cpu_devices,
        cluster_timeout=FLAGS.cluster_timeout,
    )
