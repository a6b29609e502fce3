"""Conformance of a task: what every task does, with examples of its own and a tiny random model."""

from __future__ import annotations

import contextlib
import dataclasses
import fnmatch
import inspect
import itertools
import json
import math
import operator
import pathlib
import shutil
import tempfile
import types
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from data_prep.corpus.vocabulary import train_unigram
from official.xlnet.api.finetuning import finetune
from official.xlnet.api.prediction import evaluate, predict
from official.xlnet.checkpoints.any_format import load_config, load_tokenizer
from official.xlnet.configs.base import SETTINGS
from official.xlnet.configs.registry import SERVICES, TASKS
from official.xlnet.errors import XLNetError
from official.xlnet.runtime.history import read_history
from official.xlnet.serving.client.prediction import predict_remotely
from official.xlnet.serving.export import export
from official.xlnet.tasks.reports import PREDICTIONS_FILE
from official.xlnet.tasks.task import Task, comparable, metric_text
from official.xlnet.tokenization.special_tokens import VOCAB_FILE
from official.xlnet.training.finetuning_loop import metric_of

_STEPS, _LENGTH = 60, 71
_SETTINGS = (
    *("num_layers=1", "d_model=16", "num_heads=2", "d_inner=32", "dropout=0", "dropatt=0"),
    *("init_std=0.1", f"max_length={_LENGTH}", "num_buckets=1", "batch_size=8", "warmup_steps=0"),
    *(f"num_steps={_STEPS}", f"checkpoint_steps={_STEPS // 3}", "learning_rate=0.01"),
)
# Texts that say nothing about a label, and that a task has to answer.
_UNUSUAL = ("naïve1,000😀", "한국어" * 40)
_WRONG = {str: "no such class", tuple: ("no such class",), float: math.nan, int: 10**6}


def check_task(name: str, set: Sequence[str] = ()) -> None:
    """Checks a fine-tuning task on the examples that its class declares as `typical`.

    A tiny random model has to learn them, also with their classes exchanged: its main metric is
    better than without their texts, no metric is better for wrong classes. Its run, resumed in the
    middle, has the same losses. Prediction, evaluation, the Keras model and the exported model
    agree, also about unusual texts. Wrong and missing labels are refused; settings have ranges.

    Args:
      name: the name that the task is registered under.
      set: further settings, as `key=value`.

    Raises:
      AssertionError: the task fails a check, which the message names.

    Example:
      >>> check_task("classification")
    """
    try:
        with tempfile.TemporaryDirectory() as folder:
            _check(name, TASKS[name], pathlib.Path(folder), [*_SETTINGS, *set])
    except Exception as error:
        what = str(error) if isinstance(error, AssertionError) else repr(error)
        raise AssertionError(f"task {name!r}: {what}") from error


def _check(name: str, kind: type[Task], folder: pathlib.Path, settings: list[str]) -> None:
    """Trains on the examples, again from the middle, and with their classes exchanged."""
    rows: list[Any] = sorted(kind.typical, key=_part)
    _require(rows, f"expected labelled examples as {kind.__name__}.typical, got none")
    own: Any = SETTINGS.get(f"task.name={name}", object)  # With its own keys, if it has any.
    kinds = inspect.get_annotations(own, eval_str=True)
    without = {key for key in kinds if kinds[key] in (int, float)}
    _require(not without, f"expected a range in {own.__name__}, e.g. Range(0, 9), for {without}")
    vocab, evaluated, calls = folder / VOCAB_FILE, kind.evaluate, itertools.count()
    vocab.write_bytes(train_unigram([*map(repr, rows)], 200, allow_fewer=True))

    def tune(examples: list[Any], model: str) -> tuple[dict[str, Any], list[float]]:
        parts = {part: [*of] for part, of in itertools.groupby(examples, _part)}
        data, output = parts.get("", parts), str(folder / model)
        tuned = finetune(None, data, data, output, task=name, set=settings, vocab=str(vocab))
        return tuned, [line["loss"] for line in read_history(output)]

    def evaluate_and_copy(*arguments: Any) -> dict[str, float | None]:
        if next(calls) == 1:  # What the first evaluation saved is there.
            shutil.copytree(folder / "model", folder / "resumed")
        return evaluated(*arguments)

    with mock.patch.object(kind, "evaluate", evaluate_and_copy):
        tuned, losses = tune(rows, "model")
    first, last = np.mean(losses[:9]), np.mean(losses[-9:])
    _require(last < 0.8 * first, f"expected a loss that falls, got {first:.4f}, then {last:.4f}")
    require_same(tune(rows, "resumed")[1], losses, "losses of a resumed run")
    task = kind(load_config(str(folder / "model")), load_tokenizer(str(folder / "model")))
    right = _check_model(task, folder / "model", rows, tuned)
    if (others := _exchanged(rows)) != rows:
        tune(others, "exchanged")
        _require_better(task, others, predict(str(folder / "exchanged"), others), right, every=True)


def _check_model(
    task: Task, folder: pathlib.Path, rows: list[Any], tuned: dict[str, Any]
) -> list[dict[str, Any]]:
    """Compares all that gives predictions or metrics; returns the predictions of the examples."""
    unlabelled, model = [_with_label(row, None) for row in rows], str(folder)
    examples = unlabelled + [_with_text(row, text) for text in _UNUSUAL for row in unlabelled]
    found = predict(model, examples)
    right, *others = (found[n : n + len(rows)] for n in range(0, len(found), len(rows)))
    values = task.evaluate(rows, right)
    unknown = [x for x in values if not any(fnmatch.fnmatchcase(x, y) for y in task.metrics)]
    _require(not unknown, f"expected {unknown} among the declared `metrics`, got {task.metrics}")
    require_same(evaluate(model, rows), values, "metrics of `evaluate`")
    require_same(tuned, values, "metrics of `finetune`")
    lines = (folder / PREDICTIONS_FILE).read_text(encoding="utf-8").splitlines()
    require_same([*map(json.loads, lines)], right, "predictions of the Keras model")
    for other in others:
        wrong = [x | {"id": row.id} for x, row in zip(other, rows, strict=True)]
        _require_better(task, rows, right, wrong)
    with contextlib.suppress(XLNetError):  # An empty text is answered or refused.
        predict(model, [_with_text(row, "") for row in unlabelled])
    for label in (None, _WRONG.get(type(_label(rows[0])))):
        with contextlib.suppress(XLNetError):
            evaluate(model, [_with_label(rows[0], label)])
            _require(False, f"expected an error for the label {label}, got none")
    if task.config.task.name in SERVICES.names():
        answers = [*_answers(model, str(folder / "exported"), examples)]
        require_same(answers, found, "answers of the exported model")
    return right


def _answers(model: str, output: str, examples: list[Any]) -> Iterator[dict[str, Any]]:
    """Answers of the exported model."""
    served = tf.saved_model.load(export(model, output, buckets=[_LENGTH])["path"]).signatures
    for part, members in itertools.groupby(examples, _part):
        signature = served[part or "serving_default"]

        def predict_rows(inputs: dict[str, Any], run: Any = signature) -> dict[str, Any]:
            outputs = run(**{name: tf.constant(value) for name, value in inputs.items()})
            return {name: value.numpy() for name, value in outputs.items()}

        endpoint: Any = types.SimpleNamespace(address="exported model", predict=predict_rows)
        names = sorted(signature.structured_input_signature[1])
        yield from predict_remotely(endpoint, members, names, len(examples))


def _require_better(
    task: Task, rows: list[Any], right: list[Any], wrong: list[Any], every: bool = False
) -> None:
    """Checks that the main metric of right predictions is better; if asked, that none is worse."""
    better, worse = task.evaluate(rows, right), task.evaluate(rows, wrong)
    metric = metric_of(task, better)
    for name in better.keys() & worse.keys() if every else {metric}:
        gain = comparable(name, better[name]) - comparable(name, worse[name])
        shown = metric_text(better[name]), metric_text(worse[name])
        values = "{} after training, {} of predictions without text".format(*shown)
        is_better = gain > 0 if name == metric else gain > -1e-9
        _require(is_better, f"expected a better {name} of what is learned, got {values}")


def _exchanged(rows: list[Any]) -> list[Any]:
    """The examples with their classes or grades in the reverse order: the first one is the last."""
    known = sorted({(_part(row), item) for row in rows for item in _items(_label(row))})
    others = dict(zip(known, sorted(known[::-1], key=operator.itemgetter(0)), strict=True))
    changed = []
    for row in rows:
        items = tuple(others[_part(row), item][1] for item in _items(_label(row)))
        changed.append(_with_label(row, items if isinstance(_label(row), tuple) else items[0]))
    return changed


def _part(row: Any) -> str:
    """The data set of an example of `multitask`."""
    return getattr(row, "subtask", "")


def _label(row: Any) -> Any:
    return getattr(row, row.label_field)


def _items(label: Any) -> tuple:
    return label if isinstance(label, tuple) else (label,)


def _with_label(row: Any, label: Any) -> Any:
    return dataclasses.replace(row, **{row.label_field: label})


def _with_text(row: Any, text: str) -> Any:
    """An example with one text in place of each of its own, the fields without a default."""
    fields = dataclasses.fields(row)
    changes = {x.name: x.default for x in fields if x.name != "subtask"}
    for name in [x.name for x in fields if x.default is dataclasses.MISSING]:
        value = getattr(row, name)
        texts = (text,) * len(value) if isinstance(value, tuple) else text
        changes[name] = value if name.endswith("id") else texts
    return dataclasses.replace(row, **changes | {"id": f"{row.id}, {text}"})


def _require(holds: object, sentence: str) -> None:
    if not holds:
        raise AssertionError(sentence)


def require_same(found: Any, expected: Any, what: str) -> None:
    """Compares values: of mappings what both have; lists may be padded, None is any value."""
    if isinstance(expected, dict):
        keys = sorted(found.keys() & expected.keys() - {"id"})
        found, expected = ([each[key] for key in keys] or each for each in (found, expected))
    if isinstance(expected, list) and len(found) >= len(expected):
        for pair in zip(found, expected, strict=False):
            require_same(*pair, what)
    elif isinstance(expected, float):
        is_close = math.isclose(np.max(found), expected, rel_tol=1e-4, abs_tol=2e-5)
        _require(is_close, f"{what}: expected {expected}, got {found}")
    else:
        _require(expected in (None, found), f"{what}: expected {expected!r}, got {found!r}")
