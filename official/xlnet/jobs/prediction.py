"""Prediction and evaluation of a fine-tuned model, from its path and plain examples."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any

from data_prep.tasks.columns import ID_COLUMNS
from data_prep.tasks.task_data import read_task, stream_task
from official.xlnet.checkpoints.any_format import load_config
from official.xlnet.configs.registry import TASK_PAGES
from official.xlnet.configs.validation import require
from official.xlnet.data.examples import Example
from official.xlnet.data.file_names import MANIFEST_FILE
from official.xlnet.data.text_counts import log_counts
from official.xlnet.files.arguments import AnyPath, require_apart
from official.xlnet.files.public import public
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.inference.language_model import PickledByPath
from official.xlnet.jobs.baselines import comparison
from official.xlnet.jobs.following import follow_run
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.runtime.host import host_state_kept
from official.xlnet.runtime.pages import TaskRun, write_pages
from official.xlnet.runtime.progress import Progress
from official.xlnet.tasks.label_types import with_label_type
from official.xlnet.tasks.reports import REPORT_FILES
from official.xlnet.training import evaluation
from official.xlnet.training.finetuning import saved_configuration
from official.xlnet.training.finetuning_loop import metric_of


@public()
def predict(model: AnyPath | Sequence[AnyPath], inputs: Any) -> Any:
    """Predicts with a fine-tuned model. To predict often, create a `Predictor` and keep it.

    Args:
      model: fine-tuned model: a model directory, HF folder or TF1 release; or several, whose
        predictions are combined (an ensemble).
      inputs: a text, or a list of texts, of tuples of texts for a task with pairs, of lists of
        words for token_classification (strings, if letters have the labels), or of examples of the
        task's own class for any task.

    Returns:
      A list with a dictionary for each input; for a text that is not in a list, its dictionary.
      Labels that were numbers or truth values in rows of Python are of that type again. The `id`
      of a row of a pandas frame without a column of ids is its label in the frame's index.

    Raises:
      ConfigError: the model is not fine-tuned, or several are not of the same task.
      DataError: the model cannot be loaded, or an input has another number of texts than the task.
      TypeError: an input is not of a kind that the task takes.

    Example:
      >>> predict("runs/task", ["A fine film.", "Dull."])[0]["label"]
      'good'
    """
    return Predictor(model)(inputs)


class Predictor(PickledByPath):
    """A fine-tuned model, loaded once to predict many times.

    Args:
      model: see `predict`.

    Example:
      >>> predictor = Predictor("runs/task")
      >>> predictor("A fine film.")["label"]
      'good'
    """

    @public()
    def __init__(self, model: AnyPath | Sequence[AnyPath]):
        self._made_from = (model,)
        self._ensemble = Ensemble([model] if isinstance(model, str) else model)

    def __repr__(self) -> str:
        task = self._ensemble.task.config.task
        return f"Predictor({task.name}, {len(task.labels)} labels)"

    def __call__(self, inputs: Any) -> Any:
        """See `predict`."""
        if isinstance(inputs, str | Example):
            return self([inputs])[0]
        settings = self._ensemble.task.config.task
        answers = self._ensemble.predict(stream_task(inputs, settings))
        predictions = [with_label_type(prediction, settings.label_type) for prediction in answers]
        names = {*getattr(inputs, "columns", ())} - {*settings.text_columns}
        # Of ranking, it is `document_id`.
        has_ids = bool({str(name).lower() for name in names} & {*ID_COLUMNS, "document_id"})
        labels = inputs.index.tolist() if hasattr(inputs, "iloc") and not has_ids else []
        for index, label in enumerate(labels):
            if predictions[index]["id"] == str(index + 1):  # Not an id of an example.
                predictions[index]["id"] = label
        return predictions


@host_state_kept()
def evaluate_models(
    models: Sequence[str],
    data: Any,
    *,
    split: str,
    mem_len: int | None,
    output: str | None,
    max_lost: float,
    follow: bool,
    products: str | None,
    by: str | None,
) -> dict[str, Any]:
    """Evaluates one model, or several as one; see `official.xlnet.api.evaluate.evaluate`."""
    with matmul_precision(products):
        if follow:
            return follow_run(
                models,
                output,
                lambda one: _evaluate([one], data, split, mem_len, None, max_lost, by),
            )
        return _evaluate(models, data, split, mem_len, output, max_lost, by)


def _evaluate(
    models: Sequence[str],
    data: Any,
    split: str,
    mem_len: int | None,
    output: str | None,
    max_lost: float,
    by: str | None,
) -> dict[str, Any]:
    if len(models) == 1 and isinstance(data, str):
        is_data_set = os.path.exists(os.path.join(data, MANIFEST_FILE))
        if is_data_set or not load_config(models[0]).task.name:
            return evaluation.evaluate(models[0], data, split, mem_len, by, output)
    require(by is None, "by", "a data set of xlnet prepare with by=context", data)
    if output:
        _check_report(output, [*models, data if isinstance(data, str) else None])
    ensemble = Ensemble(models)
    examples, counts = read_task(data, ensemble.task.config.task, max_lost, "data")
    metrics = ensemble.evaluate(examples, output) | counts
    log_counts(data if isinstance(data, str) else "data", metrics)
    if output:
        make_run = partial(_ended_run, output, ensemble, metrics, examples, models)
        write_pages("task", output, make_run)
    if ensemble.task.metric_note:
        line = comparison(ensemble.task, metrics, metrics.get("baselines"))
        Progress(sys.stderr).log_line(line)
    return metrics


def _ended_run(
    output: str,
    ensemble: Ensemble,
    metrics: dict[str, Any],
    examples: Sequence[Example],
    models: Sequence[str],
) -> TaskRun:
    return TaskRun(
        directory=output,
        task=ensemble.task,
        metric=metric_of(ensemble.task, metrics),
        examples=examples,
        models=models,
    )


def _check_report(output: str, inputs: Sequence[Any]) -> None:
    """Raises `ConfigError` if a report would replace an input, or results of a run."""
    file_names = (*REPORT_FILES, *TASK_PAGES.names())
    for name in ("", *file_names):
        require_apart("output", os.path.join(output, name), inputs)
    expected = f"a directory without a run, whose {', '.join(file_names)} would be replaced"
    require(saved_configuration(output) is None, "output", expected, output)
