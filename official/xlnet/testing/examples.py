"""Labelled examples for the checks of tasks: other labels, other texts."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np


def part_of(row: Any) -> str:
    """Returns the name of the data set of an example; "" in a task of one data set."""
    return getattr(row, "subtask", "")


def label_of(row: Any) -> Any:
    """Returns the label of an example."""
    return getattr(row, row.label_field)


def with_label(row: Any, label: Any) -> Any:
    """Returns the example with another label."""
    return dataclasses.replace(row, **{row.label_field: label})


def without_label(row: Any, text: str | None) -> Any:
    """Returns the example without a label, and its texts replaced by one, unless that is None."""
    texts = dict[str, Any]()
    for field in dataclasses.fields(row):
        is_text = field.default is dataclasses.MISSING and not field.name.endswith("id")
        if is_text and text is not None:
            value = getattr(row, field.name)
            texts[field.name] = (text,) * len(value) if isinstance(value, tuple) else text
    return with_label(dataclasses.replace(row, **texts), None)


def exchanged(rows: Sequence[Any]) -> list[Any]:
    """Returns the examples with classes or grades in the reverse order: the first is the last."""
    classes_of_parts = _classes_of_parts(rows)
    changed = []
    for row in rows:
        classes = classes_of_parts[part_of(row)]
        changed.append(_replaced(row, dict(zip(classes, classes[::-1], strict=True))))
    return changed


def with_random_labels(rows: Sequence[Any], rng: np.random.Generator) -> list[Any]:
    """Returns the examples with classes or numbers exchanged at random in each of them."""
    classes_of_parts = _classes_of_parts(rows)
    changed = []
    for row in rows:
        classes = classes_of_parts[part_of(row)]
        others = [classes[index] for index in rng.permutation(len(classes))]
        changed.append(_replaced(row, dict(zip(classes, others, strict=True))))
    return changed


def _classes_of_parts(rows: Sequence[Any]) -> dict[str, list[Any]]:
    """The classes or numbers that occur in the labels of each data set, sorted."""
    labels_of_parts: dict[str, list[Any]] = {}
    for row in rows:
        labels_of_parts.setdefault(part_of(row), []).append(label_of(row))
    return {part: np.unique(np.hstack(labels)).tolist() for part, labels in labels_of_parts.items()}


def _replaced(row: Any, new_of_old: Mapping[Any, Any]) -> Any:
    label = label_of(row)
    if isinstance(label, tuple):
        return with_label(row, tuple(new_of_old[item] for item in label))
    return with_label(row, new_of_old[label])
