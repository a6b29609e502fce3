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

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import SEVERAL_RUNS
from official.xlnet.data.examples import Example
from official.xlnet.extensions.several_runs.runs import Run, several_runs, value_of
from official.xlnet.training.finetuning import Start


@SEVERAL_RUNS.register("runs")
def finetune_repeatedly(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    num_runs: int,
    start: Start,
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
      start: what each run starts from.

    Returns:
      The metrics of the best run, and `runs`, `best_run`, `metric` (the name of the metric that is
      compared), and its `median`, `lowest`, `highest` and `standard_deviation` over runs.

    Raises:
      ConfigError: `output` holds something else than runs of this configuration; or see
        `run_finetuning`.
      DataError: see `run_finetuning`.
      PreemptedError: see `run_finetuning`.
    """
    with several_runs("runs", "repeated runs", config, (train, dev), output, start) as runs:
        finished: list[Run] = []
        for number in range(num_runs):
            own = copy.deepcopy(config)
            own.training.seed += number
            known = runs.finished[number] if number < len(runs.finished) else None
            finished.append(runs.result(known, os.path.join("runs", str(number)), own))
    metric = finished[0]["metric"]
    values = list(map(value_of, finished))
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
