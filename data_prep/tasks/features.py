"""Features of columns, as data sets of HF and TFDS describe them: the names of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def class_names(features: Mapping[str, Any]) -> dict[str, Sequence[str]]:
    """Names of classes by column.

    Args:
      features: features of HF `datasets` or TFDS, as objects or JSON.

    Example:
      >>> class_names({"tags": {"_type": "List", "feature": {"names": ["O", "B-PER"]}}, "text": {}})
      {'tags': ['O', 'B-PER']}
    """
    names: dict[str, Sequence[str]] = {}
    for column, feature in features.items():
        while isinstance(feature, list) or _part(feature, "feature"):
            feature = feature[0] if isinstance(feature, list) else _part(feature, "feature")
        names_of_column = _part(feature, "names")
        if isinstance(names_of_column, list):
            names[column] = names_of_column
    return names


def _part(feature: Any, name: str) -> Any:
    return feature.get(name) if isinstance(feature, dict) else getattr(feature, name, None)
