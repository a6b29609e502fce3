"""Predictions by a server: examples in, JSON lines out."""

from __future__ import annotations

import collections
import concurrent.futures
import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import (
    ChoiceExample,
    Example,
    QuestionExample,
    RankingExample,
    TaggedExample,
    TextExample,
)
from official.xlnet.errors import DataError
from official.xlnet.serving.client.endpoint import Endpoint

_TASKS = {
    ("choices", "passage", "question"): "multiple_choice",
    ("context", "question"): "question_answering",
    ("document", "query"): "ranking",
}
_REQUESTS_AT_ONCE = 4


def task_of(input_names: list[str], kind: str | None = None) -> TaskConfig:
    """How a file is read for a signature's inputs.

    Args:
      input_names: names of the inputs.
      kind: kind of task; by default what the names say, else a table with those columns.
    """
    kind = kind or _TASKS.get(tuple(sorted(input_names)), "classification")
    columns = tuple(input_names) if kind == "classification" else ()
    return TaskConfig(name=kind, text_columns=columns)


def predict_remotely(
    endpoint: Endpoint, examples: Iterable[Example], input_names: list[str], batch_size: int
) -> Iterator[dict[str, Any]]:
    """Yields a prediction for each example, in order.

    A few requests are under way at once.

    Args:
      endpoint: the server.
      examples: examples.
      input_names: the signature's inputs, in the order of a text example's texts.
      batch_size: examples of a request.
    """
    examples = iter(examples)
    waiting: collections.deque = collections.deque()
    with concurrent.futures.ThreadPoolExecutor(_REQUESTS_AT_ONCE) as executor:
        while True:
            batch = list(itertools.islice(examples, batch_size))
            if batch:
                inputs = batch_inputs(batch, input_names)
                waiting.append((batch, executor.submit(endpoint.predict, inputs)))
            while waiting and (not batch or len(waiting) >= _REQUESTS_AT_ONCE):
                done, future = waiting.popleft()
                outputs = future.result()
                for row, example in enumerate(done):
                    yield {"id": example.id, **row_of(outputs, row)}
            if not batch:
                return


def batch_inputs(batch: list[Any], input_names: list[str]) -> dict[str, list]:
    """Text inputs of a request; lists of choices are filled up with "" to one length."""
    rows = [_inputs(example, input_names) for example in batch]
    columns: dict[str, list] = {name: [row[name] for row in rows] for name in rows[0]}
    if "choices" in columns:
        most = max(map(len, columns["choices"]))
        columns["choices"] = [row + [""] * (most - len(row)) for row in columns["choices"]]
    return columns


def _inputs(example: Example, input_names: list[str]) -> dict[str, Any]:
    match example:
        case ChoiceExample():
            passage, question = (*example.texts, "")[:2]
            return {"passage": passage, "question": question, "choices": list(example.choices)}
        case QuestionExample():
            return {"question": example.question, "context": example.context}
        case RankingExample():
            return {"query": example.query, "document": example.document}
        case TaggedExample():
            return {input_names[0]: " ".join(example.words)}
        case TextExample():
            if len(example.texts) != len(input_names):
                raise DataError(
                    f"{example.id}: expected the texts {', '.join(input_names)}, got "
                    f"{len(example.texts)} texts"
                )
            return dict(zip(input_names, example.texts, strict=True))


def row_of(outputs: dict[str, np.ndarray], row: int) -> dict[str, Any]:
    """One prediction: probabilities by label, and all other outputs but logits."""
    values = {name: _plain(x[row]) for name, x in outputs.items() if not name.endswith("logits")}
    for name in [name for name in values if name.endswith("labels")]:
        prefix = name.removesuffix("labels")
        probabilities = values.get(f"{prefix}probabilities")
        if probabilities is None or isinstance(probabilities[0], list):
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
