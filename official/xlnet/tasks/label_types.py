"""Types of the labels in rows of Python, which predictions have, too."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from official.xlnet.tasks.labels import meaning

_TYPES: dict[str, Callable[[str], Any]] = {
    "str": str,
    "int": lambda name: int(meaning(name)),
    "float": float,
    "bool": lambda name: meaning(name) == "true",
}


def type_of_labels(types: Collection[type]) -> str:
    """Returns `task.label_type` of labels of Python, from the types of all of them.

    Example:
      >>> type_of_labels({int}), type_of_labels({int, float}), type_of_labels({bool, str})
      ('int', 'float', 'str')
    """
    if types and {*types} <= {int, float}:
        return "float" if float in types else "int"
    return "bool" if {*types} == {bool} else "str"


def with_label_type(prediction: dict[str, Any], label_type: str) -> dict[str, Any]:
    """Returns a prediction whose classes have the type of the labels in the training rows.

    Args:
      prediction: prediction of a task; names of classes are strings.
      label_type: `task.label_type`.

    Example:
      >>> with_label_type({"label": "1", "probabilities": {"0": 0.1, "1": 0.9}}, "int")
      {'label': 1, 'probabilities': {0: 0.1, 1: 0.9}}
    """

    def typed(name: str) -> Any:
        try:
            return _TYPES[label_type](name)
        except ValueError:  # A class that is not from the rows.
            return name

    prediction = dict(prediction)
    if "label" in prediction:
        prediction["label"] = typed(prediction["label"])
    if "labels" in prediction:
        prediction["labels"] = [typed(name) for name in prediction["labels"]]
    probabilities = prediction.get("probabilities")
    if isinstance(probabilities, dict):
        prediction["probabilities"] = {typed(name): p for name, p in probabilities.items()}
    return prediction
