"""`xlnet predict`: predictions for the rows of a file, by models here or on TF Serving."""

from __future__ import annotations

import collections
import functools
import inspect
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.registry import DATASETS, INPUTS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require
from official.xlnet.data.examples import Example
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.lost_rows import check_unknown, log_counts
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_files import Answers, batched, incoming_rows, write_json_lines
from official.xlnet.errors import require_config
from official.xlnet.files.arguments import STANDARD, OutputFile, Path
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.jobs.identity import identity_of
from official.xlnet.runtime.progress import per_second

Predict = Callable[[Iterable[Example]], Iterator[dict[str, Any]]]
_REQUESTS = 64  # Whose answers are written together.
_KEYS_OF = {
    "model": ("products",),
    "endpoint": ("name", "signature", "task", "timeout", "retries"),
}


@public()
def predict_file(
    input: Path,
    output: OutputFile,
    model: Sequence[Path] = (),
    endpoint: str | None = None,
    name: str = "model",
    signature: str = "serving_default",
    task: str | None = None,
    batch_size: Annotated[int, Range(1, 65_536)] = 32,
    timeout: Annotated[float, Range(0.001, 100_000)] = 60.0,
    retries: Annotated[int, Range(0, 1000)] = 5,
    shard: str | None = None,
    products: Annotated[str, OneOf(PRODUCTS)] | None = None,
) -> dict[str, Any]:
    """Predicts with a fine-tuned model: locally, or on a TF Serving endpoint.

    Reads a file of any size and writes predictions as JSON lines, in order. To resume a killed
    command with local models, run it again.

    Args:
      input: input file, folder or tfds:NAME:SPLIT; - for standard input, of lines of text or of
        JSON objects.
      output: output file (JSON lines); - for standard output.
      model: model directory, for local prediction; repeat it to combine the predictions of several
        models (an ensemble).
      endpoint: TF Serving endpoint: host:port of gRPC.
      name: name of the model on the server.
      signature: serving signature.
      task: task type or data set of the served model; default: by the signature.
      batch_size: rows of a request to the server.
      timeout: timeout per attempt, in seconds.
      retries: maximum number of retries of a request.
      shard: part of the rows to predict, 3/16 for the third of sixteen; default: all.
      products: type of the operands of matrix products, see `matmul_precision`; default: float32.

    Returns:
      `rows`, `rows_per_second` and counts of truncated inputs.

    Example:
      $ xlnet predict --model=runs/sst2 --input=new.tsv --output=new.jsonl
    """
    arguments, parameters = locals(), inspect.signature(predict_file).parameters
    from official.xlnet.modeling.kernels.product_type import matmul_precision

    require_config(
        bool(model) != bool(endpoint), "model and endpoint", "one of them", "both or none"
    )
    used, other = ("endpoint", "model") if endpoint else ("model", "endpoint")
    for key in _KEYS_OF[other]:
        require(arguments[key] == parameters[key].default, key, f"{other}, which reads it", used)
    require_json_lines(output)
    part, num_parts = _part_of(shard)
    counts: collections.Counter[str] = collections.Counter()
    if endpoint:
        from official.xlnet.serving.client.endpoint import connect
        from official.xlnet.serving.client.prediction import predict_remotely

        server, unit = connect(endpoint, name, signature, timeout, retries), batch_size
        names = server.input_names()
        settings = _served_task(task, names, input)
        predict: Predict = functools.partial(
            predict_remotely, server, input_names=names, batch_size=batch_size
        )
        size, identity = unit * _REQUESTS, None
    else:
        from official.xlnet.inference.ensemble import Ensemble

        ensemble = Ensemble(model)
        settings, counts = ensemble.task.config.task, ensemble.task.counts
        predict, unit = ensemble.predict, ensemble.unit
        size, identity = unit, identity_of(output, input, model, unit, shard, products)
    chunks = _chunks(input, settings, part, num_parts, unit, size)
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)
    work = Answers(
        chunks, lambda chunk: list(predict(chunk)), counts, noun="rows" * (input != STANDARD)
    )
    with matmul_precision(products), work.to(output, identity) as answered:
        write_json_lines(output, (row for _, answers in answered for row in answers))
    rate = per_second(work.done - work.kept, start)
    unknown = check_unknown(counts, input) if model else {}
    log_counts(input, {"rows": work.done, **counts})
    resumed = {"resumed_rows": work.kept} if work.kept else {}
    return {"rows": work.done, "rows_per_second": rate, **resumed, **counts, **unknown}


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


def _incoming(settings: TaskConfig, size: int) -> Iterator[list[Example]]:
    """The examples of standard input, as they come."""
    waiting: collections.deque[Any] = collections.deque()
    # The readers of tables take one row for each example.
    examples = stream_task(iter(waiting.popleft, None), settings, "standard input")
    for rows in incoming_rows(size):
        waiting.extend(rows)
        yield [next(examples) for _ in rows]


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
    """The settings of a served task: by its name, or by its inputs, if these are a task's own."""
    known = DATASETS.find(name or "", {})
    inferred = INPUTS.find(",".join(sorted(inputs)), INPUTS[""])
    task = TaskConfig(name=known.get("name", name) or inferred)
    task.columns = known.get("columns", ())
    if task.has_text_columns:
        columns = columns_of(path, task) if path != STANDARD else ()
        if columns:
            task.text_columns = columns_of_inputs(inputs, columns, path)
        elif len(inputs) > 1:  # By name: a server lists its inputs in any order.
            task.text_columns = tuple(inputs)
    return task
