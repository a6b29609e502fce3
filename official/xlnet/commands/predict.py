"""Predicts with a fine-tuned model: locally, on a TF Serving endpoint, or on Apache Beam.

Reads a file and writes predictions as JSON lines, in order and in a streaming fashion. --model
predicts locally; given several times, it combines the predictions of several models. --endpoint
sends requests for the model --name to TF Serving, over gRPC (host:port) or REST (http://host:port);
the task type is inferred from the signature unless --task is given. --saved_model, the directory of
an exported version, predicts files of JSON lines on Apache Beam; --output is then a file prefix,
and invalid rows are written to separate files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from data_prep.tasks.datasets import DATASETS
from data_prep.tasks.table_files import TEXT_KINDS
from data_prep.tasks.task_data import columns_of, stream_task
from official.xlnet.data.graph_names import columns_of_inputs
from official.xlnet.errors import ConfigError
from official.xlnet.files.arguments import split_options
from official.xlnet.files.atomic import atomic_write
from official.xlnet.files.json_files import json_text
from official.xlnet.files.staging import on_local_disk
from official.xlnet.runtime.extras import require_extra
from official.xlnet.tokenization.unknown_text import check_unknown

_MIN_SECONDS = 1e-9  # Avoids division by zero.

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_multi_string(
    "model",
    [],
    "Model directory, for local prediction. Repeat it for an ensemble.",
    flag_values=FLAGS,
)
_ENDPOINT = flags.DEFINE_string(
    "endpoint",
    None,
    "TF Serving endpoint: host:port (gRPC) or http://host:port (REST).",
    flag_values=FLAGS,
)
_SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "Directory of an exported version, for Apache Beam.", flag_values=FLAGS
)
_INPUT = flags.DEFINE_string(
    "input", None, "Input file, folder or tfds:NAME:SPLIT.", required=True, flag_values=FLAGS
)
_OUTPUT = flags.DEFINE_string(
    "output", None, "Output file (JSON lines).", required=True, flag_values=FLAGS
)
_NAME = flags.DEFINE_string("name", "model", "Name of the model on the server.", flag_values=FLAGS)
_SIGNATURE = flags.DEFINE_string(
    "signature", "serving_default", "Serving signature.", flag_values=FLAGS
)
_TASK = flags.DEFINE_string(
    "task", None, "Task type or data set; default: by the signature.", flag_values=FLAGS
)
_BATCH_SIZE = flags.DEFINE_integer(
    "batch_size", 32, "Rows per request.", lower_bound=1, upper_bound=65_536, flag_values=FLAGS
)
_TIMEOUT = flags.DEFINE_float(
    "timeout",
    60.0,
    "Timeout per attempt, in seconds.",
    lower_bound=0.001,
    upper_bound=100_000,
    flag_values=FLAGS,
)
_RETRIES = flags.DEFINE_integer(
    "retries", 5, "Maximum retries per request.", lower_bound=0, upper_bound=1000, flag_values=FLAGS
)
_BEAM_OPTIONS = flags.DEFINE_string(
    "beam_options", "", "Command-line options of Beam and its runner.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Runs prediction; returns `rows`, `rows_per_second` and counts of truncated inputs."""
    if sum(map(bool, (_MODEL.value, _ENDPOINT.value, _SAVED_MODEL.value))) != 1:
        raise ConfigError("expected exactly one of --model, --endpoint and --saved_model")
    if _SAVED_MODEL.value:
        return _in_bulk()
    return _one_by_one()


@on_local_disk(FLAGS, reads=["model", "input"], writes=["output"])
def _one_by_one() -> dict[str, Any]:
    predictions, counts = _local() if _MODEL.value else (_remote(), {})
    start = time.monotonic()
    rows = _write(predictions)
    seconds = max(time.monotonic() - start, _MIN_SECONDS)
    unknown = check_unknown(counts, _INPUT.value) if _MODEL.value else {}
    return {"rows": rows, "rows_per_second": round(rows / seconds, 1), **counts, **unknown}


def _local() -> tuple[Iterator[dict[str, Any]], dict[str, int]]:
    """Predictions, and counts that are complete once all predictions have been read."""
    from official.xlnet.inference.ensemble import Ensemble

    ensemble = Ensemble(_MODEL.value)
    examples = stream_task(_INPUT.value, ensemble.task.config.task)
    return ensemble.predict(examples), ensemble.task.counts


def _remote() -> Iterator[dict[str, Any]]:
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely, task_of

    endpoint = connect(
        _ENDPOINT.value, _NAME.value, _SIGNATURE.value, _TIMEOUT.value, _RETRIES.value
    )
    try:
        names = endpoint.input_names()
        known = DATASETS.get(_TASK.value or "", {})
        task = task_of(names, known.get("name", _TASK.value))
        task.columns = known.get("columns", ())
        if task.name in TEXT_KINDS and (columns := columns_of(_INPUT.value, task)):
            task.text_columns = columns_of_inputs(names, columns, _INPUT.value)
        examples = stream_task(_INPUT.value, task)
        yield from predict_remotely(endpoint, examples, names, _BATCH_SIZE.value)
    finally:
        endpoint.close()


def _in_bulk() -> dict[str, Any]:
    require_extra("apache_beam", "beam", "--saved_model")
    from official.xlnet.serving.client.beam import predict_in_bulk

    start = time.monotonic()
    counts = predict_in_bulk(
        _SAVED_MODEL.value,
        _INPUT.value,
        _OUTPUT.value,
        _BATCH_SIZE.value,
        split_options(_BEAM_OPTIONS.value, "beam_options"),
    )
    seconds = max(time.monotonic() - start, _MIN_SECONDS)
    return {**counts, "rows_per_second": round(counts["rows"] / seconds, 1)}


def _write(predictions: Iterator[dict[str, Any]]) -> int:
    """Writes predictions to the output file atomically; returns their number."""
    os.makedirs(os.path.dirname(os.path.abspath(_OUTPUT.value)), exist_ok=True)
    rows = 0
    with atomic_write(_OUTPUT.value) as file:
        for prediction in predictions:
            file.write(json_text(prediction).encode() + b"\n")
            rows += 1
    return rows
