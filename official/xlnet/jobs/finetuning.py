"""Fine-tuning from a path of a model and plain examples, with the baselines of its task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import finetuning_configuration
from official.xlnet.data.examples import Example
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.jobs.baselines import add_baselines
from official.xlnet.jobs.finetuning_inputs import FineTuningInputs
from official.xlnet.runtime.distribution import is_chief
from official.xlnet.runtime.pages import TaskRun, write_pages
from official.xlnet.training.finetuning_loop import metric_of


def finish_finetuning(output: str, metrics: dict[str, Any], inputs: FineTuningInputs) -> None:
    """Adds the baselines of a fine-tuned model to its metrics, and writes its page.

    Args:
      output: the model directory.
      metrics: the metrics of the model, which get the key `baselines`.
      inputs: the inputs that it was fine-tuned on.
    """
    if is_chief(inputs.start.strategy):
        metrics["baselines"] = add_baselines(output, metrics, inputs.train, inputs.dev)
        write_pages("task", output, lambda: _ended_run(output, metrics, inputs.dev))


def _ended_run(output: str, metrics: Mapping[str, Any], dev: Sequence[Example]) -> TaskRun:
    task = task_of(output)
    return TaskRun(
        directory=output,
        task=task,
        metric=metric_of(task, dict(metrics)),
        examples=dev,
        models=[output],
    )


def task_configuration(
    task: str | None, path: str | None, overrides: Sequence[str], init_from: str | None
) -> XLNetConfig:
    """Builds the configuration of a fine-tuning run; see `finetuning_configuration`."""
    return finetuning_configuration(task, path, overrides, init_from, load_config)
