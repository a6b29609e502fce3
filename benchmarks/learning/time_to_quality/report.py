"""The rows on file, and the tables and the picture of the document."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.harness.rows import add_row, key_of, read_rows
from benchmarks.learning.time_to_quality.runs import Run

CHART = "images/time_to_quality.png"
_KEY = ("text", "peer", "seed", "num_steps", "rate", "limit", "overrides")
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}
_COLOR = {"ours": "tab:blue", "hf": "tab:orange", "tfm": "tab:green"}


def has(path: str, run: Run) -> bool:
    """Whether a run is on file."""
    return key_of(_fields(run), _KEY) in [key_of(row, _KEY) for row in read_rows(path)]


def add(path: str, run: Run, result: dict[str, Any]) -> None:
    """Writes the row of a run."""
    add_row(path, {**_fields(run), **result}, _KEY)


def write(results: str, document: str) -> None:
    """Writes the table and the picture of the document."""
    rows = read_rows(results)
    if not rows:
        return
    fill_table(document, "time", table(rows))
    fill_table(document, "picture", f"![Held-out loss over wall time]({CHART})")
    draw(rows, os.path.join(os.path.dirname(document), CHART))


def table(rows: list[dict[str, Any]]) -> str:
    """A table of the runs of each text, seeds together, HF and tf-models-official at their best."""
    lines = [["text", "", "seeds", "steps", "wall time, s", "held-out loss"], ["---"] * 6]
    for text in dict.fromkeys(row["text"] for row in rows):
        of_text = [row for row in rows if row["text"] == text]
        unigram = of_text[0]["unigram_loss"]
        lines.append([text, "unigram baseline", "", "", "", f"{unigram:.3f}"])
        for runs in groups(of_text):
            lines.append([text, *_cells(runs)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def groups(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Runs that differ in the seed only; of a peer with several rates, those of the best rate."""
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(json.dumps([row[name] for name in _KEY if name != "seed"]), []).append(
            row
        )
    best: dict[str, list[dict[str, Any]]] = {}
    for key, runs in grouped.items():
        first = runs[0]
        name = key if first["peer"] == "ours" else f"{first['peer']} {first['limit']}"
        if name not in best or _mean(runs, "loss") < _mean(best[name], "loss"):
            best[name] = runs
    order = list(_TITLE)
    return sorted(
        best.values(), key=lambda runs: (order.index(runs[0]["peer"]), runs[0]["num_steps"])
    )


def draw(rows: list[dict[str, Any]], path: str) -> None:
    """Draws held-out loss over wall time, a panel a text, a thin line a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    texts = list(dict.fromkeys(row["text"] for row in rows))
    figure, panels = pyplot.subplots(
        1, len(texts), figsize=(6 * len(texts), 4.2), squeeze=False, sharey=True
    )
    for axes, text in zip(panels[0], texts, strict=True):
        of_text = [row for row in rows if row["text"] == text]
        named = set()
        for runs in groups(of_text):
            peer = runs[0]["peer"]
            for row in runs:
                seconds, _, losses = np.transpose(row["curve"])
                label = None if peer in named else _TITLE[peer]
                axes.plot(seconds, losses, marker=".", color=_COLOR[peer], alpha=0.7, label=label)
                named.add(peer)
        axes.axhline(
            of_text[0]["unigram_loss"], color="gray", linestyle="--", label="unigram baseline"
        )
        axes.set(title=text, xlabel="wall time from the start of the process, s")
        axes.set_xlim(left=0)
        axes.legend()
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    panels[0][0].set_ylabel("held-out loss, nats per target")
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)


def _cells(runs: list[dict[str, Any]]) -> list[str]:
    first = runs[0]
    title = _TITLE[first["peer"]]
    if first["peer"] != "ours":
        title += f", rate {first['rate']:g}"
    if first["overrides"]:
        title += ", " + " ".join(first["overrides"])
    spread = f" ± {np.std([row['loss'] for row in runs], ddof=1):.3f}" if len(runs) > 1 else ""
    return [
        title,
        str(len(runs)),
        f"{_mean(runs, 'steps'):.0f}",
        f"{_mean(runs, 'seconds'):.0f}",
        f"{_mean(runs, 'loss'):.3f}{spread}",
    ]


def _mean(runs: list[dict[str, Any]], name: str) -> float:
    return float(np.mean([row[name] for row in runs]))


def _fields(run: Run) -> dict[str, Any]:
    return {
        **{"text": run.text, "peer": run.peer, "seed": run.seed, "num_steps": run.steps},
        **{"rate": run.rate, "limit": run.seconds, "overrides": list(run.overrides)},
    }
