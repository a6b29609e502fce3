"""Values of pandas, NumPy, Arrow, Polars and TensorFlow as JSON has them."""

from __future__ import annotations

import contextlib
import decimal
import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

_CONVERSIONS = ("to_pylist", "tolist", "to_list", "numpy")  # Of arrays, columns and tensors.
_NO_VALUE = ("NAType", "NaTType")  # Of pandas; they are neither equal to nothing nor to themselves.


def plain(value: Any) -> Any:
    """A value as JSON has it: a string, number, truth value, list or object; None if missing.

    Example:
      >>> plain(np.float32("nan")), plain(b"text"), plain((np.int64(3), "a"))
      (None, 'text', [3, 'a'])
    """
    if isinstance(value, str):
        return str.__str__(value)  # Not as a class of its own, which is shown otherwise.
    if isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, decimal.Decimal | np.floating):
        value = float(value)
    for number_type in (int, float):
        if isinstance(value, number_type) and type(value) is not bool:
            value = number_type(value)  # Not as a class of its own, as above.
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "mM":
        # In nanoseconds, `tolist` returns integers.
        value = value.astype(f"{value.dtype.kind}8[us]")
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
        return value
    if isinstance(value, Mapping):
        return {name: plain(element) for name, element in value.items()}
    if isinstance(value, list | tuple):
        return [plain(element) for element in value]
    if is_column(value):
        return plain(next(getattr(value, name) for name in _CONVERSIONS if hasattr(value, name))())
    is_missing = type(value).__name__ in _NO_VALUE or (isinstance(value, float) and value != value)
    return None if is_missing else value


def field_names(array: Any) -> tuple[str, ...] | None:
    """Returns the names of the fields of a structured array or value; None without any."""
    return getattr(getattr(array, "dtype", None), "names", None)


def is_column(value: Any) -> bool:
    """Whether a value is an array, column or tensor of NumPy, pandas, Arrow, Polars, TensorFlow."""
    return any(hasattr(value, name) for name in _CONVERSIONS) and (
        hasattr(value, "dtype") or hasattr(value, "type")
    )
