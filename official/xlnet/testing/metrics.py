"""Conformance of the metrics of a task: each is computed in another way, of random labels."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.tasks.task import Prediction, Task
from official.xlnet.testing.examples import with_random_labels
from official.xlnet.testing.objectives import refuse

# Computes a metric from labelled examples and their predictions; None or NaN: it is undefined.
Oracle = Callable[[Sequence[Any], Sequence[Prediction]], float | None]
_ROUNDS = 11
_PACKAGE = "official.xlnet."


def require_oracles(
    task_class: type[Task], name: str, oracles: Mapping[str, Oracle] | None
) -> Mapping[str, Oracle]:
    """Returns an oracle for each metric that a task declares; {} where this package's tests do.

    Args:
      task_class: the class of the task.
      name: the name that it is registered under.
      oracles: see `check_task`.

    Raises:
      AssertionError: a metric has no oracle, or an oracle is of no declared metric.
    """
    if oracles is None:
        owner = next(part for part in task_class.__mro__ if "evaluate" in vars(part))
        if owner.__module__.startswith(_PACKAGE):
            return {}
        oracles = {}
    for metric in task_class.metrics:
        is_known = any(_matches(oracle, metric) for oracle in oracles)
        refuse(not is_known, _missing(name, metric))
    for oracle in oracles:
        is_declared = any(_matches(oracle, metric) for metric in task_class.metrics)
        expected = f"expected oracles of {', '.join(task_class.metrics)}"
        refuse(not is_declared, f"{expected}, got one of {oracle!r}")
    return oracles


def check_metrics(
    task: Task,
    name: str,
    oracles: Mapping[str, Oracle],
    rows: Sequence[Any],
    predictions: Sequence[Sequence[Prediction]],
) -> None:
    """Compares each metric with its oracle, and finds metrics that depend on the order of classes.

    Args:
      task: the task.
      name: the name that it is registered under.
      oracles: oracles of `require_oracles`.
      rows: labelled examples.
      predictions: several predictions for each example: lists in the order of `rows`.

    Raises:
      AssertionError: a metric has another value than its oracle, or depends on the order of
        classes, which the task does not declare.
    """
    rng = np.random.default_rng(0)
    reordered = _with_reordered_classes(task)
    for _ in range(_ROUNDS):
        labelled = with_random_labels(rows, rng)
        of_rows = [
            choices[rng.integers(len(choices))] for choices in zip(*predictions, strict=True)
        ]
        values = task.evaluate(labelled, of_rows)
        for metric, value in values.items() if oracles else ():
            oracle = oracles.get(metric)
            refuse(oracle is None, _missing(name, metric))
            if oracle is not None:
                expected = oracle(labelled, of_rows)
                what = f"expected {expected} as its oracle computes, got {value}"
                refuse(not _is_same(value, expected), f"{metric} of random labels: {what}")
        if reordered is not None:
            for metric, value in reordered.evaluate(labelled, of_rows).items():
                what = "depends on the order of the classes: set has_ordered_classes = True in"
                is_other = not _is_same(value, values[metric])
                refuse(is_other, f"{metric} {what} {type(task).__name__}")


def _with_reordered_classes(task: Task) -> Task | None:
    """The task with its classes in another order, which is not the reverse one.

    None if the order has a meaning: that of two classes chooses the positive one.
    """
    labels = task.config.task.labels
    if task.has_ordered_classes or len(labels) < 3:
        return None
    config = XLNetConfig.from_dict({}, base=task.config)
    config.task.labels = (*labels[1:], labels[0])
    return type(task)(config, task.tokenizer)


def _matches(oracle: str, metric: str) -> bool:
    """Whether the name of an oracle is that of a declared metric, where `*` is anything."""
    return fnmatch.fnmatchcase(oracle, metric)


def _missing(name: str, metric: str) -> str:
    return (
        f"expected an oracle of the metric {metric!r}, which computes it in another way: write "
        f"check_task({name!r}, oracles={{{metric!r}: FUNCTION}}), where FUNCTION(examples, "
        "predictions) returns its value, by scikit-learn, scipy or a formula in NumPy"
    )


def _is_same(value: float | None, expected: float | None) -> bool:
    if value is None or math.isnan(value):
        return expected is None or math.isnan(expected)
    if expected is None:
        return False
    return math.isclose(value, expected, rel_tol=1e-5, abs_tol=1e-7)
