"""Cross-validation: a fine-tuning run for each fold, beside a bag of words on the same folds."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import BASELINES, SEVERAL_RUNS, TASKS
from official.xlnet.data.examples import Example
from official.xlnet.errors import require_config
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.jobs.held_out import folds
from official.xlnet.projects.trials.runs import Run, several_runs
from official.xlnet.training.finetuning import Start


@SEVERAL_RUNS.register("folds")
def cross_validate(
    config: XLNetConfig,
    train: Sequence[Example],
    further: Sequence[Example],
    output: str,
    number: int,
    start: Start,
) -> dict[str, Any]:
    """Fine-tunes a model on each fold's training part, and evaluates it on the rest.

    The last checkpoint is evaluated: nothing is selected, or stopped early, by the held-out part.
    The difference from the bag of words is tested by the corrected resampled t-test of Nadeau and
    Bengio (2003), as the training parts of folds overlap.

    Args:
      config: the experiment configuration; unchanged.
      train: the examples that are held out in turn.
      further: examples that every fold is trained on.
      output: model directory of the fold with the best metric.
      number: number of folds.
      start: what each run starts from.

    Returns:
      `folds`, `metric` (the name of the metric), its `mean`, `standard_deviation` and `values`
      over folds; for a task with a bag of words, its `bag_of_words` mean, the mean `difference` and
      the two-sided `p_value`.

    Raises:
      ConfigError, DataError, PreemptedError: see `run_finetuning`.
    """
    finished: list[Run] = []
    config = copy.deepcopy(config)
    complete = copy.deepcopy(config)
    TASKS[config.task.name].complete_settings(complete, [*train, *further])
    config.task.labels = complete.task.labels  # Of all: a rare class is in no training part.
    config.task.patience, start = 0, dataclasses.replace(start, selects=False)
    with several_runs("folds", "folds", config, (train, further), output, start) as runs:
        for k, (part, held_out) in enumerate(folds(train, number, config.training.seed)):
            run = runs.finished[k] if k < len(runs.finished) else None
            earlier = run.get("folds", number) if run else number
            require_config(earlier == number, output, f"--folds={earlier}, as before", number)
            runs.data = data = [*part, *further], held_out
            folder = os.path.join("folds", str(k))
            finished.append(runs.result(run, folder, copy.deepcopy(config), folds=number))
            if "bag_of_words" not in finished[-1]:
                finished[-1]["bag_of_words"] = _bag_of_words(output, finished[-1]["metric"], *data)
                runs.write()
    metric = finished[0]["metric"]
    scores = [run["metrics"][metric] for run in finished]
    values = np.array([value for value in scores if value is not None])
    result = {
        "folds": number,
        "metric": metric,
        "mean": float(values.mean()) if len(values) else None,
        "standard_deviation": float(values.std(ddof=1)) if len(values) > 1 else None,
        "values": scores,
    }
    linear = [run["bag_of_words"] for run in finished]
    if None in (*linear, *scores):
        return result
    return {**result, "bag_of_words": float(np.mean(linear)), **paired_test(values - linear)}


def paired_test(differences: np.ndarray) -> dict[str, float]:
    """Returns the mean `difference` of two models over folds, and its `p_value`.

    Args:
      differences: float [K], one for each of K folds.
    """
    from scipy import stats

    number = len(differences)
    # Of the mean: 1/K + (size of the test part) / (size of the training part).
    scale = np.sqrt((1 / number + 1 / (number - 1)) * differences.var(ddof=1))
    mean = float(differences.mean())
    p_value = 2 * stats.t.sf(abs(mean) / scale, number - 1) if scale else float(not mean)
    return {"difference": mean, "p_value": float(p_value)}


def _bag_of_words(
    model_dir: str, metric: str, train: Sequence[Example], dev: Sequence[Example]
) -> float | None:
    task = task_of(model_dir)
    baselines = [BASELINES[name](task, train, dev) for name in BASELINES.names()]
    results = next(filter(None, baselines), None)
    return results["bag_of_words"].get(metric) if results else None
