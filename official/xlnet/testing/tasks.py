"""Conformance of a task: what every task does, with examples of its own and a tiny random model."""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import itertools
import json
import math
import pathlib
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from data_prep.corpus.vocabulary import train_unigram
from official.xlnet.api.export import export
from official.xlnet.api.finetune import finetune
from official.xlnet.configs.base import SETTINGS
from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.configs.registry import SERVICES, TASKS
from official.xlnet.configs.sections import HeadSections
from official.xlnet.errors import DataError, XLNetError
from official.xlnet.inference.ensemble import Ensemble
from official.xlnet.modeling.heads import create_head
from official.xlnet.modeling.models.xlnet_task_model import XLNetTaskModel
from official.xlnet.runtime.history import read_history
from official.xlnet.runtime.metric_text import metric_text
from official.xlnet.serving.client.prediction import padded, row_of
from official.xlnet.tasks.batching import TrainingBatches
from official.xlnet.tasks.reports import PREDICTIONS_FILE
from official.xlnet.tasks.task import Task, comparable
from official.xlnet.testing.examples import (
    exchanged,
    label_of,
    part_of,
    with_label,
    without_label,
)
from official.xlnet.testing.metrics import Oracle, check_metrics, require_oracles
from official.xlnet.testing.objectives import OTHER_STEPS, check_steps, refuse
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training.finetuning_loop import metric_of

_STEPS, _LENGTH = 60, 71
_SETTINGS = (
    "num_layers=1",
    "d_model=16",
    "num_heads=2",
    "d_inner=32",
    "dropout=0",
    "dropatt=0",
    "init_std=0.1",
    f"max_length={_LENGTH}",
    "num_buckets=1",
    "batch_size=8",
    "warmup_steps=0",
    f"num_steps={_STEPS}",
    f"checkpoint_steps={_STEPS // 2}",
    "learning_rate=0.01",
)
# Texts that say nothing about a label, and that a task has to answer.
_UNUSUAL = ("naïve1,000😀", "한국어" * 40)
_WRONG = {str: "no such class", tuple: ("no such class",), float: math.nan, int: 10**6}


def check_task(
    name: str,
    set: Sequence[str] = (),
    quick: bool = False,
    oracles: Mapping[str, Oracle] | None = None,
) -> None:
    """Checks a fine-tuning task on the examples that its class declares as `typical`.

    A tiny random model has to learn them: its main metric is better than without their texts. Each
    metric of random labels is what its oracle computes, and depends on the order of classes only if
    the task says that they have one.
    Evaluation, the Keras model and the inference network agree, also about unusual texts. Wrong and
    missing labels are refused; settings have ranges. All weights have finite gradients, equal with
    gradient accumulation and close in bfloat16. The exported model gives the same predictions; the
    run, resumed in the middle, has the same losses; with its classes exchanged, a model learns
    these, and no metric is better for the others.

    Args:
      name: the name that the task is registered under.
      set: further settings, as `key=value`.
      quick: whether to leave out the export, the resumed run, the exchanged classes, gradient
        accumulation and bfloat16, which take most of the time.
      oracles: {metric: function of examples and predictions that computes it in another way}, for
        each of the task's `metrics`. Default: none for an `evaluate` of this package, which has
        them in its tests; a task with an `evaluate` of its own needs them.

    Raises:
      AssertionError: the task fails a check, which the message names.

    Example:
      >>> check_task("classification")
    """
    with tempfile.TemporaryDirectory() as folder:
        oracles = require_oracles(TASKS[name], name, oracles)
        _check(TASKS[name], pathlib.Path(folder), name, [*_SETTINGS, *set], quick, oracles)


def _check(
    task_class: type[Task],
    folder: pathlib.Path,
    name: str,
    set: list[str],
    quick: bool,
    oracles: Mapping[str, Oracle],
) -> None:
    rows: list[Any] = sorted(task_class.typical, key=part_of)
    refuse(not rows, f"expected labelled examples as {task_class.__name__}.typical, got none")
    settings: Any = SETTINGS.get(f"task.name={name}", object)  # With the task's keys, if any.
    types = inspect.get_annotations(settings, eval_str=True)
    without = [key for key in types if types[key] in (int, float)]
    expected = f"expected a range in {settings.__name__}, e.g. Range(0, 9), for {without}"
    refuse(bool(without), expected)
    vocab, evaluated, calls = folder / VOCAB_FILE, task_class.evaluate, itertools.count()
    vocab.write_bytes(train_unigram([*map(repr, rows)], 200, allow_fewer=True))

    def tune(examples: list[Any], model: str) -> tuple[dict[str, Any], list[float]]:
        parts = {part: [*of] for part, of in itertools.groupby(examples, part_of)}
        data, output = parts.get("", parts), str(folder / model)
        tuned = finetune(None, data, data, output, task=name, set=set, vocab=str(vocab))
        return tuned, [line["loss"] for line in read_history(output)]

    def evaluate_and_copy(*arguments: Any) -> dict[str, float | None]:
        if next(calls) == 1:  # The first evaluation has saved its checkpoint.
            shutil.copytree(folder / "model", folder / "resumed")
        return evaluated(*arguments)

    with mock.patch.object(task_class, "evaluate", evaluate_and_copy):
        tuned, losses = tune(rows, "model")
    first, last = np.mean(losses[:9]), np.mean(losses[-9:])
    refuse(not last < 0.8 * first, f"expected a loss that falls, got {first:.4f}, then {last:.4f}")
    examples = [without_label(row, text) for text in (None, *_UNUSUAL) for row in rows]
    model, others = Ensemble([str(folder / "model")]), exchanged(rows)
    predictions = [*model.predict(examples)]
    right = predictions[: len(rows)]
    lines = (folder / "model" / PREDICTIONS_FILE).read_text(encoding="utf-8").splitlines()
    require_same([*map(json.loads, lines)], right, "predictions of the Keras model")
    _check_metrics(model, rows, tuned, predictions)
    of_texts = [predictions[n : n + len(rows)] for n in range(0, len(predictions), len(rows))]
    check_metrics(model.task, name, oracles, rows, of_texts)
    size = 2 * len(rows)  # All examples of a data set fit into one batch.
    batches = TrainingBatches(model.task.training_units(rows), _LENGTH, [_LENGTH], size, seed=0)
    config = model.task.config.changed([f"batch_size={size}", "jit_compile=false"])
    epoch = [*itertools.islice(batches(0), batches.steps_per_epoch)]
    _check_labels(config, epoch)
    check_steps(config, XLNetTaskModel, epoch, {} if quick else OTHER_STEPS)
    if quick:
        return
    if name in SERVICES.names():
        answers = [*_answers(folder, examples)]
        require_same(answers, predictions, "answers of the exported model")
    require_same(tune(rows, "resumed")[1], losses, "losses of a resumed run")
    if others != rows:
        wrong = model.task.evaluate(others, right)
        _require_better(model.task, tune(others, "exchanged")[0], wrong, wrong)


def _check_labels(config: XLNetConfig, batches: list[dict[str, Any]]) -> None:
    """Checks that the labels of batches are those that the head says it takes."""
    rule = create_head(HeadSections(config.model, config.task)).label_rule()
    for batch in batches:
        try:
            if rule is not None and "label" in batch:
                rule.check(batch["label"])
        except DataError as error:
            refuse(True, f"expected labels that `label_rule` of the head takes: {error}")


def _check_metrics(
    model: Ensemble, rows: list[Any], tuned: dict[str, Any], predictions: list[dict[str, Any]]
) -> None:
    """Checks metrics of labelled examples, of those without their texts, and wrong labels."""
    right, *others = (predictions[n : n + len(rows)] for n in range(0, len(predictions), len(rows)))
    task, values = model.task, model.task.evaluate(rows, right)
    unknown = [x for x in values if not any(fnmatch.fnmatchcase(x, y) for y in task.metrics)]
    refuse(bool(unknown), f"expected {unknown} among the declared `metrics`, got {task.metrics}")
    require_same(model.evaluate(rows), values, "metrics of `evaluate`")
    require_same(tuned, values, "metrics of `finetune`")
    for wrong in others:
        _require_better(task, values, task.evaluate(rows, wrong), {metric_of(task, values)})
    with contextlib.suppress(XLNetError):  # An empty text is answered or refused.
        [*model.predict([without_label(row, "") for row in rows])]
    for label in (None, _WRONG.get(type(label_of(rows[0])))):
        with contextlib.suppress(XLNetError):
            model.evaluate([with_label(rows[0], label)])
            refuse(True, f"expected an error for the label {label}, got none")


def _answers(folder: pathlib.Path, examples: list[Any]) -> Iterator[dict[str, Any]]:
    """Answers of the exported model."""
    path = export(str(folder / "model"), str(folder / "exported"), buckets=[_LENGTH])["path"]
    served = tf.saved_model.load(path).signatures
    for part, members in itertools.groupby(examples, part_of):
        signature = served[part or "serving_default"]
        names = sorted(signature.structured_input_signature[1])
        rows = [example.inputs(names) for example in members]
        columns = {name: tf.constant(padded([row[name] for row in rows])) for name in names}
        outputs = {name: value.numpy() for name, value in signature(**columns).items()}
        yield from (row_of(outputs, row) for row in range(len(rows)))


def _require_better(
    task: Task, better: dict[str, Any], worse: dict[str, Any], names: Iterable[str]
) -> None:
    """Checks that the main metric is better, and no other one worse, among some metrics."""
    for name in names:
        gain = comparable(name, better[name]) - comparable(name, worse[name])
        is_better = gain > 0 if name == metric_of(task, better) else gain > -1e-9
        shown = metric_text(better[name]), metric_text(worse[name])
        values = "{} after training, {} of predictions without text".format(*shown)
        refuse(not is_better, f"expected a better {name} of what is learned, got {values}")


def require_same(value: Any, expected: Any, what: str) -> None:
    """Compares values: the common keys of mappings; lists may be padded, None is any value."""
    if isinstance(expected, dict):
        keys = sorted(value.keys() & expected.keys() - {"id"})
        if keys:
            value, expected = [value[key] for key in keys], [expected[key] for key in keys]
    if isinstance(expected, list) and len(value) >= len(expected):
        for pair in zip(value, expected, strict=False):
            require_same(*pair, what)
    elif isinstance(expected, float):
        is_close = math.isclose(np.max(value), expected, rel_tol=1e-4, abs_tol=2e-5)
        refuse(not is_close, f"{what}: expected {expected}, got {value}")
    else:
        refuse(expected not in (None, value), f"{what}: expected {expected!r}, got {value!r}")
