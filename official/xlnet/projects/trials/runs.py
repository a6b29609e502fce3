"""Several fine-tuning runs under one directory, each of them once; it keeps the best model.

output/             the model directory of the best run so far
output/NAME.json    the configuration, and the finished runs with their metrics
output/FOLDER/…     logs and report of each run; its weights only until it is finished
"""

from __future__ import annotations

import contextlib
import glob
import json
import math
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

from official.xlnet.configs.experiment import CONFIG_FILE, XLNetConfig
from official.xlnet.data.examples import Example
from official.xlnet.errors import DivergedError, require_config
from official.xlnet.files.json_files import write_json
from official.xlnet.files.locks import only_writer
from official.xlnet.inference.task_prediction import task_of
from official.xlnet.modeling.ops.keras import global_policy, keras
from official.xlnet.projects.trials.runs_file import read_runs_file, saved_configuration
from official.xlnet.runtime.distribution import is_chief
from official.xlnet.runtime.progress import Progress
from official.xlnet.runtime.run_inputs import INPUTS_FILE, check_inputs
from official.xlnet.tasks.task import comparable
from official.xlnet.training.finetuning import Start, inputs_of, run_finetuning
from official.xlnet.training.finetuning_loop import RUN_DIR, metric_of

Run = dict[str, Any]
Data = tuple[Sequence[Example], Sequence[Example]]  # Training and dev examples.


class Runs:
    """Several fine-tuning runs of one command; see `several_runs`.

    Args:
      path: the JSON file of the finished runs.
      config: the configuration of the command.
      start: initial state of each run.
      may_diverge: whether a run without a finite loss is a result, the worst, and not an error.
      writes: whether this process writes files.

    Attributes:
      writes: whether this process writes files.
      finished: the finished runs, each with `metric`, `metrics` and `seconds`.
    """

    def __init__(
        self, path: str, config: XLNetConfig, start: Start, may_diverge: bool, writes: bool
    ):
        self._path = path
        self._config = config
        self._start = start
        self._may_diverge = may_diverge
        self.writes = writes
        self.finished: list[Run] = []

    def write(self) -> None:
        """Writes the finished runs."""
        if self.writes:
            write_json(self._path, {"config": _as_json(self._config), "runs": self.finished})

    def run(self, config: XLNetConfig, data: Data, folder: str, facts: Run) -> Run:
        """Fine-tunes a model, and returns the run, which is finished.

        The model of the best run of full length becomes the model of the directory.

        Args:
          config: the configuration of the run, which changes.
          data: its training and dev examples.
          folder: its folder in the directory.
          facts: what is stored with its result. With a `share` other than 1, the run has only
            that part of its length.
        """
        output = os.path.dirname(self._path)
        directory = os.path.join(output, folder)
        run = {**facts, **self._train(config, data, directory)}
        best_value = max(map(_value_at_full_length, self.finished), default=-math.inf)
        self.finished.append(run)
        if self.writes and _value_at_full_length(run) > best_value:
            _publish(directory, output)
        self.write()
        self.clear(folder)
        return run

    def clear(self, folder: str) -> None:
        """Removes the weights of a finished run, and the state that it would resume from.

        Args:
          folder: folder of the run in the directory.
        """
        if not self.writes:
            return
        directory = os.path.join(os.path.dirname(self._path), folder)
        shutil.rmtree(os.path.join(directory, RUN_DIR), ignore_errors=True)
        for name in ("ckpt-*", "checkpoint"):
            for path in glob.glob(os.path.join(glob.escape(directory), name)):
                os.remove(path)

    def _train(self, config: XLNetConfig, data: Data, directory: str) -> Run:
        with global_policy(None):  # `clear_session` of Keras 3 would clear the policy, too.
            keras.backend.clear_session()
        train, dev = data
        begin = time.monotonic()
        metric = None
        metrics: dict[str, Any] = {}
        try:
            metrics = run_finetuning(config, train, dev, directory, self._start)
            metric = metric_of(task_of(directory), metrics)
        except DivergedError as error:
            if not self._may_diverge:
                raise
            Progress(sys.stderr).log_line(str(error))
        seconds = round(time.monotonic() - begin)
        return {"metric": metric, "metrics": metrics, "seconds": seconds}


@contextlib.contextmanager
def several_runs(
    file_name: str,
    contents: str,
    config: XLNetConfig,
    data: Data,
    output: str,
    start: Start,
    may_diverge: bool = False,
) -> Iterator[Runs]:
    """Context manager that holds a directory for several runs, with those that are finished.

    Args:
      file_name: name of their JSON file.
      contents: what the directory holds, for messages.
      config: the configuration; unchanged.
      data: all examples of the command, whose checksums have to stay the same.
      output: the directory.
      start: initial state of each run.
      may_diverge: whether a run without a finite loss is a result, the worst, and not an error.

    Raises:
      ConfigError: the directory holds something else, runs with another configuration or runs on
        other data.
    """
    chief = is_chief(start.strategy)
    path = os.path.join(output, file_name)
    with only_writer(output, chief):
        runs = Runs(path, config, start, may_diverge, chief)
        if os.path.exists(path):
            begun_with = saved_configuration(path)
            require_config(
                _as_json(begun_with) == _as_json(config),
                output,
                "the configuration of its earlier runs",
                f"{', '.join(config.changes(begun_with))}; choose another directory",
            )
            runs.finished = read_runs_file(path).runs
        else:
            is_free = not os.path.exists(os.path.join(output, CONFIG_FILE))
            require_config(is_free, output, f"{contents} or nothing", "a model directory")
        train, dev = data
        inputs = inputs_of(train, dev, start.init_from)
        check_inputs(output, inputs, is_begun=bool(runs.finished), writes=chief)
        runs.write()
        yield runs


def value_of(run: Run) -> float:
    """The metric that runs are compared by, see `comparable`; -infinity if the run diverged."""
    metric = run["metric"]
    if metric is None:
        return -math.inf  # Below a run whose metric is undefined.
    return max(comparable(metric, run["metrics"][metric]), -sys.float_info.max)


def _value_at_full_length(run: Run) -> float:
    """`value_of` a run; -infinity if it has only a part of its length."""
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
