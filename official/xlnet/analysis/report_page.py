"""Report of a run as a page to send on: `report.html` beside its metrics.

The page shows the files of the run's directory, and nothing on it is loaded from elsewhere.
"""

from __future__ import annotations

import base64
import html
import json
import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import logging

from official.xlnet.analysis.html_page import Line, chart, html_page, html_table, smoothed
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.finetuning_defaults import describe_settings
from official.xlnet.data.examples import Example
from official.xlnet.data.pretraining_dataset import Records
from official.xlnet.files.atomic import write_bytes
from official.xlnet.files.json_files import read_json
from official.xlnet.files.staging import with_urls
from official.xlnet.inference.cloze import blank_candidates
from official.xlnet.inference.language_model import is_causal
from official.xlnet.modeling.models.xlnet_pretrainer import XLNetPretrainer
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metrics_log import read_scalars
from official.xlnet.runtime.perplexity import perplexity
from official.xlnet.tasks.data_report import DATA_FILE, report_lines, text_of
from official.xlnet.tasks.reports import METRICS_FILE, PAGE_FILE, PICTURE_FILE, PREDICTIONS_FILE
from official.xlnet.tasks.task import Task, metric_text
from official.xlnet.tokenization.blanks import has_blank
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.tokenization.tokenizer import Tokenizer

_MOST_ERRORS, _MOST_CHARS = 10, 400  # Errors in a table, and characters of their texts.
_NO_METRICS = ("train_", "dev_", "data_", "baselines")  # Beginnings of other names.
_LARGE = 100  # Numbers without decimals.
_BINS = 10  # Of the calibration.
_BLANKS, _CANDIDATES, _AROUND = 3, 5, 20  # Texts with a blank, and tokens on its sides.
_POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
_STYLE = """\
.wide, pre { overflow-x: auto; } td { vertical-align: top; overflow-wrap: anywhere; }
th { white-space: nowrap; } td, th { border-bottom: 1px solid #ddd; } pre { font-size: .85rem; }
.wide td { min-width: 6rem; } .texts td:nth-child(2) { min-width: 14rem; }
figure { margin: 1rem 0; max-width: 40rem; }
img { max-width: 100%; } svg { display: block; overflow: visible; width: 100%; font-size: 13px; }
polyline { fill: none; stroke: currentColor; } .grid { stroke: #ddd; } .x { text-anchor: middle; }
.y { text-anchor: end; } .raw { color: #a9c3dc; } .smooth { color: #29619f; stroke-width: 2; }
.dots { color: #b3261e; } circle { fill: #b3261e; } .level { color: #777; stroke-dasharray: 5 4; }
"""


def write_page(directory: str, make: Callable[[], str]) -> None:
    """Writes `report.html`. An error is a warning: the run is complete without the page.

    Args:
      directory: directory of the run.
      make: makes the page.
    """
    try:
        page = with_urls(make()).encode(errors="replace")
        write_bytes(os.path.join(directory, PAGE_FILE), page)
    except Exception as error:
        logging.warning("no %s: %s: %s", PAGE_FILE, type(error).__name__, error)


def task_page(
    directory: str, task: Task, metric: str, examples: Sequence[Example], models: Sequence[str]
) -> str:
    """Returns the page of fine-tuning, or of the evaluation of fine-tuned models.

    Args:
      directory: directory of the report, see `write_report`; of fine-tuning, the model directory.
      task: the task of the models.
      metric: name of the metric in the title.
      examples: the evaluated examples, with labels.
      models: the models.
    """
    metrics = read_json(os.path.join(directory, METRICS_FILE))
    with open(os.path.join(directory, PREDICTIONS_FILE), encoding="utf-8") as file:
        predictions = [json.loads(line) for line in file]
    judged = np.array(
        [task.judge(*pair) for pair in zip(examples, predictions, strict=True)], float
    )
    which = [f"--model={path}" for path in models]
    sections = {
        "Result": _metrics(metrics, metric),
        "Data": _data(directory, metrics),
        "Training": _curves(directory, f"dev_{metric}", metric),
        "Evaluation": _picture(os.path.join(directory, PICTURE_FILE)),
        "Calibration": _calibration(judged, metrics),
        **_errors(examples, predictions, judged),
        "Settings": _settings(task.config, metrics.get("train_examples")),
        "Use": _commands(
            ["predict", *which, "--input=new.tsv", "--output=new.jsonl"],
            ["evaluate", *which, "--data=test.tsv"],
        ),
    }
    result = metric_text(metrics[metric], metrics.get(f"{metric}_is_over"))
    title = f"{task.config.task.name}: {metric} {result} on {len(examples):,} examples"
    return _page(title, sections)


def pretraining_page(
    directory: str,
    result: Mapping[str, Any],
    records: Records,
    unigram_loss: float | None,
    model: XLNetPretrainer | None,
) -> str:
    """Returns the page of pre-training.

    Args:
      directory: the model directory.
      result: what `pretrain` returns.
      records: the data set, whose held-out texts get blanks.
      unigram_loss: loss of a unigram baseline, if it is known.
      model: the model that fills blanks; None to leave them out, e.g. as it is no better than
        unigrams.
    """
    held_out = sorted(read_scalars(directory, "heldout_loss").items())
    rows = [
        *([name.replace("_", " "), _shown(value)] for name, value in result.items()),
        *(["held-out loss", _shown(loss)] for _, loss in held_out[-1:]),
        *(["held-out perplexity", _shown(perplexity(loss))] for _, loss in held_out[-1:]),
        *(["loss of unigrams", _shown(loss)] for loss in [unigram_loss] if loss),
    ]
    splits = records.manifest.splits.items()
    data = [(name, f"{x.documents:,}", f"{x.tokens:,}", f"{x.windows:,}") for name, x in splits]
    data_dir = records.path
    blanks = list(_filled(model, records, directory)) if model else []
    sections = {
        "Result": html_table(("metric", "model"), rows),
        "Data": html_table(("split", "documents", "tokens", "windows"), data),
        "Training": _curves(directory, "heldout_loss", "held-out loss", unigram_loss),
        "Blanks": html_table(("text", "hidden", "candidates"), blanks) if blanks else "",
        "Settings": _settings(XLNetConfig.load(directory)),
        "Use": _commands(
            ["evaluate", f"--model={directory}", f"--data={data_dir}"],
            ["generate", f"--model={directory}", "--text=The ____ of the people."],
            ["finetune", f"--init_from={directory}", "--train=train.tsv", "--output=runs/task"],
        ),
    }
    title = f"Pre-training: loss {_shown(result['loss'])} at step {result['step']:,}"
    return _page(title, sections)


def _page(title: str, sections: Mapping[str, str]) -> str:
    body = "".join(f"<h2>{name}</h2>\n{content}\n" for name, content in sections.items() if content)
    return html_page(title, _STYLE, body, _POLICY)


def _metrics(metrics: Mapping[str, Any], metric: str) -> str:
    """Metrics of the model beside its baselines, the main one first."""
    known = (metrics.get("baselines") or {}).items()
    baselines = {name: values for name, values in known if isinstance(values, dict)}
    others = [name for name in metrics if name != metric and _is_metric(name, metrics[name])]
    columns = [metrics, *baselines.values()]
    rows = [[name, *(_shown(of.get(name, "")) for of in columns)] for name in (metric, *others)]
    return html_table(("metric", "model", *(name.replace("_", " ") for name in baselines)), rows)


def _is_metric(name: str, value: Any) -> bool:
    """Whether a value is a metric, and not a count or a share of the examples."""
    return isinstance(value, float | None) and not name.startswith(_NO_METRICS)


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return value
    is_large = isinstance(value, int) or (value or 0) >= _LARGE
    return f"{value:,.0f}" if is_large else metric_text(value)


def _data(directory: str, metrics: Mapping[str, Any]) -> str:
    """The report on the examples before the first step, and their counts."""
    path = os.path.join(directory, DATA_FILE)
    lines = list(report_lines(read_json(path))) if os.path.exists(path) else []
    counts = [
        (name.replace("_", " "), _shown(value))
        for name, value in metrics.items()
        if isinstance(value, int | float) and not _is_metric(name, value)
    ]
    return _preformatted("\n".join(lines)) * bool(lines) + html_table(("count", "number"), counts)


def _curves(directory: str, scalar: str, name: str, unigram_loss: float | None = None) -> str:
    """The losses of a run, and what its evaluations found."""
    points = [(line["step"], line["loss"]) for line in read_history(directory)]
    if not points:
        return ""
    evaluations = Line(name, "dots", sorted(read_scalars(directory, scalar).items()))
    lines = [Line("each step", "raw", points), Line("smoothed", "smooth", smoothed(points))]
    if scalar == "heldout_loss":  # On the scale of the losses.
        level = [(x, unigram_loss) for x, _ in (points[0], points[-1]) if unigram_loss]
        return chart([*lines, Line("unigrams", "level", level), evaluations], "step", "loss")
    dev = chart([evaluations], "step", "dev") if len(evaluations.points) > 1 else ""
    return chart(lines, "step", "training loss") + dev


def _picture(path: str) -> str:
    with open(path, "rb") as file:
        content = base64.b64encode(file.read()).decode()
    return f"<img src='data:image/png;base64,{content}' alt='evaluation'>"


def _calibration(judged: np.ndarray, metrics: Mapping[str, Any]) -> str:
    """The share of right predictions by their probability."""
    judged = judged[np.isfinite(judged).all(axis=1)]
    bins = np.minimum((judged[:, 1] * _BINS).astype(int), _BINS - 1)
    members = [judged[bins == number] for number in np.unique(bins)]
    points = [(float(x[:, 1].mean()), float((x[:, 0] == 0).mean())) for x in members]
    if not points:
        return ""
    lines = [Line("exact", "level", [(0, 0), (1, 1)]), Line("model", "dots", points)]
    error = metrics.get("calibration_error")
    shown = f"<p>Expected calibration error: {error:.4f}</p>" if error is not None else ""
    return shown + chart(lines, "probability of the prediction", "share of right predictions")


def _errors(
    examples: Sequence[Example], predictions: Sequence[Mapping[str, Any]], judged: np.ndarray
) -> dict[str, str]:
    """Tables of the worst errors, and of those whose probability is the highest."""
    wrong = np.flatnonzero(judged[:, 0] > 0)
    worst, surest = (
        wrong[np.argsort(-judged[wrong, key], kind="stable")][:_MOST_ERRORS] for key in (0, 1)
    )
    has_probabilities = bool(np.isfinite(judged[wrong, 1]).all())
    tables = {"Worst errors": worst}
    if has_probabilities and {*worst} != {*surest}:
        tables["Most confident errors"] = surest
    head = ("id", "text", "expected", "predicted", *["probability"] * has_probabilities)
    rows = {}
    for n in (*worst, *surest):
        text = " ".join(getattr(examples[n], "words", ())) or text_of(examples[n])
        answers = _answers(predictions[n])
        rows[n] = (examples[n].id, text, *answers, float(judged[n, 1]))
    cells = {n: [*map(_cut, row[: len(head)])] for n, row in rows.items()}
    return {
        title: f"<div class='texts'>{html_table(head, [cells[n] for n in places])}</div>"
        for title, places in tables.items()
        if len(places)
    }


def _answers(prediction: Mapping[str, Any]) -> tuple[Any, Any]:
    """What was expected, and what a prediction says in its first key after those of the example."""
    names = (name for name in prediction if name not in ("id", "subtask", "words"))
    return prediction["expected"], prediction[next(names)]


def _cut(value: Any) -> str:
    """A value as a text that is not too long."""
    text = ", ".join(map(_shown, value)) if isinstance(value, list | tuple) else _shown(value)
    text = text.replace("\0", " | ")
    return text if len(text) <= _MOST_CHARS else f"{text[:_MOST_CHARS]} …"


def _filled(
    model: XLNetPretrainer, records: Records, directory: str
) -> Iterator[tuple[str, str, str]]:
    """Yields texts with a blank, the hidden word, and what the model has for the blank."""
    if is_causal(model.config):
        return
    tokenizer = Tokenizer(os.path.join(directory, VOCAB_FILE))
    split = "heldout" if "heldout" in records.manifest.splits else "train"
    rows, length = records.largest_batch(split, 4 * _BLANKS), records.manifest.reuse_len
    texts: dict[str, str] = {}
    for window in records.batches(rows, split, epochs=1).unbatch().take(8 * rows):
        ids, starts = window["token_ids"].numpy()[:length], window["is_word_start"].numpy()
        for place in range(length // 2, length - 1):
            word = tokenizer.id_to_piece(int(ids[place]))[1:]
            if word.isalpha() and starts[place : place + 2].all() and not window["is_reversed"]:
                parts = ids[max(0, place - _AROUND) : place], ids[place + 1 : place + _AROUND]
                before, after = (tokenizer.decode(part.tolist()) for part in parts)
                if not has_blank(before + after):
                    texts[f"{before} ____ {after}"] = word
                break
        if len(texts) == _BLANKS:
            break
    found = blank_candidates(model, [*texts], _CANDIDATES, tokenizer) if texts else []
    for (text, word), (candidates,) in zip(texts.items(), found, strict=True):
        yield text, word, ", ".join(f"{x.string} {x.probability:.0%}" for x in candidates)


def _commands(*commands: Sequence[str]) -> str:
    return _preformatted("\n".join(f"xlnet {shlex.join(command)}" for command in commands))


def _settings(config: XLNetConfig, train_examples: int | None = None) -> str:
    line = describe_settings(config, train_examples) if train_examples else ""
    shown = f"<p>{html.escape(line)}</p>" * bool(line)
    return f"{shown}<details><summary>all settings</summary>{_preformatted(repr(config))}</details>"


def _preformatted(text: str) -> str:
    return f"<pre>{html.escape(text)}</pre>"
