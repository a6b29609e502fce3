"""`xlnet predict`: predictions for the rows of a file, by models here or on TF Serving."""

from __future__ import annotations

import functools
import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.registry import DATASETS, INPUTS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.configs.validation import require
from official.xlnet.data.examples import Example
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.reading import check_unknown, log_counts
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_files import write_json_lines, write_resumed
from official.xlnet.errors import require_config
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import per_second

Predict = Callable[[Iterable[Example]], Iterator[dict[str, Any]]]


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
      input: input file, folder or tfds:NAME:SPLIT.
      output: output file (JSON lines).
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
    from official.xlnet.modeling.kernels.product_type import matmul_precision

    require_config(
        bool(model) != bool(endpoint), "model and endpoint", "one of them", "both or none"
    )
    require_json_lines(output)
    part, num_parts = _part_of(shard)
    identity: Any = None  # Everything that predictions depend on; None if unknown.
    counts: Mapping[str, int] = {}
    if endpoint:
        from official.xlnet.serving.client.endpoint import connect
        from official.xlnet.serving.client.prediction import predict_remotely

        server, unit = connect(endpoint, name, signature, timeout, retries), batch_size
        names = server.input_names()
        settings = _served_task(task, names, input)
        predict: Predict = functools.partial(
            predict_remotely, server, input_names=names, batch_size=batch_size
        )
    else:
        from official.xlnet.inference.ensemble import Ensemble

        ensemble = Ensemble(model)
        settings, counts = ensemble.task.config.task, ensemble.task.counts
        predict, unit = ensemble.predict, ensemble.unit
        if os.path.isfile(input) and not is_stream(output):
            models = [[weights_checksum(path), load_config(path).as_dict()] for path in model]
            identity = [__version__, models, sha256_of(input), shard, products]
    first, stop = 0, None
    if num_parts > 1:  # Equal numbers of units.
        num_units = -(-sum(1 for _ in stream_task(input, settings)) // unit)
        first, stop = (num_units * n // num_parts * unit for n in (part - 1, part))
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)

    def rows_after(kept: int) -> Iterator[dict[str, Any]]:
        return predict(itertools.islice(stream_task(input, settings), first + kept, stop))

    kept = 0
    with matmul_precision(products):  # Predictions are made as they are written.
        if identity is None:
            rows = write_json_lines(output, rows_after(0))
        else:
            rows, kept = write_resumed(output, rows_after, identity, unit)
    rate = per_second(rows - kept, start)
    unknown = check_unknown(counts, input) if model else {}
    log_counts(input, {"rows": rows, **counts})
    resumed = {"resumed_rows": kept} if kept else {}
    return {"rows": rows, "rows_per_second": rate, **resumed, **counts, **unknown}


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
    known = DATASETS.get(name or "", {})
    inferred = INPUTS.get(tuple(sorted(inputs)), INPUTS[()])
    task = TaskConfig(name=known.get("name", name) or inferred)
    task.columns = known.get("columns", ())
    if task.has_text_columns and (columns := columns_of(path, task)):
        task.text_columns = columns_of_inputs(inputs, columns, path)
    return task
