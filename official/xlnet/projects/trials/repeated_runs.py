"""Fine-tuning with several random seeds, to see how much the metrics depend on them."""

from __future__ import annotations

import copy
import os
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.jobs.finetuning import finish_finetuning
from official.xlnet.jobs.finetuning_inputs import (
    FineTuningInputs,
    FineTuningOptions,
    Rows,
    read_inputs,
)
from official.xlnet.projects.trials.runs import Run, several_runs, value_of
from official.xlnet.projects.trials.runs_file import REPEATED_RUNS_FILE
from official.xlnet.runtime.host import host_state_kept


@host_state_kept()
def finetune_examples_repeatedly(
    config: XLNetConfig,
    train: Rows,
    dev: Rows | None,
    output: str,
    num_runs: int,
    options: FineTuningOptions,
) -> dict[str, Any]:
    """Reads the examples, and fine-tunes a model several times; see `finetune_repeatedly`."""
    inputs = read_inputs(config, train, dev, output, options)
    metrics = finetune_with_seeds(inputs, output, num_runs)
    finish_finetuning(output, metrics, inputs)
    return metrics | inputs.counts


def finetune_with_seeds(inputs: FineTuningInputs, output: str, num_runs: int) -> dict[str, Any]:
    """Fine-tunes a model several times and keeps the one with the best metric on dev.

    Run k uses the seed `training.seed` + k. Finished runs are not repeated and all count.

    Args:
      inputs: the examples and the configuration; unchanged.
      output: model directory of the best run.
      num_runs: least number of runs.

    Returns:
      See `finetune_repeatedly`.

    Raises:
      ConfigError: `output` holds something else than runs of this configuration; or see
        `run_finetuning`.
      DataError, PreemptedError: see `run_finetuning`.
    """
    data = inputs.train, inputs.dev
    with several_runs(
        REPEATED_RUNS_FILE, "repeated runs", inputs.config, data, output, inputs.start
    ) as runs:
        for index in range(max(num_runs, len(runs.finished))):
            folder = os.path.join("runs", str(index))
            if index < len(runs.finished):
                runs.clear(folder)
                continue
            config = copy.deepcopy(inputs.config)
            config.training.seed += index
            runs.run(config, data, folder, {})
    return _summary(runs.finished)


def _summary(runs: list[Run]) -> dict[str, Any]:
    """Returns the metrics of the best run, and statistics of the metric over all runs."""
    metric = runs[0]["metric"]
    best = int(np.argmax([value_of(run) for run in runs]))
    values = [run["metrics"][metric] for run in runs]
    defined = [value for value in values if value is not None]
    summary = dict(runs[best]["metrics"])
    summary["runs"] = len(runs)
    summary["best_run"] = best
    summary["metric"] = metric
    summary["median"] = float(np.median(defined)) if defined else None
    summary["lowest"] = min(defined, default=None)
    summary["highest"] = max(defined, default=None)
    summary["standard_deviation"] = float(np.std(defined, ddof=1)) if len(defined) > 1 else 0.0
    return summary
