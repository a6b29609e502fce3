"""Search for the learning rate and length of a fine-tuning run, by successive halving.

As in Jamieson and Talwalkar (2016), all candidates are trained for a ninth of their length, the
best third of them for a third, and the best ninth for all of it. Every run has a complete schedule,
with the rate decayed to its end. Candidate 0 is the configuration itself. It is always among the
last, so the result is no worse on dev than that of a run without a search.

output/              the model directory of the best run, and
output/recipe.yaml   its settings, for `xlnet finetune --config`
output/search.json   configuration and metrics of the finished runs
output/search.png    the metric over the learning rate
output/search/C-S    logs and report of candidate C for 1/S of its length
"""

from __future__ import annotations

import copy
import math
import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import tf_keras

from official.xlnet.analysis.search_report import search_table, write_picture, write_recipe
from official.xlnet.checkpoints.any_format import load_tokenizer
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import TASKS
from official.xlnet.data.examples import Example
from official.xlnet.data.run_inputs import check_inputs
from official.xlnet.errors import DataError, DivergedError
from official.xlnet.files.locks import only_writer
from official.xlnet.runtime.distribution import is_chief, prepare_devices
from official.xlnet.runtime.progress import Progress
from official.xlnet.training.finetuning import RunOptions, finetune, inputs_of
from official.xlnet.training.finetuning_loop import metric_of
from official.xlnet.training.several_runs.finetuning_runs import (
    SEARCH_FILE,
    publish,
    read_finished,
    remove_weights,
    write_finished,
)

SEARCH_DIR = "search"
_KEPT = 3  # One candidate in so many goes on, with so many times the length.
_MOST_ROUNDS = 3
_RATE_FACTOR, _LENGTH_FACTOR = 10.0, 2.0  # Candidates are up to so many times more, or less.

Run = dict[str, Any]


def search_settings(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    num_candidates: int,
    init_from: str | None = None,
    **options: Any,
) -> dict[str, Any]:
    """Fine-tunes with several learning rates and lengths, and keeps the best model and its recipe.

    The same call resumes an interrupted search; finished runs are not repeated, so
    `num_candidates` can be increased later. A run whose loss is not finite is the worst one.

    Args:
      config: the experiment configuration, the first candidate; unchanged.
      train: training examples.
      dev: examples for evaluation and selection.
      output: model directory of the best run.
      num_candidates: number of candidates.
      init_from: see `finetune`.
      **options: see `finetune`.

    Returns:
      The metrics of the best run, its `learning_rate`, and `candidates`, `runs`, `metric` (the
      name of the metric that is compared) and `recipe` (the path of the recipe).

    Raises:
      ConfigError: `output` holds something else than a search from this configuration; or see
        `finetune`.
      DataError: no run has a finite loss; or see `finetune`.
      PreemptedError: see `finetune`.
    """
    start = RunOptions(**options)
    distribution = prepare_devices(config.training, start.strategy, start.cpu_devices)
    own_options = {**options, "strategy": distribution}
    chief = is_chief(distribution)

    def train_candidate(own: XLNetConfig, directory: str) -> tuple[str, dict[str, float]]:
        tf_keras.backend.clear_session()
        metrics = finetune(own, train, dev, directory, init_from, **own_options)
        task = TASKS[own.task.name](own, load_tokenizer(directory))
        return metric_of(task, metrics), metrics

    with only_writer(output, chief):
        runs = _Runs(config, output, train_candidate, chief)
        check_inputs(output, inputs_of(train, dev, init_from), bool(runs.finished), chief)
        finalists = successive_halving(num_candidates, runs.value)
        best = max(finalists, key=lambda candidate: runs.value(candidate, 1))
        run = runs.run(best, 1)
        if run["metric"] is None:
            raise DataError(f"{output}: expected a run with a finite loss, got none")
        recipe = os.path.join(output, "recipe.yaml")
        if chief:
            write_recipe(recipe, candidate_config(config, best), run)
            write_picture(os.path.join(output, "search.png"), runs.finished)
            Progress(sys.stderr).keep(search_table(runs.finished, best))
        return {
            **run["metrics"],
            "learning_rate": run["learning_rate"],
            "candidates": num_candidates,
            "runs": len(runs.finished),
            "metric": run["metric"],
            "recipe": recipe,
        }


def successive_halving(num_candidates: int, value: Callable[[int, int], float]) -> list[int]:
    """Selects candidates by ever longer runs.

    Args:
      num_candidates: number of candidates.
      value: the result of a candidate after 1/S of its length, for the candidate's number and S;
        higher is better.

    Returns:
      Those that were run at full length: the best ones, and candidate 0.

    Example:
      >>> successive_halving(9, lambda candidate, share: candidate / share)
      [8, 0]
    """
    rounds = 1
    while rounds < _MOST_ROUNDS and num_candidates >= _KEPT**rounds:
        rounds += 1
    left = list(range(num_candidates))
    for number in range(rounds):
        share = _KEPT ** (rounds - 1 - number)
        values = {candidate: value(candidate, share) for candidate in left}
        if share > 1:
            left.sort(key=lambda candidate: -values[candidate])
            left = left[: math.ceil(len(left) / _KEPT)]
            if 0 not in left:
                left.append(0)
    return left


def candidate_config(config: XLNetConfig, candidate: int, share: int = 1) -> XLNetConfig:
    """The configuration of a candidate for 1/`share` of its length.

    Learning rates and lengths of a Halton sequence, spread evenly on a logarithmic scale around
    those of `config`; candidate 0 has its own.
    """
    from scipy.stats import qmc

    own = copy.deepcopy(config)
    rate_factor = length_factor = 1.0
    if candidate:
        point = qmc.Halton(2, scramble=False).random(candidate + 1)[candidate]
        rate_factor = _RATE_FACTOR ** (2 * point[0] - 1)
        length_factor = _LENGTH_FACTOR ** (2 * point[1] - 1)
        own.training.learning_rate = float(f"{own.training.learning_rate * rate_factor:.2g}")
    length_factor /= share
    training = own.training
    own.task.epochs = float(f"{own.task.epochs * length_factor:.3g}")
    training.num_steps = max(1, round(training.num_steps * length_factor))
    training.warmup_steps = min(training.num_steps, round(training.warmup_steps * length_factor))
    training.checkpoint_steps = max(1, round(training.checkpoint_steps * length_factor))
    return own


class _Runs:
    """Runs of candidates, each of them once; those finished earlier are read from the file."""

    def __init__(self, config: XLNetConfig, output: str, train_candidate: Callable, chief: bool):
        self._config, self._output, self._chief = config, output, chief
        self._train_candidate = train_candidate
        self.finished = read_finished(config, output, SEARCH_FILE)
        if chief:
            write_finished(config, output, SEARCH_FILE, self.finished)

    def value(self, candidate: int, share: int) -> float:
        """The metric that candidates are compared by; minus infinity if the run diverged."""
        run = self.run(candidate, share)
        return -math.inf if run["metric"] is None else run["metrics"][run["metric"]]

    def run(self, candidate: int, share: int) -> Run:
        """The finished run of a candidate, after training it if necessary."""
        directory = os.path.join(self._output, SEARCH_DIR, f"{candidate}-{share}")
        for run in self.finished:
            if (run["candidate"], run["share"]) == (candidate, share):
                if self._chief:
                    remove_weights(directory)
                return run
        own = candidate_config(self._config, candidate, share)
        settings = {
            "candidate": candidate,
            "share": share,
            "learning_rate": own.training.learning_rate,
            "epochs": own.task.epochs,
            "num_steps": own.training.num_steps,
        }
        start = time.monotonic()
        metric: str | None = None
        metrics: dict[str, float] = {}
        try:
            metric, metrics = self._train_candidate(own, directory)
        except DivergedError as error:
            Progress(sys.stderr).keep(str(error))
        seconds = round(time.monotonic() - start)
        self._finish(settings | {"metric": metric, "metrics": metrics, "seconds": seconds})
        return self.finished[-1]

    def _finish(self, run: Run) -> None:
        """Publishes the model of a run if it is the best of full length so far."""
        directory = os.path.join(self._output, SEARCH_DIR, f"{run['candidate']}-{run['share']}")
        metric = run["metric"]
        others = [r for r in self.finished if r["share"] == 1 and r["metric"]]
        is_best = run["share"] == 1 and metric is not None
        is_best &= all(run["metrics"][metric] > other["metrics"][metric] for other in others)
        self.finished.append(run)
        if self._chief:
            if is_best:
                publish(directory, self._output)
            write_finished(self._config, self._output, SEARCH_FILE, self.finished)
            remove_weights(directory)
            shown = "not finite" if metric is None else f"{metric} {run['metrics'][metric]:.4f}"
            Progress(sys.stderr).keep(
                f"search: candidate {run['candidate']}, 1/{run['share']} of its length, "
                f"learning rate {run['learning_rate']:.2g}: {shown}"
            )
