"""Labels of tasks: classes and their indices, the scale of numbers, and probabilities."""

from __future__ import annotations

import decimal
import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError, did_you_mean, require_data

LEAST_PROBABILITY = 1e-6  # As predictions are rounded; no model can veto a class.
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?(e[-+]?[0-9]{1,2})?", re.IGNORECASE)
_TRUTH = ("true", "false")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")


def in_order(labels: Iterable[str]) -> list[str]:
    """Returns labels in the order of the alphabet; whole numbers in theirs.

    Example:
      >>> in_order({"10", "9", "b", "a"})
      ['9', '10', 'a', 'b']
    """

    def sort_key(label: str) -> tuple[int, int, str]:
        if _WHOLE.fullmatch(label):
            return 0, int(label), ""
        return 1, 0, label

    return sorted(labels, key=sort_key)


def in_numerical_order(labels: Sequence[str]) -> tuple[str, ...]:
    """Returns classes that are numbers from the lowest to the highest.

    Raises:
      DataError: they are not all numbers, so that their order is unknown.

    Example:
      >>> in_numerical_order(["10", "9.5", "-1"])
      ('-1', '9.5', '10')
    """
    forms = {label: meaning(label) for label in labels}
    require_data(
        all(map(_NUMBER.fullmatch, forms.values())),
        "training data",
        "the order of the classes, as task.labels=[LOWEST,…,HIGHEST] (only numbers have one)",
        ", ".join(labels),
    )
    return tuple(sorted(labels, key=lambda label: decimal.Decimal(forms[label])))


def meaning(label: str) -> str:
    """Returns the canonical form of a label: labels with equal forms are spellings of one.

    Spaces at the ends, composed and invisible characters, and the spelling of numbers and truth
    values make no difference.

    Example:
      >>> meaning("1.0"), meaning(" +1"), meaning("True"), meaning("15e-1"), meaning("01")
      ('1', '1', 'true', '1.5', '01')
    """
    label = unicodedata.normalize("NFKC", label)
    visible = [character for character in label if unicodedata.category(character) != "Cf"]
    label = "".join(visible).strip()
    if _NUMBER.fullmatch(label):
        return f"{decimal.Decimal(label).normalize() + 0:f}"
    return label.lower() if label.lower() in _TRUTH else label


def complete_labels(config: XLNetConfig, labels: Iterable[str]) -> tuple[str, ...]:
    """Returns the labels of the configuration, or of the training data if it has none.

    Args:
      config: the experiment configuration.
      labels: labels that occur in the training data.

    Raises:
      DataError: there are fewer than two labels, one that the configuration does not list, or two
        that look the same.
    """
    where = "training data"
    labels = in_order(set(labels))
    require_data(len(labels) >= 2, where, "at least two classes", ", ".join(labels) or "none")
    listed_labels = config.task.labels
    if listed_labels:
        for label in labels:
            label_index(listed_labels, label, where)
        return listed_labels
    check_forms(labels, where)
    return tuple(labels)


def check_forms(labels: Iterable[str], where: str) -> None:
    """Raises `DataError` if two labels are spellings of one; see `meaning`.

    Args:
      labels: all labels that occur.
      where: names the data in the error.
    """
    label_of_form: dict[str, str] = {}
    for label in labels:
        other = label_of_form.setdefault(meaning(label), label)
        require_data(
            other == label,
            where,
            "labels that differ in more than spaces at their ends, composed or invisible "
            "characters or the form of a number",
            f"{other!a} and {label!a}; write them alike",
        )


def check_hidden(labels: Collection[str]) -> None:
    """Raises `DataError` if a label stands for a missing or hidden one.

    Data sets write them as `-`, as in SNLI, or as -1 beside 0, 1 and 2; -1, 0 and 1 may be classes.

    Args:
      labels: all labels that occur.
    """
    others = [label for label in labels if label not in ("-", "-1")]
    is_counted = len(others) > 2 and set(others) == {str(n) for n in range(len(others))}
    hidden = "-" if "-" in labels else "-1"
    is_suspicious = hidden in labels and len(others) >= 2 and (hidden == "-" or is_counted)
    require_data(
        not is_suspicious,
        "training data",
        "classes",
        f"{hidden!r} beside {', '.join(others[:5])}, as data sets write a missing label; "
        "remove its rows, or list all classes in task.labels",
    )


def error_of_class(probabilities: Any, expected: Any, predicted: Any) -> tuple[float, float]:
    """Returns the error of a predicted class, and its probability.

    See `Task.error_and_probability`.

    Args:
      probabilities: the probability of each class, by name or index.
      expected: name or index of the right class.
      predicted: name or index of the predicted class.

    Example:
      >>> error_of_class({"good": 0.25, "bad": 0.75}, expected="good", predicted="bad")
      (0.75, 0.75)
    """
    error = 0.0 if predicted == expected else 1 - probabilities[expected]
    return error, probabilities[predicted]


def label_index(labels: Sequence[str], label, where: str) -> int:
    """Returns the index of a label.

    Args:
      labels: all labels.
      label: the label to look up.
      where: names the example in the error.

    Raises:
      DataError: `labels` does not contain the label.
    """
    try:
        return labels.index(str(label))
    except ValueError:
        label_meaning = meaning(str(label))
        matches = [
            n for n, known_label in enumerate(labels) if meaning(known_label) == label_meaning
        ]
        if len(matches) == 1:
            return matches[0]
        shown = ", ".join(labels[:10])
        if len(labels) > 10:
            shown += ", …"
        raise DataError(
            f"{where}: expected one of the labels {shown}, got {label!r}"
            f"{did_you_mean(str(label), labels)}"
        ) from None


def combined(table_MC: Sequence[Sequence[float]]) -> np.ndarray:
    """Geometric mean of the probabilities of several models: softmax of the mean of their logs.

    Args:
      table_MC: probabilities of C classes by M models.

    Returns:
      Probabilities, float64 [C].
    """
    return softmax(np.mean(np.log(np.maximum(table_MC, LEAST_PROBABILITY)), axis=0))


def rounded(probability_C: np.ndarray) -> list[float]:
    """Returns probabilities with six digits, for JSON."""
    return [round(float(p), 6) for p in probability_C]


def softmax(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, computed in float64.

    Args:
      logits: float [..., C].

    Returns:
      Probabilities, float64 [..., C].
    """
    from scipy import special

    return special.softmax(logits.astype(np.float64), axis=-1)
