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
from official.xlnet.configs.registry import SEVERAL_RUNS
from official.xlnet.data.examples import Example
from official.xlnet.errors import DataError
from official.xlnet.files.atomic import write_bytes
from official.xlnet.projects.trials.runs import Run, several_runs, value_of
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.runtime.pictures import new_figure, png
from official.xlnet.runtime.progress import Progress
from official.xlnet.training.finetuning import Start

_KEPT = 3  # One candidate in so many goes on, with so many times the length.
_MOST_ROUNDS = 3
_MODEL_KEYS = ("dropout", "activation_dropout", "dropatt", "mem_len")  # In a recipe.
_RATE_FACTOR, _LENGTH_FACTOR = 10.0, 2.0  # Candidates are up to so many times more, or less.


@SEVERAL_RUNS.register("search")
def search_settings(
    config: XLNetConfig,
    train: Sequence[Example],
    dev: Sequence[Example],
    output: str,
    num_candidates: int,
    start: Start,
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
      start: what each run starts from.

    Returns:
      The metrics of the best run, its `learning_rate`, and `candidates`, `runs`, `metric` (the
      name of the metric that is compared) and `recipe` (the path of the recipe).

    Raises:
      ConfigError: `output` holds something else than a search from this configuration; or see
        `finetune`.
      DataError: no run has a finite loss; or see `run_finetuning`.
      PreemptedError: see `run_finetuning`.
    """
    with several_runs("search", "a search", config, (train, dev), output, start, True) as runs:

        def run_of(candidate: int, share: int) -> Run:
            key = {"candidate": candidate, "share": share}
            known = next((run for run in runs.finished if key.items() <= run.items()), None)
            settings = candidate_config(config, candidate, share)
            varied = {
                "learning_rate": settings.training.learning_rate,
                "epochs": settings.task.epochs,
                "num_steps": settings.training.num_steps,
            }
            folder = os.path.join("search", f"{candidate}-{share}")
            run = runs.result(known, folder, settings, **key, **varied)
            if known is None and runs.writes:
                metric = run["metric"]
                value = f"{metric} {metric_text(_value(run))}" if metric else "not finite"
                Progress(sys.stderr).log_line(
                    f"search: candidate {candidate}, 1/{share} of its length, "
                    f"learning rate {run['learning_rate']:.2g}: {value}"
                )
            return run

        successive_halving(num_candidates, lambda *which: value_of(run_of(*which)))
        # Of all runs, those of an earlier search with more or fewer candidates among them.
        run = max((run for run in runs.finished if run["share"] == 1), key=value_of)
        if run["metric"] is None:
            raise DataError(f"{output}: expected a run with a finite loss, got none")
        recipe = os.path.join(output, "recipe.yaml")
        if runs.writes:
            _write_recipe(recipe, candidate_config(config, run["candidate"]), run)
            _write_picture(os.path.join(output, "search.png"), runs.finished)
        return {
            **run["metrics"],
            "learning_rate": run["learning_rate"],
            "candidates": num_candidates,
            "runs": len(runs.finished),
            "metric": run["metric"],
            "recipe": recipe,
        }


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
    rounds = sum(num_candidates >= _KEPT**number for number in range(_MOST_ROUNDS))
    left = list(range(num_candidates))
    for number in range(rounds):
        share = _KEPT ** (rounds - 1 - number)
        values = {candidate: value(candidate, share) for candidate in left}
        if share > 1:
            best_first = sorted(left, key=lambda candidate: -values[candidate])
            best = best_first[: math.ceil(len(left) / _KEPT)]
            left = best if 0 in best else [*best, 0]
    return left


def candidate_config(config: XLNetConfig, candidate: int, share: int = 1) -> XLNetConfig:
    """The configuration of a candidate for 1/`share` of its length.

    Learning rates and lengths of a Halton sequence, spread evenly on a logarithmic scale around
    the values in `config`; candidate 0 has exactly these.
    """
    from scipy.stats import qmc

    settings = copy.deepcopy(config)
    training, length_factor = settings.training, 1.0
    if candidate:
        point = qmc.Halton(2, scramble=False).random(candidate + 1)[candidate]
        rate_factor = _RATE_FACTOR ** (2 * point[0] - 1)
        length_factor = _LENGTH_FACTOR ** (2 * point[1] - 1)
        training.learning_rate = float(f"{training.learning_rate * rate_factor:.2g}")
    length_factor /= share
    settings.task.epochs = float(f"{settings.task.epochs * length_factor:.3g}")
    training.num_steps = max(1, round(training.num_steps * length_factor))
    training.warmup_steps = min(training.num_steps, round(training.warmup_steps * length_factor))
    training.checkpoint_steps = max(1, round(training.checkpoint_steps * length_factor))
    return settings


def _value(run: Run) -> Any:
    return run["metrics"].get(run["metric"])


def _write_picture(path: str, runs: Sequence[Run]) -> None:
    """Plots the metric over the learning rate, a series for each share of the length, as PNG."""
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for share in sorted({run["share"] for run in runs}, reverse=True):
        finished = [run for run in runs if run["share"] == share and _value(run) is not None]
        axes.scatter(
            [run["learning_rate"] for run in finished],
            [_value(run) for run in finished],
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
    task = config.task.as_dict()
    if not task["labels"]:
        del task["labels"]  # They come from the training data.
    tree = {
        "model": {
            key: value for key, value in config.model.as_dict().items() if key in _MODEL_KEYS
        },
        "training": config.training.as_dict(),
        "task": {k: list(v) if isinstance(v, tuple) else v for k, v in task.items()},
    }
    lines = [
        f"# The best settings of a search (xlnet finetune --search) for {config.task.name}.",
        "#",
        f"#   xlnet finetune --task={config.task.name} --config=recipe.yaml --init_from=MODEL \\",
        "#     --train=FILE --dev=FILE --output=DIR",
        "#",
        f"# Cost: {max(1, round(run['seconds'] / 60))} minutes where the search ran.",
        f"# Result on the dev set of the search: {run['metric']} {metric_text(_value(run))}.",
        "",
        yaml.safe_dump(tree, sort_keys=False),
    ]
    write_bytes(path, "\n".join(lines).encode())
