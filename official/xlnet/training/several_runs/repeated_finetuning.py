"""Fine-tuning repeated with several random seeds: the median over runs, and the best model.

output/             the model directory of the best run so far
output/runs.json    configuration and metrics of the finished runs
output/runs/K       logs and report of run K; its weights only until it is finished
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import tf_keras

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.data.run_inputs import check_inputs
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.distribution import is_chief, prepare_devices
from official.xlnet.training.finetuning import RunOptions, finetune, inputs_of
from official.xlnet.training.finetuning_loop import metric_of
from official.xlnet.training.several_runs.finetuning_runs import (
    RUNS_FILE,
    publish,
    read_finished,
    remove_weights,
    write_finished,
)

RUNS_DIR = "runs"


def finetune_repeatedly(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    num_runs: int,
    init_from: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Fine-tunes a model several times and keeps the one with the best metric on `dev`.

    Run k uses the seed `training.seed` + k, for the weights of the head, dropout and the order of
    examples. The same call resumes an interrupted run; finished runs are not repeated, so
    `num_runs` can be increased later.

    Args:
      config: the experiment configuration; unchanged.
      train: training examples.
      dev: examples for evaluation and checkpoint selection.
      output: model directory of the best run.
      num_runs: number of runs.
      init_from: see `finetune`.
      **options: see `finetune`.

    Returns:
      The metrics of the best run, and `runs`, `best_run`, `metric` (the name of the metric that is
      compared), and its `median`, `lowest`, `highest` and `standard_deviation` over runs.

    Raises:
      ConfigError: `output` holds something else than runs of this configuration; or see `finetune`.
      DataError: see `finetune`.
      PreemptedError: see `finetune`.
    """
    start = RunOptions(**options)
    distribution = prepare_devices(config.training, start.strategy, start.cpu_devices)
    own_options = {**options, "strategy": distribution}
    chief = is_chief(distribution)
    with only_writer(output, chief):
        finished = read_finished(config, output, RUNS_FILE)
        check_inputs(output, inputs_of(train, dev, init_from), bool(finished), chief)
        if chief:
            write_finished(config, output, RUNS_FILE, finished)
        for number in range(num_runs):
            directory = os.path.join(output, RUNS_DIR, str(number))
            if number >= len(finished):
                tf_keras.backend.clear_session()
                own = copy.deepcopy(config)
                own.training.seed += number
                metrics = finetune(own, train, dev, directory, init_from, **own_options)
                task = TASKS[own.task.name](own, load_tokenizer(directory))
                metric = metric_of(task, metrics)
                is_best = all(metrics[metric] > other["metrics"][metric] for other in finished)
                finished.append({"metric": metric, "metrics": metrics})
                if chief:
                    if is_best:
                        publish(directory, output)
                    write_finished(config, output, RUNS_FILE, finished)
            if chief:
                remove_weights(directory)
        return _summary(finished[:num_runs])


def _summary(finished: list[dict[str, Any]]) -> dict[str, Any]:
    metric = finished[0]["metric"]
    values = [run["metrics"][metric] for run in finished]
    best = int(np.argmax(values))
    return {
        **finished[best]["metrics"],
        "runs": len(finished),
        "best_run": best,
        "metric": metric,
        "median": float(np.median(values)),
        "lowest": min(values),
        "highest": max(values),
        "standard_deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
    }
