"""Several fine-tuning runs under one directory, each of them once; it keeps the best model.

output/             the model directory of the best run so far
output/NAME.json    the configuration, and the finished runs with their metrics
output/FOLDER/…     logs and report of each run; its weights only until it is finished
"""

from __future__ import annotations

import contextlib
import copy
import glob
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.configs.registry import SEVERAL_RUNS
from official.xlnet.data.examples import Example
from official.xlnet.errors import DivergedError, require_config
from official.xlnet.files.json_files import read_json, write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.files.schema import conform
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.modeling.ops.keras import global_policy, keras
from official.xlnet.runtime.distribution import is_chief
from official.xlnet.runtime.progress import Progress
from official.xlnet.runtime.run_inputs import INPUTS_FILE, check_inputs
from official.xlnet.tasks.task import comparable
from official.xlnet.training.finetuning import RunsFile, Start, inputs_of, run_finetuning
from official.xlnet.training.finetuning_loop import RUN_DIR, metric_of

Run = dict[str, Any]


class Runs:
    """Several fine-tuning runs of one command; see `several_runs`.

    Args:
      path: the JSON file of the finished runs.
      config: the configuration of the command.
      data: training and dev examples.
      start: what each run starts from.
      may_diverge: whether a run without a finite loss is a result, the worst, and not an error.
      writes: whether this process writes files.

    Attributes:
      data: training and dev examples of the next run.
      finished: the finished runs, each with `metric`, `metrics` and `seconds`.
    """

    def __init__(
        self,
        path: str,
        config: XLNetConfig,
        data: tuple[Sequence[Example], Sequence[Example]],
        start: Start,
        may_diverge: bool,
        writes: bool,
    ):
        self._path, self._config, self.data, self._start = path, config, data, start
        self._may_diverge, self.writes = may_diverge, writes
        self.finished: list[Run] = []

    def write(self) -> None:
        """Writes the finished runs."""
        if self.writes:
            write_json(self._path, {"config": _as_json(self._config), "runs": self.finished})

    def result(self, finished: Run | None, folder: str, config: XLNetConfig, **facts: Any) -> Run:
        """Returns the result of a run, after training unless it is finished.

        The model of the best run of full length becomes the model of the directory.

        Args:
          finished: the run, if it is finished.
          folder: its folder in the directory.
          config: its configuration, which changes.
          **facts: what is stored with its result. With a `share` other than 1, the run has only
            that part of its length.
        """
        output = os.path.dirname(self._path)
        directory = os.path.join(output, folder)
        run = finished
        if run is None:
            run = {**facts, **self._train(config, directory)}
            best = max(map(_whole_value, self.finished), default=-math.inf)
            self.finished.append(run)
            if self.writes and _whole_value(run) > best:
                _publish(directory, output)
            self.write()
        if self.writes:
            _remove_weights(directory)
        return run

    def _train(self, config: XLNetConfig, directory: str) -> Run:
        with global_policy(None):  # Which Keras 3 would clear, too.
            keras.backend.clear_session()
        start = time.monotonic()
        metric, metrics = None, {}
        try:
            metrics = run_finetuning(config, *self.data, directory, self._start)
            metric = metric_of(task_of(directory), metrics)
        except DivergedError as error:
            if not self._may_diverge:
                raise
            Progress(sys.stderr).log_line(str(error))
        seconds = round(time.monotonic() - start)
        return {"metric": metric, "metrics": metrics, "seconds": seconds}


@contextlib.contextmanager
def several_runs(
    name: str,
    kind: str,
    config: XLNetConfig,
    data: tuple[Sequence[Example], Sequence[Example]],
    output: str,
    start: Start,
    may_diverge: bool = False,
) -> Iterator[Runs]:
    """Context manager that holds a directory for several runs, with those that are finished.

    Args:
      name: name of their JSON file, without its suffix.
      kind: what the directory holds, for messages.
      config: the configuration; unchanged.
      data: training and dev examples.
      output: the directory.
      start: what each run starts from.
      may_diverge: whether a run without a finite loss is a result, the worst, and not an error.

    Raises:
      ConfigError: the directory holds something else, runs with another configuration or runs on
        other data.
    """
    chief = is_chief(start.strategy)
    path = os.path.join(output, f"{name}.json")
    with only_writer(output, chief):
        runs = Runs(path, config, data, start, may_diverge, chief)
        if os.path.exists(path):
            saved = conform(read_json(path), RunsFile, path)
            begun_with = XLNetConfig.from_dict(saved.config, path)
            require_config(
                _as_json(begun_with) == _as_json(config),
                output,
                "the configuration of its earlier runs",
                f"{', '.join(config.changes(begun_with))}; choose another directory",
            )
            runs.finished = saved.runs
        else:
            is_free = not os.path.exists(os.path.join(output, CONFIG_FILE))
            require_config(is_free, output, f"{kind} or nothing", "a model directory")
        inputs = inputs_of(*data, start.init_from)
        check_inputs(output, inputs, bool(runs.finished), chief)
        runs.write()
        yield runs


def value_of(run: Run) -> float:
    """The metric that runs are compared by, see `comparable`; -infinity if the run diverged."""
    if run["metric"] is None:
        return -math.inf  # Below a run whose metric is undefined.
    return max(comparable(run["metric"], run["metrics"][run["metric"]]), -sys.float_info.max)


def _whole_value(run: Run) -> float:
    return value_of(run) if run.get("share", 1) == 1 else -math.inf


def _as_json(config: XLNetConfig) -> Any:
    return json.loads(json.dumps(config.as_dict()))


def _publish(directory: str, output: str) -> None:
    """Copies the model of a run to the output directory."""
    for old in glob.glob(os.path.join(glob.escape(output), "ckpt-*")):
        os.remove(old)
    for entry in os.scandir(directory):
        if entry.is_file() and entry.name != INPUTS_FILE:  # The checksums of all runs stay.
            shutil.copy2(entry.path, output)


def _remove_weights(directory: str) -> None:
    """Removes the weights of a finished run, and the state that it resumes from."""
    shutil.rmtree(os.path.join(directory, RUN_DIR), ignore_errors=True)
    for name in ("ckpt-*", "checkpoint"):
        for path in glob.glob(os.path.join(glob.escape(directory), name)):
            os.remove(path)


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
    examples. The same call resumes an interrupted run; finished runs are not repeated and all
    count, so `num_runs` can be increased later.

    Args:
      config: the experiment configuration; unchanged.
      train: training examples.
      dev: examples for evaluation and checkpoint selection.
      output: model directory of the best run.
      num_runs: least number of runs.
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
        for number in range(max(num_runs, len(runs.finished))):
            seeded = copy.deepcopy(config)
            seeded.training.seed += number
            known = runs.finished[number] if number < len(runs.finished) else None
            finished.append(runs.result(known, os.path.join("runs", str(number)), seeded))
    metric = finished[0]["metric"]
    best = int(np.argmax(list(map(value_of, finished))))
    every: list[Any] = [run["metrics"][metric] for run in finished]
    values = [value for value in every if value is not None]
    return {
        **finished[best]["metrics"],
        "runs": len(finished),
        "best_run": best,
        "metric": metric,
        "median": float(np.median(values)) if values else None,
        "lowest": min(values, default=None),
        "highest": max(values, default=None),
        "standard_deviation": float(np.std(values, ddof=1)) if len(values) > 1 else 0.0,
    }
