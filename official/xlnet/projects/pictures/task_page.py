"""`report.html` of fine-tuning, and of an evaluation of fine-tuned models."""

from __future__ import annotations

import base64
import html
import json
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import describe_settings
from official.xlnet.data.examples import Example
from official.xlnet.files.json_files import read_json
from official.xlnet.jobs.baselines import comparison
from official.xlnet.projects.pictures.html_page import Line, chart, html_table
from official.xlnet.projects.pictures.report_page import (
    all_settings,
    command_lines,
    preformatted,
    report_page,
    training_curves,
    value_text,
)
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.runtime.pages import TaskRun, register_page
from official.xlnet.tasks.data_report import DATA_FILE, report_lines, text_of
from official.xlnet.tasks.reports import METRICS_FILE, PICTURE_FILE, PREDICTIONS_FILE

_MOST_ERRORS = 10  # Rows of a table.
_MOST_CHARS = 400  # Longest text in a table.
_COUNT_PREFIXES = (
    "train_",
    "dev_",
    "data_",
    "baselines",
)  # Beginnings of names that are not metrics.
# Counts whose names need words.
_COUNTS = {"step": "step of the best checkpoint, which is kept", "steps": "steps trained in all"}
_NORMAL_95 = 1.959963984540054  # 97.5th percentile of the normal distribution.
_NUM_BINS = 10  # Bins of the calibration.


@register_page("task", "report.html")
def task_page(run: TaskRun) -> str:
    """Returns the page of fine-tuning, or of the evaluation of fine-tuned models."""
    metrics = read_json(os.path.join(run.directory, METRICS_FILE))
    with open(os.path.join(run.directory, PREDICTIONS_FILE), encoding="utf-8") as file:
        predictions = [json.loads(line) for line in file]
    # Columns: error of each prediction, and its probability.
    judged = np.array(
        [
            run.task.error_and_probability(*pair)
            for pair in zip(run.examples, predictions, strict=True)
        ],
        float,
    )
    model_flags = [f"--model={path}" for path in run.models]
    sections = {
        "Result": _result(run, metrics, judged),
        "Data": _data(run.directory, metrics),
        "Training": training_curves(run.directory, f"dev_{run.metric}", run.metric),
        "Evaluation": _picture(os.path.join(run.directory, PICTURE_FILE)),
        "Calibration": _calibration(judged, metrics.get("calibration_error")),
    }
    sections |= _error_tables(run.examples, predictions, judged)
    sections["Settings"] = _settings(run.task.config, metrics.get("train_examples"))
    sections["Use"] = command_lines(
        ["predict", *model_flags, "--input=new.tsv", "--output=new.jsonl"],
        ["evaluate", *model_flags, "--data=test.tsv"],
    )
    result = metric_text(metrics[run.metric], metrics.get(f"{run.metric}_is_over"))
    task_name, num_examples = run.task.config.task.name, len(run.examples)
    title = f"{task_name}: {run.metric} {result} on {num_examples:,} examples"
    return report_page(title, sections)


def _result(run: TaskRun, metrics: Mapping[str, Any], judged: np.ndarray) -> str:
    """The line that the terminal shows, intervals, and the metrics."""
    baselines = {}
    for name, values in (metrics.get("baselines") or {}).items():
        if isinstance(values, dict):
            baselines[name] = values
    paragraphs = []
    compared = {name: x for name, x in baselines.items() if x.get(run.metric) is not None}
    if compared and metrics[run.metric] is not None:
        paragraphs.append(comparison(run.task, metrics, compared))
    num_right = int((judged[:, 0] == 0).sum())
    value, num_rows = metrics[run.metric], len(judged)
    if value is not None and round(value, 4) == round(num_right / num_rows, 4):
        values = {"model": value}
        values |= {name.replace("_", " "): x[run.metric] for name, x in compared.items()}
        paragraphs.append(_intervals(run.metric, values, num_rows))
    texts = "".join(f"<p>{html.escape(text)}</p>" for text in paragraphs)
    return texts + _metrics_table(metrics, run.metric, baselines)


def _intervals(metric: str, values: Mapping[str, float], num_rows: int) -> str:
    """A sentence with the 95% interval of each share of rows, by Wilson's method."""
    texts = []
    for name, share in values.items():
        low, high = wilson_interval(share, num_rows)
        texts.append(f"{name} {low:.3f} to {high:.3f}")
    return (
        f"{metric} is a share of {num_rows:,} rows, one of which is {1 / num_rows:.4f}; "
        f"95% intervals: {', '.join(texts)}."
    )


def wilson_interval(share: float, number: int) -> tuple[float, float]:
    """Returns the 95% confidence interval of a share of independent rows (Wilson, 1927).

    Example:
      >>> [round(bound, 3) for bound in wilson_interval(0.9, 10)]
      [0.596, 0.982]
    """
    center = (share + _NORMAL_95**2 / (2 * number)) / (1 + _NORMAL_95**2 / number)
    variance = share * (1 - share) / number + _NORMAL_95**2 / (4 * number**2)
    half = _NORMAL_95 * math.sqrt(variance) / (1 + _NORMAL_95**2 / number)
    return center - half, center + half


def _metrics_table(
    metrics: Mapping[str, Any], main_metric: str, baselines: Mapping[str, Mapping[str, Any]]
) -> str:
    """Metrics of the model beside its baselines, the main one first."""
    names = [main_metric]
    for name, value in metrics.items():
        if name != main_metric and _is_metric(name, value):
            names.append(name)
    rows = []
    for name in names:
        cells = [value_text(values.get(name, "")) for values in (metrics, *baselines.values())]
        rows.append([name, *cells])
    head = ["metric", "model", *(name.replace("_", " ") for name in baselines)]
    return html_table(head, rows)


def _is_metric(name: str, value: Any) -> bool:
    """Whether a value is a metric, and not a count or a share of the examples."""
    return isinstance(value, float | None) and not name.startswith(_COUNT_PREFIXES)


def _data(directory: str, metrics: Mapping[str, Any]) -> str:
    """The report on the examples before the first step, and their counts."""
    counts = []
    for name, value in metrics.items():
        if isinstance(value, int | float) and not _is_metric(name, value):
            counts.append((_COUNTS.get(name, name.replace("_", " ")), value_text(value)))
    table = html_table(("count", "number"), counts)
    path = os.path.join(directory, DATA_FILE)
    if not os.path.exists(path):
        return table
    lines = report_lines(read_json(path))
    return preformatted("\n".join(lines)) + table


def _picture(path: str) -> str:
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    return f"<img src='data:image/png;base64,{content}' alt='evaluation'>"


def _calibration(judged: np.ndarray, calibration_error: float | None) -> str:
    """The share of right predictions by their probability."""
    judged = judged[np.isfinite(judged).all(axis=1)]
    if not len(judged):
        return ""
    error, probability = judged.T
    bin_of_prediction = np.minimum((probability * _NUM_BINS).astype(int), _NUM_BINS - 1)
    points = []
    for bin_number in np.unique(bin_of_prediction):
        is_in_bin = bin_of_prediction == bin_number
        share_right = float((error[is_in_bin] == 0).mean())
        points.append((float(probability[is_in_bin].mean()), share_right))
    lines = [Line("exact", "level", [(0, 0), (1, 1)]), Line("model", "dots", points)]
    figure = chart(lines, "probability of the prediction", "share of right predictions")
    if calibration_error is None:
        return figure
    return f"<p>Expected calibration error: {calibration_error:.4f}</p>{figure}"


def _error_tables(
    examples: Sequence[Example], predictions: Sequence[Mapping[str, Any]], judged: np.ndarray
) -> dict[str, str]:
    """Tables of the worst errors and, if it differs, of those with the highest probability."""
    wrong = np.flatnonzero(judged[:, 0] > 0)
    if not len(wrong):
        return {}
    has_probabilities = bool(np.isfinite(judged[wrong, 1]).all())
    worst, surest = (
        wrong[np.argsort(-judged[wrong, column], kind="stable")][:_MOST_ERRORS] for column in (0, 1)
    )
    tables = {"Worst errors": worst}
    if has_probabilities and {*worst} != {*surest}:
        tables["Most confident errors"] = surest
    head = ["id", "text", "expected", "predicted"]
    if has_probabilities:
        head.append("probability")
    sections = {}
    for title, numbers in tables.items():
        rows = []
        for n in numbers:
            row = _error_row(examples[n], predictions[n], float(judged[n, 1]))
            rows.append(row[: len(head)])
        sections[title] = f"<div class='texts'>{html_table(head, rows)}</div>"
    return sections


def _error_row(example: Example, prediction: Mapping[str, Any], probability: float) -> list[str]:
    """Cells of the table of errors; the probability is the last one."""
    text = " ".join(getattr(example, "words", ())) or text_of(example)
    # The answer is in the first key that the example does not have.
    answers = [name for name in prediction if name not in ("id", "subtask", "words")]
    values = (example.id, text, prediction["expected"], prediction[answers[0]], probability)
    return [_cell(value) for value in values]


def _cell(value: Any) -> str:
    """A value as text that is not too long."""
    if isinstance(value, list | tuple):
        text = ", ".join(value_text(item) for item in value)
    else:
        text = value_text(value)
    text = text.replace("\0", " | ")
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]} …"


def _settings(config: XLNetConfig, num_train_examples: int | None) -> str:
    """The settings of fine-tuning in a line, and all settings."""
    if not num_train_examples:
        return all_settings(config)
    line = describe_settings(config, num_train_examples)
    paragraph = f"<p>{html.escape(line)}</p>" if line else ""
    return paragraph + all_settings(config)
