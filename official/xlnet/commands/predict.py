"""Predicts with a fine-tuned model: locally, on a TF Serving endpoint, or on Apache Beam.

Reads a file and writes predictions as JSON lines, in order and in a streaming fashion. --model
predicts locally; given several times, it combines the predictions of several models. --endpoint
sends requests for the model --name to TF Serving over gRPC (host:port); the task type is inferred
from the signature unless --task is given. --saved_model, the directory of
an exported version, predicts files of JSON lines on Apache Beam; --output is then a file prefix,
and invalid rows are written to separate files.

The same command resumes one with --model that was killed. --shard=3/16 predicts the third of
sixteen parts of the rows; the outputs of all parts, joined, equal the output of one command.

Example:
  xlnet predict --model=runs/sst2 --input=new.tsv --output=new.jsonl
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet import __version__
from official.xlnet.checkpoints.any_format import load_config, weights_checksum
from official.xlnet.commands import (
    BEAM_OPTIONS,
    PRODUCTS_FLAG,
    REQUIRED,
    SHARD,
    batch_size,
    flag_table,
    integer,
    number,
    repeated,
    shard_of,
    string,
)
from official.xlnet.configs.registry import DATASETS, INPUTS
from official.xlnet.configs.task import TaskConfig
from official.xlnet.data.examples import Example
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.text_files import write_json_lines, write_resumed
from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files.arguments import split_options
from official.xlnet.files.atomic import is_stream
from official.xlnet.files.checksums import sha256_of
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.progress import per_second

FLAGS = flag_table(
    repeated("model", [], "Model directory, for local prediction. Repeat it for an ensemble."),
    string("endpoint", None, "TF Serving endpoint: host:port of gRPC."),
    string("saved_model", None, "Directory of an exported version, for Apache Beam."),
    string("input", REQUIRED, "Input file, folder or tfds:NAME:SPLIT."),
    string("output", REQUIRED, "Output file (JSON lines)."),
    string("name", "model", "Name of the model on the server."),
    string("signature", "serving_default", "Serving signature."),
    string("task", None, "Task type or data set; default: by the signature."),
    batch_size("Rows per request."),
    number("timeout", 60.0, "Timeout per attempt, in seconds.", 0.001, 100_000),
    integer("retries", 5, "Maximum retries per request.", most=1000),
    SHARD,
    PRODUCTS_FLAG,
    BEAM_OPTIONS,
)


def run() -> dict[str, Any]:
    """Runs prediction; returns `rows`, `rows_per_second` and counts of truncated inputs."""
    if sum(map(bool, (FLAGS.model, FLAGS.endpoint, FLAGS.saved_model))) != 1:
        raise ConfigError("expected exactly one of --model, --endpoint and --saved_model")
    if FLAGS.saved_model:
        if FLAGS.shard:
            raise ConfigError("--shard: expected no --saved_model, whose rows Beam distributes")
        return _in_bulk()
    return _one_by_one()


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def _one_by_one() -> dict[str, Any]:
    from official.xlnet.modeling.kernels.product_type import products_in

    predictor = _local() if FLAGS.model else _remote()
    first, stop = _rows_of_shard(predictor)
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(FLAGS.output)), exist_ok=True)

    def rows_after(kept: int) -> Iterator[dict[str, Any]]:
        return predictor.predict(itertools.islice(predictor.examples(), first + kept, stop))

    kept = 0
    with products_in(FLAGS.products):  # Predictions are made as they are written.
        if predictor.identity is None or is_stream(FLAGS.output):
            rows = write_json_lines(FLAGS.output, rows_after(0))
        else:
            identity = [__version__, predictor.identity, sha256_of(FLAGS.input)]
            identity += [FLAGS.shard, FLAGS.products]
            rows, kept = write_resumed(FLAGS.output, rows_after, identity, predictor.unit)
    rate = per_second(rows - kept, start)
    unknown = check_unknown(predictor.counts, FLAGS.input) if FLAGS.model else {}
    say_counts(FLAGS.input, {"rows": rows, **predictor.counts})
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


def _rows_of_shard(predictor: _Predictor) -> tuple[int, int | None]:
    """The rows of `--shard`, from one to before another: equal numbers of units."""
    if FLAGS.shard is None:
        return 0, None
    part, parts = shard_of(FLAGS.shard)
    units = -(-sum(1 for _ in predictor.examples()) // predictor.unit)
    return units * (part - 1) // parts * predictor.unit, units * part // parts * predictor.unit


def _local() -> _Predictor:
    from official.xlnet.inference.ensemble import Ensemble

    ensemble = Ensemble(FLAGS.model)
    identity = None
    if os.path.isfile(FLAGS.input):
        identity = [
            [weights_checksum(model), load_config(model).as_dict()] for model in FLAGS.model
        ]
    return _Predictor(
        lambda: stream_task(FLAGS.input, ensemble.task.config.task),
        ensemble.predict,
        ensemble.unit,
        ensemble.task.counts,
        identity,
    )


def _remote() -> _Predictor:
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely

    endpoint = connect(FLAGS.endpoint, FLAGS.name, FLAGS.signature, FLAGS.timeout, FLAGS.retries)
    names = endpoint.input_names()
    known = DATASETS.get(FLAGS.task or "", {})
    # Without --task, the inputs tell; those of any names are of a table of texts.
    inferred = INPUTS.get(tuple(sorted(names)), INPUTS[()])
    task = TaskConfig(name=known.get("name", FLAGS.task) or inferred)
    task.columns = known.get("columns", ())
    if task.has_text_columns and (columns := columns_of(FLAGS.input, task)):
        task.text_columns = columns_of_inputs(names, columns, FLAGS.input)
    return _Predictor(
        lambda: stream_task(FLAGS.input, task),
        lambda examples: predict_remotely(endpoint, examples, names, FLAGS.batch_size),
        FLAGS.batch_size,
        {},
        None,
    )


def _in_bulk() -> dict[str, Any]:
    require_extra("apache_beam", "beam", "--saved_model")
    from official.xlnet.serving.client.beam import predict_in_bulk

    start = time.monotonic()
    counts = predict_in_bulk(
        FLAGS.saved_model,
        FLAGS.input,
        FLAGS.output,
        FLAGS.batch_size,
        split_options(FLAGS.beam_options, "beam_options"),
    )
    return {**counts, "rows_per_second": per_second(counts["rows"], start)}
