"""The rows on file, the tables of the document, and the runs that are shown."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from benchmarks.harness.document import fill_table
from benchmarks.harness.rows import add_row, key_of, read_rows
from benchmarks.learning.time_to_quality.runs import Run

_KEY = ("recipe", "text", "peer", "seed", "num_steps", "rate", "limit", "overrides", "is_timed")
# Settings that say how a trial was run, not what it tries.
_OF_A_RUN = ("parallel_slices", "num_steps", "checkpoint_steps", "keep_checkpoints", "seed")
_TITLE = {"ours": "ours", "hf": "HF", "tfm": "tf-models-official"}


def has(path: str, run: Run) -> bool:
    """Whether a run is on file."""
    return key_of(_fields(run), _KEY) in [key_of(row, _KEY) for row in read_rows(path)]


def add(path: str, run: Run, result: dict[str, Any]) -> None:
    """Writes the row of a run."""
    add_row(path, {**_fields(run), **result}, _KEY)


def write(results: str, document: str) -> None:
    """Writes the tables of the document: timed runs, and trials, which are compared at steps."""
    rows = read_rows(results)
    timed = [row for row in rows if row["is_timed"]]
    trials = [row for row in rows if not row["is_timed"]]
    if timed:
        fill_table(document, "time", table(timed))
    if trials:
        fill_table(document, "trials", trials_table(trials))


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


def trials_table(rows: list[dict[str, Any]]) -> str:
    """A table of trials: what differs from today's recipe, and losses at three points of the run.

    Runs that differ in the seed only share a line. The best of a text is first.
    """
    groups: dict[tuple, list[dict[str, Any]]] = {}
    for row in rows:
        # As it is on file.
        today = _flat(json.loads(json.dumps(Run("", "ours", 0, recipe=row["recipe"]).settings)))
        settings = _flat(row["settings"])
        names = sorted(name for name in settings if name.rpartition(".")[2] not in _OF_A_RUN)
        changed = [f"{n}={settings[n]}" for n in names if settings[n] != today.get(n)]
        run = (row["recipe"], row["text"], row["num_steps"], " ".join(changed) or "the recipe")
        groups.setdefault(run, []).append(row)
    titles = ["recipe", "text", "steps", "settings", "seeds"]
    lines = [[*titles, "after a sixth", "after half", "at the end"]]
    lines.append(["---"] * len(lines[0]))
    best_first = sorted(groups.items(), key=lambda item: (*item[0][:3], _mean(item[1], "loss")))
    for run, runs in best_first:
        curves = np.array([[loss for _, _, loss in row["curve"]] for row in runs]).mean(axis=0)
        points = curves[0], curves[len(curves) // 2 - 1], curves[-1]
        lines.append([*map(str, run), str(len(runs)), *(f"{loss:.3f}" for loss in points)])
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def _flat(settings: dict[str, dict[str, Any]]) -> dict[str, Any]:
    return {f"{section}.{key}": x for section, part in settings.items() for key, x in part.items()}


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
    rows = [row for row in rows if row["is_timed"]]
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
        **{
            "recipe": run.recipe,
            "text": run.text,
            "peer": run.peer,
            "seed": run.seed,
            "num_steps": run.steps,
        },
        **{"rate": run.rate, "limit": run.seconds, "overrides": list(run.overrides)},
        **{"is_timed": run.is_timed, "settings": {} if run.is_timed else run.settings},
    }
