"""Table, picture and recipe of a search for the settings of fine-tuning."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.files.atomic import write_bytes
from official.xlnet.runtime.pictures import new_figure, png

_MODEL_KEYS = ("dropout", "activation_dropout", "dropatt", "mem_len")

Run = dict[str, Any]


def search_table(runs: Sequence[Run], best: int) -> str:
    """Markdown table of the candidates, with a column for each share of the length.

    Args:
      runs: the finished runs, as in `search.json`.
      best: number of the best candidate.
    """
    shares = sorted({run["share"] for run in runs}, reverse=True)
    head = ["candidate", "learning rate", "length", *(f"1/{share}" for share in shares)]
    rows = [head, ["---"] * len(head)]
    for candidate in sorted({run["candidate"] for run in runs}):
        own = {run["share"]: run for run in runs if run["candidate"] == candidate}
        share, run = min(own.items())
        name = f"{candidate} (best)" if candidate == best else str(candidate)
        values = [_value(own.get(share)) for share in shares]
        rows.append([name, f"{run['learning_rate']:.2g}", _length(run, share), *values])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _length(run: Run, share: int) -> str:
    """The full length of a candidate, of which `run` was 1/`share`."""
    if run["epochs"]:
        return f"{run['epochs'] * share:.3g} epochs"
    return f"{run['num_steps'] * share:,} steps"


def _value(run: Run | None) -> str:
    if run is None:
        return ""
    return f"{run['metrics'][run['metric']]:.4f}" if run["metric"] else "diverged"


def write_picture(path: str, runs: Sequence[Run]) -> None:
    """Plots the metric over the learning rate, a series for each share of the length, as PNG."""
    figure = new_figure(7, 4.5)
    axes = figure.subplots()
    for share in sorted({run["share"] for run in runs}, reverse=True):
        own = [run for run in runs if run["share"] == share and run["metric"]]
        axes.scatter(
            [run["learning_rate"] for run in own],
            [run["metrics"][run["metric"]] for run in own],
            s=160 / share + 20,
            alpha=0.7,
            label=f"1/{share} of the length",
        )
    metric = next((run["metric"] for run in runs if run["metric"]), "")
    axes.set(xscale="log", xlabel="learning rate", ylabel=f"{metric} on dev")
    axes.legend()
    write_bytes(path, png(figure, bbox_inches="tight"))


def write_recipe(path: str, config: XLNetConfig, run: Run) -> None:
    """Writes the settings of a run as a recipe for `xlnet finetune --config`.

    Args:
      path: the YAML file.
      config: the configuration that the run began with.
      run: the finished run.
    """
    task = config.task.as_dict()
    if not task["labels"]:
        del task["labels"]  # Those of the training data.
    tree = {
        "model": {
            key: value for key, value in config.model.as_dict().items() if key in _MODEL_KEYS
        },
        "training": config.training.as_dict(),
        "task": {k: list(v) if isinstance(v, tuple) else v for k, v in task.items()},
    }
    value = run["metrics"][run["metric"]]
    lines = [
        f"# The best settings of a search (xlnet finetune --search) for {config.task.name}.",
        "#",
        f"#   xlnet finetune --task={config.task.name} --config=recipe.yaml --init_from=MODEL \\",
        "#     --train=FILE --dev=FILE --output=DIR",
        "#",
        f"# Cost: {max(1, round(run['seconds'] / 60))} minutes where the search ran.",
        f"# Result on the dev set of the search: {run['metric']} {value:.4f}.",
        "",
        yaml.safe_dump(tree, sort_keys=False),
    ]
    write_bytes(path, "\n".join(lines).encode())
