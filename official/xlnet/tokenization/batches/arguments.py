"""Checks of texts and token ids that a user passes to a function."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from official.xlnet.errors import ArgumentTypeError


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Returns a list of Python's strings; raises `TypeError` unless it is a collection of str."""
    refused = bytes | Mapping | set | frozenset
    if (columns := getattr(texts, "columns", getattr(texts, "column_names", None))) is not None:
        raise ArgumentTypeError(
            f"text: expected a str or a list of str, got a {type(texts).__name__}; pass one of its "
            f"columns, such as table[{next(iter(columns), 'text')!r}]"
        )
    if isinstance(texts, refused) or not isinstance(texts, Iterable):
        raise ArgumentTypeError(
            f"text: expected a str or a list of str, got {_type_and_value(texts)}"
        )
    texts = list(texts)
    for text_index, text in enumerate(texts):
        if not isinstance(text, str):
            raise ArgumentTypeError(
                f"text {text_index}: expected a str, got {_type_and_value(text)}"
            )
    # Not as strings of NumPy or of an enumeration, which are shown otherwise.
    return [str.__str__(text) for text in texts]


def _type_and_value(value: object) -> str:
    """Type and value for an error message; says how bytes become text."""
    advice = "; bytes become text with .decode()" if isinstance(value, bytes) else ""
    return f"{type(value).__name__} {value!r:.40}{advice}"


def checked_ids(ids: Any) -> list:
    """Returns a list of Python's integers, or of rows; raises `TypeError` for anything else."""
    if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
        raise ArgumentTypeError(
            f"ids: expected integers or rows of integers, got {_type_and_value(ids)}"
        )
    rows = list(ids if isinstance(ids, list | tuple) else np.asarray(ids))
    if rows and isinstance(rows[0], Iterable):
        return rows
    for i in rows:
        if not isinstance(i, numbers.Integral):
            raise ArgumentTypeError(f"ids: expected integers, got {_type_and_value(i)}")
    return [int(i) for i in rows]
