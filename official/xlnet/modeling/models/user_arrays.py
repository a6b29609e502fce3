"""Inputs and labels as users have them, in the forms that Keras takes.

Keras takes no lists beside arrays, reads a list as several inputs, and Keras 3 takes no arrays of
texts. Here, a list has one element a row.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np
import tensorflow as tf

from official.xlnet.errors import ConfigError, DataError, require_config, require_data
from official.xlnet.modeling.ops.forked_processes import may_use_tensorflow
from official.xlnet.tokenization.special_tokens import PAD_ID

_TEXT_KINDS = "USTO"  # NumPy's kinds of arrays of texts, or of any objects.
_OF_SEVERAL = "of several texts a tuple of their lists or a dictionary by column"


def as_arrays(data: Any, where: str) -> Any:
    """Returns data with arrays for lists and columns of pandas, and tensors for texts.

    Args:
      data: a list, array or column of one element a row, or a tuple or dictionary of them. Rows of
        token ids may have several lengths: they become a ragged tensor.
      where: `inputs` or `labels`, for messages.

    Raises:
      DataError: a row has no value, or rows are of several types.
      ConfigError: the data is a single text, or a list of several inputs.

    Example:
      >>> as_arrays([[5, 17], [8, 4, 3]], "inputs")
      <tf.RaggedTensor [[5, 17], [8, 4, 3]]>
    """
    require_config(
        not isinstance(data, str | bytes), where, "a list of texts", f"one text, {data!r:.50}"
    )
    if isinstance(data, dict):
        return {name: as_arrays(value, where) for name, value in data.items()}
    if isinstance(data, tuple):
        require_config(
            not any(isinstance(x, str | bytes) for x in data),
            where,
            f"a list of texts, {_OF_SEVERAL}",
            f"a tuple of texts, {data!r:.50}",
        )
        return tuple(as_arrays(x, where) for x in data)
    if isinstance(data, list):
        return _rows(data, where)
    if hasattr(data, "iloc") and getattr(data, "ndim", 1) == 2 and where == "inputs":
        return {str(name): as_arrays(data[name], where) for name in data.columns}
    if hasattr(data, "to_numpy"):
        data = data.to_numpy()
    if isinstance(data, np.ndarray) and data.dtype.kind in _TEXT_KINDS:
        return _objects(data, where)
    return data


def _rows(rows: list, where: str) -> Any:
    """An array of the elements of a list."""
    if not any(_has_elements(row) for row in rows):
        values = np.empty(len(rows), object)
        values[:] = rows
        return _objects(values, where)
    if not all(_has_elements(row) for row in rows):
        number = next(i for i, row in enumerate(rows, start=1) if not _has_elements(row))
        raise DataError(f"{where}: expected lists in all rows, got {rows[number - 1]!r:.50}")
    if any(isinstance(row, dict) or not hasattr(row, "__len__") for row in rows):
        return rows
    try:
        arrays = [np.asarray(row) for row in rows]
    except ValueError:  # Their own rows have several lengths.
        raise DataError(f"{where}: expected an array, or rows of token ids") from None
    if any(array.dtype.kind in _TEXT_KINDS for array in arrays):
        raise ConfigError(
            f"{where}: expected a list of texts, {_OF_SEVERAL}, got a list of lists, "
            f"{rows[0]!r:.50}, …"
        )
    are_inputs = arrays[0].ndim > 1 and not isinstance(rows[0], list | tuple)
    require_config(
        not are_inputs,
        where,
        "an array [rows, tokens], or a dictionary of them by name",
        f"a list of {len(rows)} arrays of {arrays[0].ndim} axes",
    )
    if len({array.shape for array in arrays}) == 1:
        return np.stack(arrays)
    require_data(
        where == "inputs" and all(array.ndim == 1 for array in arrays),
        where,
        "rows of one length",
        f"rows of the shapes {arrays[0].shape}, {arrays[1].shape}, …",
    )
    require_one_length_in_workers(is_worker=not may_use_tensorflow())
    values = np.concatenate([array for array in arrays if array.size])
    return tf.RaggedTensor.from_row_lengths(values, [len(array) for array in arrays])


def require_one_length_in_workers(is_worker: bool) -> None:
    """Raises `DataError` for rows of several lengths in a worker process of a `PyDataset`."""
    require_data(
        not is_worker,
        "inputs",
        "rows of one length, as worker processes (use_multiprocessing) return arrays",
        f"rows of several lengths: pad them on the left with <pad>, {PAD_ID}",
    )


def _has_elements(row: Any) -> bool:
    """Whether a row is a list, array or tensor, and not a text, a number or nothing."""
    if isinstance(row, np.ndarray | tf.Tensor):
        return len(row.shape) > 0
    return isinstance(row, list | tuple | dict)


def _objects(values: np.ndarray, where: str) -> Any:
    """Texts as a tensor, other objects as an array of numbers."""
    elements = values.reshape(-1).tolist()
    if all(isinstance(x, str | bytes) for x in elements):
        return _text_tensor(values)
    if any(_has_elements(x) for x in elements):
        return _rows(elements, where)
    are_texts = any(isinstance(x, str | bytes) for x in elements)
    for row, x in enumerate(elements, start=1):
        is_right = isinstance(x, str | bytes if are_texts else numbers.Number | np.bool_)
        expected = "a text in each row" if are_texts else "a number in each row"
        require_data(is_right, where, expected, f"{x!r:.50} in row {row}")
    return np.array(elements).reshape(values.shape)


def _text_tensor(texts: np.ndarray) -> tf.Tensor | np.ndarray:
    """Texts as a tensor; in a worker process of a `PyDataset`, an array of objects."""
    texts = texts.astype(object)
    return tf.constant(texts, tf.string) if may_use_tensorflow() else texts
