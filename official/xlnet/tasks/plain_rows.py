"""Parts of plain rows of Python, as a program has them: texts, and names of classes."""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from official.xlnet.errors import ArgumentTypeError, DataError


def texts_of(parts: Any, number: int) -> tuple[str, ...]:
    """Returns the texts of a row.

    Args:
      parts: a list, tuple or array of strings.
      number: number of the row, for the error message.

    Raises:
      TypeError: it is not.
    """
    parts = parts.tolist() if isinstance(parts, np.ndarray) else parts
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ArgumentTypeError(f"example {number}: expected strings, got {parts!r:.60}")
    return tuple(parts)


def class_name(label: Any, number: int) -> str:
    """Returns the name of a class, which may be a number.

    Args:
      label: the label.
      number: number of the row, for the error message.

    Raises:
      DataError: it is missing: None, NaN or an empty name.
    """
    is_name = isinstance(label, str | np.generic | numbers.Real) and label == label  # NaN is not.
    if not is_name or not str(label).strip():
        raise DataError(
            f"example {number}: expected a label, the name of a class, got {label!r:.60}"
        )
    return str(label)
