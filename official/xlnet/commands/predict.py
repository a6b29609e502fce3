"""`xlnet predict`: predictions for the rows of a file, by models here or on TF Serving."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, NamedTuple

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.configs.choices import PRODUCTS
from official.xlnet.configs.registry import DATASETS, INPUTS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.result_files import require_json_lines
from official.xlnet.data.text_files import write_json_lines, write_resumed
from official.xlnet.errors import ConfigError, require_config
from official.xlnet.files.arguments import OutputFile, Path
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.public import public
from official.xlnet.files.schema import OneOf, Range
from official.xlnet.runtime.progress import per_second


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

    Reads a file and writes predictions as JSON lines, in order and in a streaming fashion. Running
    the same command again resumes one that was killed, with local models.

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
      shard: part of the rows to predict, 3/16 for the third of sixteen; the outputs of all parts,
        joined, equal the output of one command; default: all.
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
    if endpoint:
        predictor = _remote(endpoint, name, signature, timeout, retries, task, input, batch_size)
    else:
        predictor = _local(model, input)
    first, stop = _rows_of_shard(predictor, shard)
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(output)), exist_ok=True)

    def rows_after(kept: int) -> Iterator[dict[str, Any]]:
        return predictor.predict(itertools.islice(predictor.examples(), first + kept, stop))

    kept = 0
    with matmul_precision(products):  # Predictions are made as they are written.
        if predictor.identity is None or is_stream(output):
            rows = write_json_lines(output, rows_after(0))
        else:
            identity = [__version__, predictor.identity, sha256_of(input), shard, products]
            rows, kept = write_resumed(output, rows_after, identity, predictor.unit)
    rate = per_second(rows - kept, start)
    unknown = check_unknown(predictor.counts, input) if model else {}
    say_counts(input, {"rows": rows, **predictor.counts})
    resumed = {"resumed_rows": kept} if kept else {}
    return {"rows": rows, "rows_per_second": rate, **resumed, **predictor.counts, **unknown}


class _Predictor(NamedTuple):
    """A source of predictions.

    Attributes:
      examples: reads the examples, from the first one on.
      predict: returns the predictions for examples.
      unit: number of examples that are predicted together.
      counts: complete once all predictions have been read.
      identity: JSON of what predictions depend on; None if that is not known.
    """

    examples: Callable[[], Iterator[Example]]
    predict: Callable[[Iterable[Example]], Iterator[dict[str, Any]]]
    unit: int
    counts: Mapping[str, int]
    identity: Any


def _rows_of_shard(predictor: _Predictor, shard: str | None) -> tuple[int, int | None]:
    """The rows of a shard, from one to before another: equal numbers of units."""
    if shard is None:
        return 0, None
    part, parts = _shard_of(shard)
    units = -(-sum(1 for _ in predictor.examples()) // predictor.unit)
    return units * (part - 1) // parts * predictor.unit, units * part // parts * predictor.unit


def _shard_of(shard: str) -> tuple[int, int]:
    """The part and the number of parts.

    Example:
      >>> _shard_of("3/16")
      (3, 16)
    """
    if match := re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", shard):
        part, parts = map(int, match.groups())
        if 1 <= part <= parts:
            return part, parts
    raise ConfigError(f"shard: expected a part of a number of parts, such as 3/16, got {shard}")


def _local(models: Sequence[str], path: str) -> _Predictor:
    from official.xlnet.inference.ensemble import Ensemble

    ensemble = Ensemble(models)
    identity = None
    if os.path.isfile(path):
        identity = [[weights_checksum(model), load_config(model).as_dict()] for model in models]
    return _Predictor(
        lambda: stream_task(path, ensemble.task.config.task),
        ensemble.predict,
        ensemble.unit,
        ensemble.task.counts,
        identity,
    )


def _remote(
    address: str,
    name: str,
    signature: str,
    timeout: float,
    retries: int,
    task_name: str | None,
    path: str,
    batch_size: int,
) -> _Predictor:
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely

    endpoint = connect(address, name, signature, timeout, retries)
    names = endpoint.input_names()
    known = DATASETS.get(task_name or "", {})
    # Without a task, the inputs tell; those of any names are of a table of texts.
    inferred = INPUTS.get(tuple(sorted(names)), INPUTS[()])
    task = TaskConfig(name=known.get("name", task_name) or inferred)
    task.columns = known.get("columns", ())
    if task.has_text_columns and (columns := columns_of(path, task)):
        task.text_columns = columns_of_inputs(names, columns, path)
    return _Predictor(
        lambda: stream_task(path, task),
        lambda examples: predict_remotely(endpoint, examples, names, batch_size),
        batch_size,
        {},
        None,
    )
