"""Prediction of task examples through a server."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from official.xlnet.data.examples import Example
from official.xlnet.errors import require_data
from official.xlnet.serving.client.endpoint import Endpoint

_CONCURRENT_REQUESTS = 4


def predict_remotely(
    endpoint: Endpoint, examples: Iterable[Example], input_names: list[str], batch_size: int
) -> Iterator[dict[str, Any]]:
    """Yields a prediction for each example, in order, with several concurrent requests.

    Args:
      endpoint: the served model.
      examples: the examples.
      input_names: names of the signature's inputs, in the order of the texts of an example.
      batch_size: number of examples of a request.

    Raises:
      DataError: an example does not fit the inputs, the server rejects a request, or its answer
        has other shapes than an exported model's.
      ConnectionError: the server is unreachable or fails after all retries.
    """
    examples = iter(examples)
    waiting: collections.deque = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(_CONCURRENT_REQUESTS) as executor:
        while True:
            batch = list(itertools.islice(examples, batch_size))
            if batch:
                rows = [example.inputs(input_names) for example in batch]
                inputs = {name: padded([row[name] for row in rows]) for name in rows[0]}
                waiting.append((batch, executor.submit(endpoint.predict, inputs)))
            while waiting and (not batch or len(waiting) >= _CONCURRENT_REQUESTS):
                examples_of_request, future = waiting.popleft()
                outputs = future.result()
                check_outputs(outputs, len(examples_of_request), endpoint.address)
                for row, example in enumerate(examples_of_request):
                    yield {"id": example.id, **row_of(outputs, row)}
            if not batch:
                return


def padded(column: list[Any]) -> list[Any]:
    """Pads the lists of texts in a column to one length with empty texts; texts stay."""
    if not isinstance(column[0], list):
        return column
    most = max(map(len, column))
    return [texts + [""] * (most - len(texts)) for texts in column]


def check_outputs(outputs: dict[str, np.ndarray], rows: int, address: str) -> None:
    """Checks the shapes of the outputs of a request, which come from a server.

    Args:
      outputs: outputs by name.
      rows: number of rows of the request, B.
      address: address of the server, for the error message.

    Raises:
      DataError: an output has another number of rows, or labels and probabilities do not match.
    """
    for name, value in outputs.items():
        where = f"{address}: output {name!r}"
        has_rows = value.ndim > 0 and len(value) == rows
        require_data(has_rows, where, f"{rows} rows", f"the shape {value.shape}")
    for name, labels in outputs.items():
        if not name.endswith("labels"):
            continue
        probabilities = outputs.get(f"{name.removesuffix('labels')}probabilities")
        are_texts = all(isinstance(label, str | bytes) for label in labels.flat)
        fits = probabilities is None or (
            probabilities.dtype.kind in "fi"
            and probabilities.ndim > 1
            and labels.ndim == 2
            and labels.shape[1] == probabilities.shape[-1]
        )
        require_data(
            are_texts and fits,
            f"{address}: output {name!r}",
            "texts, one for each probability",
            f"{labels.dtype} of the shape {labels.shape}",
        )


def row_of(outputs: dict[str, np.ndarray], row: int) -> dict[str, Any]:
    """Converts one row of outputs to a JSON-serializable prediction.

    Probabilities become a dictionary by label; logits are left out.

    Args:
      outputs: outputs of a request by name, [B, …].
      row: index of the row.
    """
    values = {}
    for name, value in outputs.items():
        if not name.endswith("logits"):
            values[name] = _plain(value[row])
    for name in [name for name in values if name.endswith("labels")]:
        prefix = name.removesuffix("labels")
        probabilities = values.get(f"{prefix}probabilities")
        if probabilities is None or any(isinstance(value, list) for value in probabilities):
            continue
        labels = values.pop(name)
        values[f"{prefix}probabilities"] = dict(zip(labels, probabilities, strict=True))
        if f"{prefix}label" not in values:
            pairs = zip(labels, probabilities, strict=True)
            values[name] = [label for label, p in pairs if p > 0.5]
    return values


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return value.item() if isinstance(value, np.generic) else value
