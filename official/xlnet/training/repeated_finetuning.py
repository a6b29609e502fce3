"""Fine-tuning repeated with several random seeds: the median over runs, and the best model.

output/             the model directory of the best run so far
output/runs.json    configuration and metrics of the finished runs
output/runs/K       logs and report of run K; its weights only until it is finished
"""

from __future__ import annotations

import copy
import dataclasses
import glob
import json
import os
import shutil
from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import tf_keras

from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import ConfigError
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.files.schema import conform
from official.xlnet.runtime.distribution import is_chief, prepare_devices
from official.xlnet.tasks.registry import task_class
from official.xlnet.training.finetuning import finetune
from official.xlnet.training.finetuning_callback import RUN_DIR, metric_of

RUNS_DIR = "runs"
RUNS_FILE = "runs.json"


def finetune_repeatedly(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    num_runs: int,
    *,
    init_from: str | None = None,
    vocab: str | None = None,
    strategy: str | tf.distribute.Strategy = "one_device",
    cpu_devices: int = 1,
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
      vocab: see `finetune`.
      strategy: see `finetune`.
      cpu_devices: see `finetune`.

    Returns:
      The metrics of the best run, and `runs`, `best_run`, `metric` (the name of the metric that is
      compared), and its `median`, `lowest`, `highest` and `standard_deviation` over runs.

    Raises:
      ConfigError: `output` holds something else than runs of this configuration; or see `finetune`.
      DataError: see `finetune`.
      PreemptedError: see `finetune`.
    """
    distribution = prepare_devices(config.training, strategy, cpu_devices)
    chief = is_chief(distribution)
    with only_writer(output, chief):
        finished = _read_finished(config, output)
        if chief:
            _write_finished(config, output, finished)
        for number in range(num_runs):
            directory = os.path.join(output, RUNS_DIR, str(number))
            if number >= len(finished):
                tf_keras.backend.clear_session()
                own = copy.deepcopy(config)
                own.training.seed += number
                metrics = finetune(
                    own,
                    train,
                    dev,
                    directory,
                    init_from=init_from,
                    vocab=vocab,
                    strategy=distribution,
                )
                task = task_class(own.task.name)(own, load_tokenizer(directory))
                metric = metric_of(task, metrics)
                is_best = all(metrics[metric] > other["metrics"][metric] for other in finished)
                finished.append({"metric": metric, "metrics": metrics})
                if chief:
                    if is_best:
                        _publish(directory, output)
                    _write_finished(config, output, finished)
            if chief:
                _remove_weights(directory)
        return _summary(finished[:num_runs])


@dataclasses.dataclass
class _Runs:
    """Schema of `runs.json`."""

    config: dict[str, Any]
    runs: list[dict[str, Any]]


def _read_finished(config: XLNetConfig, output: str) -> list[dict[str, Any]]:
    """The finished runs of a directory.

    Raises:
      ConfigError: the directory holds another model, or runs with another configuration.
    """
    path = os.path.join(output, RUNS_FILE)
    if not os.path.exists(path):
        if os.path.exists(os.path.join(output, CONFIG_FILE)):
            raise ConfigError(f"{output}: expected repeated runs or nothing, got a model directory")
        return []
    saved = conform(read_json(path), _Runs, path)
    if saved.config != _as_json(config):
        raise ConfigError(
            f"{output}: expected the configuration of its earlier runs, got another one; choose "
            "another directory"
        )
    return saved.runs


def _write_finished(config: XLNetConfig, output: str, finished: list[dict[str, Any]]) -> None:
    os.makedirs(output, exist_ok=True)
    write_json(os.path.join(output, RUNS_FILE), {"config": _as_json(config), "runs": finished})


def _as_json(config: XLNetConfig) -> Any:
    return json.loads(json.dumps(config.as_dict()))


def _publish(directory: str, output: str) -> None:
    """Makes the model of a run that of the output directory."""
    for old in glob.glob(os.path.join(glob.escape(output), "ckpt-*")):
        os.remove(old)
    for entry in os.scandir(directory):
        if entry.is_file():
            shutil.copy2(entry.path, output)


def _remove_weights(directory: str) -> None:
    shutil.rmtree(os.path.join(directory, RUN_DIR), ignore_errors=True)
    for name in ("ckpt-*", "checkpoint"):
        for path in glob.glob(os.path.join(glob.escape(directory), name)):
            os.remove(path)


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
