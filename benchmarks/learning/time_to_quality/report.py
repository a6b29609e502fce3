"""The rows on file, the table of the document, and the runs that are shown."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.harness.rows import add_row, key_of, read_rows
from benchmarks.learning.time_to_quality.runs import Run

_KEY = ("text", "peer", "seed", "num_steps", "rate", "limit", "overrides")
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}


def has(path: str, run: Run) -> bool:
    """Whether a run is on file."""
    return key_of(_fields(run), _KEY) in [key_of(row, _KEY) for row in read_rows(path)]


def add(path: str, run: Run, result: dict[str, Any]) -> None:
    """Writes the row of a run."""
    add_row(path, {**_fields(run), **result}, _KEY)


def write(results: str, document: str) -> None:
    """Writes the table of the document."""
    rows = read_rows(results)
    if rows:
        fill_table(document, "time", table(rows))


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


def shown(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """{text: the loss of its unigrams, and the curve of each run that the table is about}."""
    of_texts = {
        text: [row for row in rows if row["text"] == text]
        for text in dict.fromkeys(row["text"] for row in rows)
    }
    return {
        text: {
            "unigram_loss": of_text[0]["unigram_loss"],
            "runs": [
                {name: row[name] for name in ("peer", "curve")}
                for runs in groups(of_text)
                for row in runs
            ],
        }
        for text, of_text in of_texts.items()
    }


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
