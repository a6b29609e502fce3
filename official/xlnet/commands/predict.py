"""Predicts with a fine-tuned model: locally, on a TF Serving endpoint, or on Apache Beam.

Reads a file and writes predictions as JSON lines, in order and in a streaming fashion. --model
predicts locally; given several times, it combines the predictions of several models. --endpoint
sends requests for the model --name to TF Serving, over gRPC (host:port) or REST (http://host:port);
the task type is inferred from the signature unless --task is given. --saved_model, the directory of
an exported version, predicts files of JSON lines on Apache Beam; --output is then a file prefix,
and invalid rows are written to separate files.

Example:
  xlnet predict --model=runs/sst2 --input=new.tsv --output=new.jsonl
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet.commands import (
    BEAM_OPTIONS,
    PRODUCTS_FLAG,
    REQUIRED,
    batch_size,
    flag_table,
    integer,
    number,
    repeated,
    string,
)
from official.xlnet.configs.registry import DATASETS
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.data.reading import check_unknown, say_counts
from official.xlnet.data.text_files import write_json_lines
from official.xlnet.errors import ConfigError, require_extra
from official.xlnet.files.arguments import split_options
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.progress import per_second

FLAGS = flag_table(
    repeated("model", [], "Model directory, for local prediction. Repeat it for an ensemble."),
    string("endpoint", None, "TF Serving endpoint: host:port (gRPC) or http://host:port (REST)."),
    string("saved_model", None, "Directory of an exported version, for Apache Beam."),
    string("input", REQUIRED, "Input file, folder or tfds:NAME:SPLIT."),
    string("output", REQUIRED, "Output file (JSON lines)."),
    string("name", "model", "Name of the model on the server."),
    string("signature", "serving_default", "Serving signature."),
    string("task", None, "Task type or data set; default: by the signature."),
    batch_size("Rows per request."),
    number("timeout", 60.0, "Timeout per attempt, in seconds.", 0.001, 100_000),
    integer("retries", 5, "Maximum retries per request.", most=1000),
    PRODUCTS_FLAG,
    BEAM_OPTIONS,
)


def run() -> dict[str, Any]:
    """Runs prediction; returns `rows`, `rows_per_second` and counts of truncated inputs."""
    if sum(map(bool, (FLAGS.model, FLAGS.endpoint, FLAGS.saved_model))) != 1:
        raise ConfigError("expected exactly one of --model, --endpoint and --saved_model")
    if FLAGS.saved_model:
        return _in_bulk()
    return _one_by_one()


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def _one_by_one() -> dict[str, Any]:
    from official.xlnet.modeling.kernels.product_type import products_in

    predictions, counts = _local() if FLAGS.model else (_remote(), {})
    start = time.monotonic()
    os.makedirs(os.path.dirname(os.path.abspath(FLAGS.output)), exist_ok=True)
    with products_in(FLAGS.products):  # Predictions are made as they are written.
        rows = write_json_lines(FLAGS.output, predictions)
    rate = per_second(rows, start)
    unknown = check_unknown(counts, FLAGS.input) if FLAGS.model else {}
    say_counts(FLAGS.input, {"rows": rows, **counts})
    return {"rows": rows, "rows_per_second": rate, **counts, **unknown}


def _local() -> tuple[Iterator[dict[str, Any]], dict[str, int]]:
    """Predictions, and counts that are complete once all predictions have been read."""
    from official.xlnet.inference.ensemble import Ensemble

    ensemble = Ensemble(FLAGS.model)
    examples = stream_task(FLAGS.input, ensemble.task.config.task)
    return ensemble.predict(examples), ensemble.task.counts


def _remote() -> Iterator[dict[str, Any]]:
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely, task_of

    endpoint = connect(FLAGS.endpoint, FLAGS.name, FLAGS.signature, FLAGS.timeout, FLAGS.retries)
    try:
        names = endpoint.input_names()
        known = DATASETS.get(FLAGS.task or "", {})
        task = task_of(names, known.get("name", FLAGS.task))
        task.columns = known.get("columns", ())
        if task.has_text_columns and (columns := columns_of(FLAGS.input, task)):
            task.text_columns = columns_of_inputs(names, columns, FLAGS.input)
        examples = stream_task(FLAGS.input, task)
        yield from predict_remotely(endpoint, examples, names, FLAGS.batch_size)
    finally:
        endpoint.close()


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
