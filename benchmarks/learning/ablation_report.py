"""Tables of the ablation study.

A difference is significant if it exceeds two standard errors over seeds. Differences are paired by
seed, as runs with the same seed share targets and the initial values of common weights.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.learning.ablation_rows import ROWS
from benchmarks.learning.common import markdown_table, mean_and_spread

_COMPARED = (
    ("xlnet_k6", "dae_transformer_xl", "span", "permutation vs. denoising, both with memory"),
    ("xlnet_k6", "dae_equal_compute", "span", "the same at equal compute"),
    ("xlnet_k6", "bert", "span", "permutation vs. BERT"),
    ("xlnet_k6", "no_memory", "heldout", "memory vs. none, the model's own targets"),
    ("xlnet_k6", "no_memory", "span", "memory vs. none, spans"),
    ("xlnet_k6", "xlnet_k7", "span", "K = 6 vs. K = 7"),
    ("xlnet_k6", "no_span", "span", "span targets vs. single tokens"),
    ("xlnet_k6", "no_bidirectional", "span", "bidirectional vs. forward text"),
    ("xlnet_k6", "next_sentence", "span", "without vs. with next-sentence prediction"),
)
Results = dict[str, list[dict[str, Any]]]


def write(results: Results, document: str, table: str | None = None) -> None:
    """Writes the tables of a Markdown document.

    Args:
      results: finished runs by row.
      document: path of the Markdown file.
      table: if given, only this table is written, with the differences.
    """
    if table:
        fill_table(document, table, _differences(results))
        return
    fill_table(document, "rows", _rows(results))
    fill_table(document, "differences", _differences(results))


def metric(run: dict[str, Any], name: str) -> float:
    """Returns a metric of a run: `span`, `token`, `first`, `later`, `heldout` or `accuracy`."""
    if name == "heldout":
        return run["heldout_loss"]
    if name == "accuracy":
        return run.get("finetuned", np.nan)
    return run["span_losses"][name]


def milliseconds_per_step(runs: list[dict[str, Any]]) -> str:
    """Median over the runs whose time is known, or an empty cell."""
    known = [run["seconds_per_step"] for run in runs if run["seconds_per_step"] is not None]
    return f"{1000 * np.median(known):.0f}" if known else ""


def difference(results: Results, one: str, other: str, name: str) -> np.ndarray:
    """Returns the metric of `other` minus that of `one`, for each seed that both have.

    Args:
      results: finished runs by row.
      one: name of a row.
      other: name of another row.
      name: name of the metric.
    """
    by_seed = [{run["seed"]: metric(run, name) for run in results[row]} for row in (one, other)]
    return np.array(
        [by_seed[1][seed] - by_seed[0][seed] for seed in by_seed[0] if seed in by_seed[1]]
    )


def _rows(results: Results) -> str:
    has_accuracy = any("finetuned" in run for runs in results.values() for run in runs)
    titles = ["", "seeds", "span", "token", "first token", "later tokens", "own held-out loss"]
    titles += ["ms per step"] + (["accuracy after fine-tuning"] if has_accuracy else [])
    lines = [titles]
    for row, title in ROWS.items():
        runs = results[row]
        if not runs:
            continue
        cells = [title, str(len(runs))]
        cells += [
            mean_and_spread([metric(run, n) for run in runs]) for n in ("span", "token", "first")
        ]
        cells += [mean_and_spread([metric(run, n) for run in runs]) for n in ("later", "heldout")]
        cells.append(milliseconds_per_step(runs))
        if has_accuracy:
            cells.append(mean_and_spread([metric(run, "accuracy") for run in runs]))
        lines.append(cells)
    return markdown_table(lines)


def _differences(results: Results) -> str:
    lines = [["", "nats", "standard error", "significant"]]
    for one, other, name, title in _COMPARED:
        values = difference(results, one, other, name)
        if len(values) < 2:
            continue
        mean, error = values.mean(), values.std(ddof=1) / np.sqrt(len(values))
        verdict = "no" if abs(mean) <= 2 * error else ("better" if mean > 0 else "worse")
        lines.append([title, f"{mean:+.3f}", f"{error:.3f}", verdict])
    return markdown_table(lines)
