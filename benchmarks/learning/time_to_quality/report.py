"""The rows on file, the tables of the documents, and the runs that are shown."""

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
    read_rows,
    recipe_digests,
)
from benchmarks.harness.verdicts import mean_and_interval
from benchmarks.learning.time_to_quality.runs import Run, config_of

_KEY = ("recipe", "text", "peer", "seed", "num_steps", "rate", "settings")
_RECIPE = "the recipe"
_TITLE = {"hf": "HF", "tfm": "tf-models-official"}


def has(path: str, run: Run) -> bool:
    """Whether a run is on file."""
    return key_of(_fields(run), _KEY) in [key_of(row, _KEY) for row in read_rows(path)]


def add(path: str, run: Run, result: dict[str, Any]) -> None:
    """Writes the row of a run."""
    measured = recipe_digests(config_of(run.recipe))
    add_row(path, {**_fields(run), **result, "measured": measured}, _KEY)


def write(results: str, document: str, document_of_settings: str) -> None:
    """Writes the table of the recipes and their peers, and that of other settings.

    Args:
      results: the JSON file with the rows.
      document: Markdown file with the table `steps`.
      document_of_settings: Markdown file with the table `settings`.

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
    measured = [entry for row in rows for entry in row.get("measured", [])]
    fill_table(document, "steps", table(rows), measured)
    fill_table(document_of_settings, "settings", table(rows, of_settings=True), measured)


def table(rows: list[Row], of_settings: bool = False) -> str:
    """A table of losses at three points of each run.

    Runs that differ in the seed only share a line. The best at a number of steps is first.

    Args:
      rows: the rows on file.
      of_settings: whether the runs are those that differ from today's recipe, or all others.
    """
    titles = [
        "recipe",
        "text",
        "steps",
        "variant",
        "seeds",
        "after a sixth",
        "after half",
        "at the end",
    ]
    lines = [titles]
    for (recipe, text), of_text in _by_text(rows).items():
        if not of_settings:
            unigram = f"{of_text[0]['unigram_loss']:.3f}"
            lines.append([recipe, text, "", "unigram baseline", "", "", "", unigram])
        for runs in groups(of_text):
            if of_settings == _is_shown(runs[0]):
                continue
            steps = runs[0]["num_steps"]
            sixth = -(-steps // 6)  # A run that was resumed has checkpoints elsewhere.
            curves = [np.interp([sixth, 3 * sixth], *np.transpose(row["curve"])) for row in runs]
            points = [f"{loss:.3f}" for loss in np.mean(curves, axis=0)]
            points.append(mean_and_interval([row["loss"] for row in runs]))
            lines.append([recipe, text, str(steps), _title(runs[0]), str(len(runs)), *points])
    return markdown_table(lines)


def _by_text(rows: list[Row]) -> dict[tuple[str, str], list[Row]]:
    """{(recipe, text): its rows}."""
    names = dict.fromkeys((row["recipe"], row["text"]) for row in rows)
    return {name: [row for row in rows if (row["recipe"], row["text"]) == name] for name in names}


def _changes(row: dict[str, Any]) -> list[str]:
    """`key=value` of each setting in which a run of ours differs from today's recipe."""
    today, settings = _today(row["recipe"]), sorted(row["settings"].items())
    return [f"{key}={value}" for key, value in settings if value != today.get(key)]


@functools.cache
def _today(recipe: str) -> dict[str, Any]:
    return Run("", "ours", 0, recipe=recipe).settings


def groups(rows: list[Row]) -> list[list[Row]]:
    """Runs that differ in the seed only, by steps and the best first; a peer's at its best rate."""
    grouped: dict[tuple, list[Row]] = {}
    for row in rows:
        grouped.setdefault((row["peer"], row["num_steps"], _title(row)), []).append(row)
    best: dict[object, list[Row]] = {}
    for key, runs in grouped.items():
        name = key if key[0] == "ours" else key[:2]
        best[name] = min(best.get(name, runs), runs, key=_loss)
    return sorted(best.values(), key=lambda runs: (runs[0]["num_steps"], _loss(runs)))


def shown(rows: list[Row]) -> dict[str, Any]:
    """{text: the loss of its unigrams, and the curves of the recipe and of peers}."""
    return {
        f"{recipe}, {text}": {
            "unigram_loss": of_text[0]["unigram_loss"],
            "runs": [
                {name: row[name] for name in ("peer", "curve")}
                for runs in groups(of_text)
                if _is_shown(runs[0])
                for row in runs
            ],
        }
        for (recipe, text), of_text in _by_text(rows).items()
    }


def _is_shown(row: Row) -> bool:
    """Whether a run is that of a peer or of today's recipe."""
    return row["peer"] != "ours" or _title(row) == _RECIPE


def _title(row: Row) -> str:
    if row["peer"] != "ours":
        return f"{_TITLE[row['peer']]}, rate {row['rate']:g}"
    # How many micro-batches run side by side says nothing about what is learned.
    changes = [x for x in _changes(row) if not x.startswith("training.parallel_slices=")]
    return " ".join(changes) or _RECIPE


def _loss(runs: list[Row]) -> float:
    return float(np.mean([row["loss"] for row in runs]))


def _fields(run: Run) -> dict[str, Any]:
    return {
        "recipe": run.recipe,
        "text": run.text,
        "peer": run.peer,
        "seed": run.seed,
        "num_steps": run.steps,
        "rate": run.rate,
        "settings": run.settings,
    }
