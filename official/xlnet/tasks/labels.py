"""Labels of tasks: classes and their indices, the scale of numbers, and probabilities."""

from __future__ import annotations

import decimal
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, cast

import numpy as np

from official.xlnet.configs.experiment import XLNetConfig
from official.xlnet.errors import DataError, did_you_mean, require_data

_FLOAT32_RESOLUTION = 1e-5  # With two digits more than float32 has, for errors of a percent.
LEAST_PROBABILITY = 1e-6  # As predictions are rounded; no model can veto a class.
_NUMBER = re.compile(r"[-+]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?(e[-+]?[0-9]{1,2})?", re.IGNORECASE)
_TRUTH = ("true", "false")
_WHOLE = re.compile(r"-?(0|[1-9][0-9]{0,17})")
_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": lambda name: int(meaning(name)),
    "float": float,
    "bool": lambda name: meaning(name) == "true",
}
_LEAST_SCALE = 1e-18  # Its square is a normal number of float32.


def in_order(labels: Iterable[str]) -> list[str]:
    """Returns labels in the order of the alphabet; whole numbers in theirs.

    Example:
      >>> in_order({"10", "9", "b", "a"})
      ['9', '10', 'a', 'b']
    """
    return sorted(
        labels, key=lambda label: (0, int(label), "") if _WHOLE.fullmatch(label) else (1, 0, label)
    )


def meaning(label: str) -> str:
    """What a label says, in whichever way it is written.

    Spaces at its ends, composed and invisible characters, the form of a number and letters of a
    truth value do not count.

    Example:
      >>> meaning("1.0"), meaning(" +1"), meaning("True"), meaning("15e-1"), meaning("01")
      ('1', '1', 'true', '1.5', '01')
    """
    label = unicodedata.normalize("NFKC", label)
    label = "".join(each for each in label if unicodedata.category(each) != "Cf").strip()
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
    found = in_order(set(labels))
    require_data(
        len(found) >= 2, "training data", "at least two classes", ", ".join(found) or "none"
    )
    listed = config.task.labels
    for label in found if listed else ():
        label_index(listed, label, "training data")
    if not listed:
        check_forms(found, "training data")
    return listed or tuple(found)


def check_forms(found: Iterable[str], where: str) -> None:
    """Raises `DataError` if two labels say the same; see `meaning`.

    Args:
      found: all labels that occur.
      where: names the data in the error.
    """
    forms: dict[str, str] = {}
    for label in found:
        other = forms.setdefault(meaning(label), label)
        require_data(
            other == label,
            where,
            "labels that differ in more than spaces at their ends, composed or invisible "
            "characters or the form of a number",
            f"{other!a} and {label!a}; write them alike",
        )


def check_hidden(found: Collection[str]) -> None:
    """Raises `DataError` for what data sets write for a label that is missing or hidden.

    That is `-`, as in SNLI, and -1 beside 0, 1 and 2; -1, 0 and 1 may be classes.

    Args:
      found: all labels that occur.
    """
    others = [label for label in found if label not in ("-", "-1")]
    is_counted = set(others) == {str(n) for n in range(len(others))} and len(others) > 2
    hidden = "-" if "-" in found else "-1"
    require_data(
        hidden not in found or len(others) < 2 or not (hidden == "-" or is_counted),
        "training data",
        "classes",
        f"{hidden!r} beside {', '.join(others[:5])}, as data sets write a missing label; "
        "remove its rows, or list all classes in task.labels",
    )


def judged(probabilities: Any, expected: Any, predicted: Any) -> tuple[float, float]:
    """Returns how wrong the prediction of a class is, and its probability; see `Task.judge`.

    Args:
      probabilities: the probability of each class, by name or index.
      expected: name or index of the right class.
      predicted: name or index of the predicted class.

    Example:
      >>> judged({"good": 0.25, "bad": 0.75}, "good", "bad"), judged([0.875, 0.125], 0, 0)
      ((0.75, 0.75), (0.0, 0.875))
    """
    wrong = 0.0 if predicted == expected else 1 - probabilities[expected]
    return wrong, probabilities[predicted]


def target_of(labels: Sequence[float], where: str) -> tuple[float, float]:
    """Returns mean and standard deviation of the labels of a regression.

    Args:
      labels: the training labels.
      where: names the data in the error.

    Raises:
      DataError: the labels are the same, or differ by less than float32 resolves.

    Example:
      >>> target_of([1150.0, 3300.0], "training data")
      (2225.0, 1075.0)
    """
    values = np.array(labels, np.float64)
    require_data(np.ptp(values) != 0, where, "at least two different labels", "one")
    mean, scale = float(np.mean(values)), float(np.std(values))
    least = max(_FLOAT32_RESOLUTION * abs(mean), _LEAST_SCALE)
    require_data(
        scale >= least,
        where,
        f"labels whose standard deviation is at least {least:.1g}, as they are about {mean:g} "
        "and computed in float32",
        f"{scale:.1g}; subtract a constant from the labels, or multiply them by one",
    )
    return mean, scale


def complete_target(config: XLNetConfig, labels: Sequence[float]) -> None:
    """Sets `task.target_means` and `task.target_scales`, unless set; see `target_of`."""
    target, task = target_of(labels, "training data"), cast(Any, config.task)
    if not task.target_means:
        task.target_means, task.target_scales = target[:1], target[1:]


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
        alike = [n for n, known in enumerate(labels) if meaning(known) == meaning(str(label))]
        if len(alike) == 1:
            return alike[0]
        shown = ", ".join(labels[:10]) + (", …" if len(labels) > 10 else "")
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


def type_of_labels(kinds: Collection[type]) -> str:
    """Returns `task.label_type` of labels of Python, from the types of all of them.

    Example:
      >>> type_of_labels({int}), type_of_labels({int, float}), type_of_labels({bool, str})
      ('int', 'float', 'str')
    """
    if kinds and {*kinds} <= {int, float}:
        return "float" if float in kinds else "int"
    return "bool" if {*kinds} == {bool} else "str"


def with_label_type(prediction: dict[str, Any], kind: str) -> dict[str, Any]:
    """Returns a prediction whose classes equal the labels of the rows that they were learnt from.

    Args:
      prediction: prediction of a task; names of classes are strings.
      kind: `task.label_type`.

    Example:
      >>> with_label_type({"label": "1", "probabilities": {"0": 0.1, "1": 0.9}}, "int")
      {'label': 1, 'probabilities': {0: 0.1, 1: 0.9}}
    """

    def typed(name: str) -> Any:
        try:
            return _TYPES[kind](name)
        except ValueError:  # A class that is not from the rows.
            return name

    found = dict(prediction)
    if "label" in found:
        found["label"] = typed(found["label"])
    if "labels" in found:
        found["labels"] = [typed(name) for name in found["labels"]]
    if isinstance(found.get("probabilities"), dict):
        found["probabilities"] = {typed(name): p for name, p in found["probabilities"].items()}
    return found


def rounded(probability_C: np.ndarray) -> list[float]:
    """Returns probabilities with six digits, for JSON."""
    return [round(float(p), 6) for p in probability_C]


def mean_score(predictions: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Combines the predictions of several models that have a `score`.

    Example:
      >>> mean_score([{"id": "1", "score": 1.0}, {"id": "1", "score": 2.0}])
      {'id': '1', 'score': 1.5}
    """
    return {**predictions[0], "score": float(np.mean([p["score"] for p in predictions]))}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Softmax over the last axis, computed in float64.

    Args:
      logits: float [..., C].

    Returns:
      Probabilities, float64 [..., C].
    """
    from scipy import special

    return special.softmax(logits.astype(np.float64), axis=-1)
