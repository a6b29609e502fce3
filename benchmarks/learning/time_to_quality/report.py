"""The rows on file, the tables of the document, and the runs that are shown."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from benchmarks.harness.tables import (
    Row,
    add_row,
    fill_table,
    key_of,
    markdown_table,
    mean_and_spread,
    read_rows,
)
from benchmarks.learning.time_to_quality.runs import Run

_KEY = ("recipe", "text", "peer", "seed", "num_steps", "rate", "limit", "settings", "is_timed")
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}


def has(path: str, run: Run) -> bool:
    """Whether a run is on file."""
    return key_of(_fields(run), _KEY) in [key_of(row, _KEY) for row in read_rows(path)]


def add(path: str, run: Run, result: dict[str, Any]) -> None:
    """Writes the row of a run."""
    add_row(path, {**_fields(run), **result}, _KEY)


def write(results: str, document: str) -> None:
    """Writes the tables of the document: timed runs, and trials, which are compared at steps.

    Raises:
      ValueError: rows of one text have different held-out text, so their losses do not compare.
    """
    rows = read_rows(results)
    for (recipe, text), of_text in _by_text(rows).items():
        unigrams = sorted({round(row["unigram_loss"], 3) for row in of_text})
        if len(unigrams) > 1:
            raise ValueError(
                f"{results}: expected one loss of unigrams for {recipe}, {text}, got {unigrams}; "
                "rows of an earlier way of holding text out need another name of the text"
            )
    for name, is_timed, table_of in (("time", True, table), ("trials", False, trials_table)):
        chosen = [row for row in rows if row["is_timed"] == is_timed]
        if chosen:
            fill_table(document, name, table_of(chosen))


def table(rows: list[Row]) -> str:
    """A table of the runs of each text, seeds together, HF and tf-models-official at their best."""
    lines = [["recipe", "text", "", "seeds", "steps", "wall time, s", "held-out loss"]]
    for (recipe, text), of_text in _by_text(rows).items():
        unigram = f"{of_text[0]['unigram_loss']:.3f}"
        lines.append([recipe, text, "unigram baseline", "", "", "", unigram])
        lines += [[recipe, text, *_cells(runs)] for runs in groups(of_text)]
    return markdown_table(lines)


def trials_table(rows: list[Row]) -> str:
    """A table of trials: what differs from today's recipe, and losses at three points of the run.

    Runs that differ in the seed only share a line. The best of a text is first.
    """
    trials: dict[tuple, list[Row]] = {}
    for row in rows:
        # How many micro-batches run side by side says nothing about what is learned.
        changes = [x for x in _changes(row) if not x.startswith("training.parallel_slices=")]
        trial = (row["recipe"], row["text"], row["num_steps"], " ".join(changes) or "the recipe")
        trials.setdefault(trial, []).append(row)
    titles = ["recipe", "text", "steps", "settings", "seeds"]
    lines = [[*titles, "after a sixth", "after half", "at the end"]]
    best_first = sorted(trials.items(), key=lambda item: (*item[0][:3], _mean(item[1], "loss")))
    for trial, runs in best_first:
        curves = np.array([[loss for _, _, loss in row["curve"]] for row in runs]).mean(axis=0)
        points = curves[0], curves[len(curves) // 2 - 1], curves[-1]
        lines.append([*map(str, trial), str(len(runs)), *(f"{loss:.3f}" for loss in points)])
    return markdown_table(lines)


def _by_text(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """{(recipe, text): its rows}."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["recipe"], row["text"]), []).append(row)
    return found


def _changes(row: dict[str, Any]) -> list[str]:
    """`key=value` of each setting in which a run of ours differs from today's recipe."""
    today = _today(row["recipe"])
    settings = sorted(row["settings"].items())
    return [f"{key}={value}" for key, value in settings if value != today.get(key)]


@functools.cache
def _today(recipe: str) -> dict[str, Any]:
    return Run("", "ours", 0, recipe=recipe).settings


def groups(rows: list[Row]) -> list[list[Row]]:
    """Runs that differ in the seed only; of a peer with several rates, those of the best rate."""
    grouped: dict[tuple, list[Row]] = {}
    for row in rows:
        grouped.setdefault(key_of(row, [name for name in _KEY if name != "seed"]), []).append(row)
    best: dict[object, list[Row]] = {}
    for key, runs in grouped.items():
        first = runs[0]
        name = key if first["peer"] == "ours" else (first["peer"], first["limit"])
        best[name] = min(best.get(name, runs), runs, key=lambda runs: _mean(runs, "loss"))
    order = list(_TITLE)
    return sorted(
        best.values(), key=lambda runs: (order.index(runs[0]["peer"]), runs[0]["num_steps"])
    )


def shown(rows: list[Row]) -> dict[str, Any]:
    """{text: the loss of its unigrams, and the curve of each run that the table is about}."""
    timed = [row for row in rows if row["is_timed"]]
    return {
        f"{recipe}, {text}": {
            "unigram_loss": of_text[0]["unigram_loss"],
            "runs": [
                {name: row[name] for name in ("peer", "curve")}
                for runs in groups(of_text)
                for row in runs
            ],
        }
        for (recipe, text), of_text in _by_text(timed).items()
    }


def _cells(runs: list[Row]) -> list[str]:
    first = runs[0]
    details = _changes(first) if first["peer"] == "ours" else [f"rate {first['rate']:g}"]
    return [
        ", ".join([_TITLE[first["peer"]], *details]),
        str(len(runs)),
        f"{_mean(runs, 'steps'):.0f}",
        f"{_mean(runs, 'seconds'):.0f}",
        mean_and_spread([row["loss"] for row in runs]),
    ]


def _mean(runs: list[Row], name: str) -> float:
    return float(np.mean([row[name] for row in runs]))


def _fields(run: Run) -> dict[str, Any]:
    return {
        **{"recipe": run.recipe, "text": run.text, "peer": run.peer, "seed": run.seed},
        **{"num_steps": run.steps, "rate": run.rate, "limit": run.seconds},
        **{"is_timed": run.is_timed, "settings": run.settings},
    }
