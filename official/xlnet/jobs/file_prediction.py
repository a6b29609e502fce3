"""`xlnet predict`: predictions for the rows of a file, by models here or on TF Serving."""

from __future__ import annotations

import collections
import dataclasses
import functools
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet.configs.registry import DATASETS, INPUTS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require
from official.xlnet.data.examples import Example
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.json_lines import write_json_lines
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_counts import check_unknown, log_counts
from official.xlnet.data.text_files import Answers, WrongRow, batched, incoming_rows
from official.xlnet.errors import DataError, require_config
from official.xlnet.files.arguments import STANDARD
from official.xlnet.jobs.identity import identity_of_call
from official.xlnet.modeling.kernels.product_type import matmul_precision
from official.xlnet.runtime.progress import per_second

Predict = Callable[[Iterable[Example]], Iterator[dict[str, Any]]]
_STANDARD_INPUT = "standard input"  # In messages.
_REQUESTS = 64  # Whose answers are written together.


@dataclasses.dataclass(frozen=True)
class PredictionCall:
    """The arguments of `official.xlnet.api.predict.predict_file` for models on this machine."""

    model: Sequence[str]
    input: str
    output: str
    shard: str | None
    products: str | None


def predict_here(call: PredictionCall) -> dict[str, Any]:
    """Predicts with models on this machine; see `official.xlnet.api.predict.predict_file`."""
    from official.xlnet.inference.ensemble import Ensemble

    require_json_lines(call.output)
    part, num_parts = _part_of(call.shard)
    ensemble = Ensemble(call.model)
    settings, counts, unit = ensemble.task.config.task, ensemble.task.counts, ensemble.unit
    chunks = _chunks(call.input, settings, part, num_parts, unit, unit)
    identity = identity_of_call()
    with matmul_precision(call.products):
        return _write(call.input, call.output, chunks, ensemble.predict, counts, identity)


def predict_on_server(
    input: str,
    output: str,
    endpoint: str,
    *,
    name: str,
    signature: str,
    task: str | None,
    batch_size: int,
    timeout: float,
    retries: int,
    shard: str | None,
) -> dict[str, Any]:
    """Predicts with a model on TF Serving; see `official.xlnet.api.predict.predict_file`."""
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely

    require_json_lines(output)
    part, num_parts = _part_of(shard)
    server = connect(endpoint, name, signature, timeout, retries)
    names = server.input_names()
    settings = _served_task(task, names, input)
    predict = functools.partial(predict_remotely, server, input_names=names, batch_size=batch_size)
    chunks = _chunks(input, settings, part, num_parts, batch_size, batch_size * _REQUESTS)
    return _write(input, output, chunks, predict, collections.Counter(), None)


def _write(
    input: str,
    output: str,
    chunks: Iterable[list[Example]],
    predict: Predict,
    counts: collections.Counter[str],
    identity: dict[str, Any] | None,
) -> dict[str, Any]:
    """Writes the predictions of chunks of examples; returns the summary of the command."""
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    noun = "" if input == STANDARD else "rows"
    work = Answers(chunks, lambda chunk: list(predict(chunk)), counts, noun=noun)
    with work.resuming(output, identity) as answered:
        write_json_lines(output, _predictions(answered))
    unknown = check_unknown(counts, input)
    log_counts(input, {"rows": work.done, **counts})
    result = {"rows": work.done, "rows_per_second": per_second(work.done - work.kept, start)}
    return result | work.counted() | counts | unknown


def _predictions(
    answered: Iterable[tuple[list[Any], list[dict[str, Any]] | None]],
) -> Iterator[dict[str, Any]]:
    """The predictions of rows; of wrong ones, their errors."""
    for rows, predictions in answered:
        if predictions is None:
            yield from (row.answer() for row in rows)
        else:
            yield from predictions


def _chunks(
    path: str, settings: TaskConfig, part: int, num_parts: int, unit: int, size: int
) -> Iterator[list[Example]]:
    """The examples of a part of a file, of equal numbers of units; or of standard input."""
    if path == STANDARD:
        require_config(num_parts == 1, "shard", "a file to predict a part of", "standard input")
        return _incoming(settings, size)
    first, stop = 0, None
    if num_parts > 1:
        num_units = -(-sum(1 for _ in stream_task(path, settings)) // unit)
        first, stop = (num_units * n // num_parts * unit for n in (part - 1, part))
    return batched(itertools.islice(stream_task(path, settings), first, stop), size)


def _incoming(settings: TaskConfig, size: int) -> Iterator[list[Any]]:
    """The examples of standard input, as they come; of wrong rows, a `WrongRow`."""
    num_read = 0
    examples = _OneByOne(settings)
    for rows in incoming_rows(size):
        chunk = []
        for row in rows:
            chunk.append(examples.example_of(row, num_read))
            num_read += 1
        yield chunk


class _OneByOne:
    """Reads examples of rows that come one by one.

    Args:
      settings: settings of the task.
    """

    def __init__(self, settings: TaskConfig):
        self._settings = settings
        self._waiting: collections.deque[Any] = collections.deque()
        self._examples: Iterator[Example] | None = None

    def example_of(self, row: Any, num_before: int) -> Example | WrongRow:
        """The example of a row, or what is wrong with it.

        Args:
          row: a text, an object with columns, or a `WrongRow`.
          num_before: number of rows before it.
        """
        if isinstance(row, WrongRow):
            self._examples = None  # The next reader counts it.
            return row
        if self._examples is None:
            self._waiting.clear()
            # The readers of tables take one row for each example.
            rows = iter(self._waiting.popleft, None)
            self._examples = stream_task(rows, self._settings, _STANDARD_INPUT, num_before)
        self._waiting.append(row)
        try:
            return next(self._examples)
        except DataError as error:
            self._examples = None  # A reader ends with its first error.
            columns = row if isinstance(row, dict) else {"text": row}
            place = f"{_STANDARD_INPUT}, row {num_before + 1}:"
            return WrongRow(columns, str(error).replace(f"{_STANDARD_INPUT}:", place))


def _part_of(shard: str | None) -> tuple[int, int]:
    """The part and the number of parts.

    Example:
      >>> _part_of("3/16")
      (3, 16)
    """
    match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", shard or "1/1")
    part, parts = map(int, match.groups() if match else (0, 0))
    require(1 <= part <= parts, "shard", "a part of a number of parts, such as 3/16", shard)
    return part, parts


def _served_task(name: str | None, inputs: Sequence[str], path: str) -> TaskConfig:
    """Settings of a served task, by its name, or by the names of its inputs if they identify it."""
    known = DATASETS.find(name or "", {})
    inferred = INPUTS.find(",".join(sorted(inputs)), INPUTS[""])
    task = TaskConfig.create(name=known.get("name", name) or inferred)
    task.columns = known.get("columns", ())
    if task.has_text_columns:
        columns = columns_of(path, task) if path != STANDARD else ()
        if columns:
            task.text_columns = columns_of_inputs(inputs, columns, path)
        elif len(inputs) > 1:  # By name: a server lists its inputs in any order.
            task.text_columns = tuple(inputs)
    return task
