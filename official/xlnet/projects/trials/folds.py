"""Cross-validation: a fine-tuning run for each fold, beside a bag of words on the same folds."""

from __future__ import annotations

import copy
import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.errors import require_config, require_data
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.jobs.baselines import baselines_of
from official.xlnet.jobs.finetuning_inputs import (
    FineTuningInputs,
    FineTuningOptions,
    Rows,
    read_inputs,
)
from official.xlnet.jobs.held_out import strata
from official.xlnet.projects.trials.runs import Run, several_runs
from official.xlnet.projects.trials.runs_file import FOLDS_FILE
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.tasks.task import complete_task


@host_state_kept()
def cross_validate_examples(
    config: XLNetConfig,
    train: Rows,
    output: str,
    num_folds: int,
    options: FineTuningOptions,
) -> dict[str, Any]:
    """Reads the examples, and fine-tunes a model on each fold; see `cross_validate`."""
    inputs = read_inputs(config, train, None, output, options, needs_dev=False)
    return finetune_folds(inputs, output, num_folds) | inputs.counts


def finetune_folds(inputs: FineTuningInputs, output: str, num_folds: int) -> dict[str, Any]:
    """Fine-tunes a model on each fold's training part, and evaluates it on the rest.

    The last checkpoint is evaluated: nothing is selected, or stopped early, by the held-out part.
    Each fold is also trained on `inputs.further`, which is never held out.

    Args:
      inputs: the examples and the configuration; unchanged.
      output: model directory of the fold with the best metric.
      num_folds: number of folds.

    Returns:
      See `cross_validate`.

    Raises:
      ConfigError, DataError, PreemptedError: see `run_finetuning`.
    """
    config = _configuration(inputs)
    start = dataclasses.replace(inputs.start, selects=False)
    data = inputs.train, inputs.further
    with several_runs(FOLDS_FILE, "folds", config, data, output, start) as runs:
        parts = folds(inputs.train, num_folds, config.training.seed)
        for index, (train_part, held_out) in enumerate(parts):
            fold_data = [*train_part, *inputs.further], held_out
            folder = os.path.join("folds", str(index))
            if index < len(runs.finished):
                run = runs.finished[index]
                earlier = run.get("folds", num_folds)
                expected = f"--folds={earlier}, as before"
                require_config(earlier == num_folds, output, expected, num_folds)
                runs.clear(folder)
            else:
                run = runs.run(copy.deepcopy(config), fold_data, folder, {"folds": num_folds})
            if "bag_of_words" not in run:
                run["bag_of_words"] = _bag_of_words(output, run["metric"], *fold_data)
                runs.write()
    return _summary(runs.finished)


def _configuration(inputs: FineTuningInputs) -> XLNetConfig:
    """Returns the configuration of each run: without early stopping, with the labels of all."""
    config = copy.deepcopy(inputs.config)
    complete = copy.deepcopy(inputs.config)
    complete_task(TASKS[config.task.name], complete, [*inputs.train, *inputs.further])
    config.task.labels = complete.task.labels  # Of all: a rare class is in no training part.
    config.task.patience = 0
    return config


def _summary(runs: Sequence[Run]) -> dict[str, Any]:
    """Returns the metric over folds, and its difference from a bag-of-words baseline."""
    metric = runs[0]["metric"]
    scores = [run["metrics"][metric] for run in runs]
    defined = np.array([score for score in scores if score is not None])
    summary = {
        "folds": len(runs),
        "metric": metric,
        "mean": float(defined.mean()) if len(defined) else None,
        "standard_deviation": float(defined.std(ddof=1)) if len(defined) > 1 else None,
        "values": scores,
    }
    if len(defined) < len(scores):
        summary["mean_is_over"] = f"{len(defined)} of {len(scores)} folds"
    bags_of_words = [run["bag_of_words"] for run in runs]
    if None in scores or None in bags_of_words:
        return summary
    summary["bag_of_words"] = float(np.mean(bags_of_words))
    summary.update(paired_test(defined - bags_of_words))
    return summary


def paired_test(differences: np.ndarray) -> dict[str, float]:
    """Returns the mean `difference` of two models over folds, and its `p_value`.

    The p-value is computed by the corrected resampled t-test of Nadeau and Bengio (2003), as the
    training parts of folds overlap.

    Args:
      differences: float [K], one for each of K folds.
    """
    from scipy import stats

    num_folds = len(differences)
    # Variance of the mean: 1/K + (size of the test part) / (size of the training part).
    factor = 1 / num_folds + 1 / (num_folds - 1)
    scale = np.sqrt(factor * differences.var(ddof=1))
    mean = float(differences.mean())
    if not scale:
        return {"difference": mean, "p_value": 0.0 if mean else 1.0}
    p_value = 2 * stats.t.sf(abs(mean) / scale, num_folds - 1)
    return {"difference": mean, "p_value": float(p_value)}


def folds(
    examples: Sequence[Example], num_folds: int, seed: int
) -> Iterator[tuple[list[Example], list[Example]]]:
    """Yields the training and held-out examples of each fold of a cross-validation.

    Folds keep the groups of `held_out` together, and each fold has its share of every class.

    Args:
      examples: all labelled examples.
      num_folds: number of folds, at least 2.
      seed: random seed of the partition.

    Raises:
      DataError: there are fewer groups than folds.
    """
    groups: list[list[int]] = []
    for stratum in strata(examples, seed):
        groups += stratum
    expected = f"at most {len(groups)}, the number of groups"
    require_data(len(groups) >= num_folds, "folds", expected, num_folds)
    for fold in range(num_folds):
        held_out_indices: set[int] = set()
        for group in groups[fold::num_folds]:
            held_out_indices.update(group)
        train: list[Any] = []
        held_out: list[Any] = []
        for index, example in enumerate(examples):
            part = held_out if index in held_out_indices else train
            part.append(example)
        yield train, held_out


def _bag_of_words(
    model_dir: str, metric: str, train: Sequence[Example], dev: Sequence[Example]
) -> float | None:
    """Returns the metric of a bag of words; None for a task without this baseline."""
    baselines = baselines_of(task_of(model_dir), train, dev)
    return baselines["bag_of_words"].get(metric) if baselines else None
