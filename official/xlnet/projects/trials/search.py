"""Search for the learning rate and length of a fine-tuning run, by successive halving.

As in Jamieson and Talwalkar (2016), all candidates are trained for a ninth of their length, the
best third of them for a third, and the best ninth for all of it. Every run has a complete schedule,
with the rate decayed to its end. Candidate 0 is the configuration itself. It is always among the
last, so the result on dev is at least as good as without a search.

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
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.jobs.finetuning import finish_finetuning
from official.xlnet.jobs.finetuning_inputs import (
    FineTuningInputs,
    FineTuningOptions,
    Rows,
    read_inputs,
)
from official.xlnet.projects.trials.runs import Run, Runs, several_runs, value_of
from official.xlnet.projects.trials.runs_file import SEARCH_FILE
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.runtime.pictures import new_figure, png
from official.xlnet.runtime.progress import Progress

_HALVING_FACTOR = 3  # One candidate in three is kept per round, and runs three times as long.
_MAX_ROUNDS = 3
_MODEL_KEYS = ("dropout", "activation_dropout", "dropatt", "mem_len")  # In a recipe.
# Candidates have up to ten times the learning rate, or a tenth, and twice the length, or half.
_RATE_FACTOR = 10.0
_LENGTH_FACTOR = 2.0


@host_state_kept()
def search_settings_on_examples(
    config: XLNetConfig,
    train: Rows,
    dev: Rows | None,
    output: str,
    num_candidates: int,
    options: FineTuningOptions,
) -> dict[str, Any]:
    """Reads the examples, and compares learning rates and lengths; see `search_settings`."""
    inputs = read_inputs(config, train, dev, output, options)
    metrics = finetune_candidates(inputs, output, num_candidates)
    finish_finetuning(output, metrics, inputs)
    return metrics | inputs.counts


def finetune_candidates(
    inputs: FineTuningInputs, output: str, num_candidates: int
) -> dict[str, Any]:
    """Fine-tunes with several learning rates and lengths, and keeps the best model and its recipe.

    Args:
      inputs: the examples, and the configuration, which is the first candidate; unchanged.
      output: model directory of the best run.
      num_candidates: number of candidates.

    Returns:
      See `search_settings`.

    Raises:
      ConfigError: `output` holds something else than a search from this configuration; or see
        `run_finetuning`.
      DataError: no run has a finite loss; or see `run_finetuning`.
      PreemptedError: see `run_finetuning`.
    """
    data = inputs.train, inputs.dev
    with several_runs(
        SEARCH_FILE, "a search", inputs.config, data, output, inputs.start, may_diverge=True
    ) as runs:

        def value(candidate: int, share: int) -> float:
            return value_of(_run_of_candidate(runs, inputs, candidate, share))

        successive_halving(num_candidates, value)
        # Also runs of an earlier search with more or fewer candidates are compared.
        full_runs = [run for run in runs.finished if run["share"] == 1]
        best = max(full_runs, key=value_of)
        if best["metric"] is None:
            raise DataError(f"{output}: expected a run with a finite loss, got none")
        recipe = os.path.join(output, "recipe.yaml")
        if runs.writes:
            _write_recipe(recipe, candidate_config(inputs.config, best["candidate"]), best)
            _write_picture(os.path.join(output, "search.png"), runs.finished)
    result = dict(best["metrics"])
    result["learning_rate"] = best["learning_rate"]
    result["candidates"] = num_candidates
    result["runs"] = len(runs.finished)
    result["metric"] = best["metric"]
    result["recipe"] = recipe
    return result


def _run_of_candidate(runs: Runs, inputs: FineTuningInputs, candidate: int, share: int) -> Run:
    """Returns the run of a candidate for 1/`share` of its length, after training if it is new."""
    folder = os.path.join("search", f"{candidate}-{share}")
    for run in runs.finished:
        if run["candidate"] == candidate and run["share"] == share:
            runs.clear(folder)
            return run
    config = candidate_config(inputs.config, candidate, share)
    facts = {
        "candidate": candidate,
        "share": share,
        "learning_rate": config.training.learning_rate,
        "epochs": config.task.epochs,
        "num_steps": config.training.num_steps,
    }
    run = runs.run(config, (inputs.train, inputs.dev), folder, facts)
    if runs.writes:
        metric = run["metric"]
        result = f"{metric} {metric_text(_metric_value(run))}" if metric else "not finite"
        Progress(sys.stderr).log_line(
            f"search: candidate {candidate}, 1/{share} of its length, "
            f"learning rate {run['learning_rate']:.2g}: {result}"
        )
    return run


def successive_halving(num_candidates: int, value: Callable[[int, int], float]) -> list[int]:
    """Selects candidates by increasingly long runs.

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
    num_rounds = sum(num_candidates >= _HALVING_FACTOR**k for k in range(_MAX_ROUNDS))
    candidates = list(range(num_candidates))
    for later_rounds in reversed(range(num_rounds)):
        share = _HALVING_FACTOR**later_rounds
        values = {candidate: value(candidate, share) for candidate in candidates}
        if later_rounds == 0:
            break
        candidates.sort(key=lambda candidate: -values[candidate])
        candidates = candidates[: math.ceil(len(candidates) / _HALVING_FACTOR)]
        if 0 not in candidates:
            candidates.append(0)
    return candidates


def candidate_config(config: XLNetConfig, candidate: int, share: int = 1) -> XLNetConfig:
    """Returns the configuration of a candidate for 1/`share` of its length.

    Learning rates and lengths come from a Halton sequence, spread evenly on a logarithmic scale
    around the values in `config`; candidate 0 has exactly these.
    """
    from scipy.stats import qmc

    candidate_settings = copy.deepcopy(config)
    training = candidate_settings.training
    length_factor = 1.0
    if candidate:
        point = qmc.Halton(2, scramble=False).random(candidate + 1)[candidate]
        rate_factor = _RATE_FACTOR ** (2 * point[0] - 1)
        length_factor = _LENGTH_FACTOR ** (2 * point[1] - 1)
        training.learning_rate = float(f"{training.learning_rate * rate_factor:.2g}")
    length_factor /= share
    epochs = candidate_settings.task.epochs * length_factor
    candidate_settings.task.epochs = float(f"{epochs:.3g}")
    training.num_steps = max(1, round(training.num_steps * length_factor))
    training.warmup_steps = min(training.num_steps, round(training.warmup_steps * length_factor))
    training.checkpoint_steps = max(1, round(training.checkpoint_steps * length_factor))
    return candidate_settings


def _metric_value(run: Run) -> Any:
    return run["metrics"].get(run["metric"])


def _write_picture(path: str, runs: Sequence[Run]) -> None:
    """Plots the metric over the learning rate, a series for each share of the length, as PNG."""
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for share in sorted({run["share"] for run in runs}, reverse=True):
        finished = []
        for run in runs:
            if run["share"] == share and _metric_value(run) is not None:
                finished.append(run)
        axes.scatter(
            [run["learning_rate"] for run in finished],
            [_metric_value(run) for run in finished],
            s=160 / share + 20,
            alpha=0.7,
            label=f"1/{share} of the length",
        )
    metric = next((run["metric"] for run in runs if run["metric"]), "")
    axes.set(xscale="log", xlabel="learning rate", ylabel=f"{metric} on dev")
    axes.legend()
    write_bytes(path, png(figure, bbox_inches="tight"))


def _write_recipe(path: str, config: XLNetConfig, run: Run) -> None:
    """Writes the settings of a run as a recipe for `xlnet finetune --config`.

    Args:
      path: the YAML file.
      config: the configuration that the run began with.
      run: the finished run.
    """
    model = config.model.as_dict()
    task: dict[str, Any] = {}
    for key, value in config.task.as_dict().items():
        task[key] = list(value) if isinstance(value, tuple) else value
    if not task["labels"]:
        del task["labels"]  # They come from the training data.
    settings = {
        "model": {key: value for key, value in model.items() if key in _MODEL_KEYS},
        "training": config.training.as_dict(),
        "task": task,
    }
    minutes = max(1, round(run["seconds"] / 60))
    result = f"{run['metric']} {metric_text(_metric_value(run))}"
    lines = [
        f"# The best settings of a search (xlnet search_settings) for {config.task.name}.",
        "#",
        f"#   xlnet finetune --task={config.task.name} --config=recipe.yaml --init_from=MODEL \\",
        "#     --train=FILE --dev=FILE --output=DIR",
        "#",
        f"# Cost: {minutes} minutes where the search ran.",
        f"# Result on the dev set of the search: {result}.",
        "",
        yaml.safe_dump(settings, sort_keys=False),
    ]
    write_bytes(path, "\n".join(lines).encode())
