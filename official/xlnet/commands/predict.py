"""Predicts with a fine-tuned model, here, on a server or on Beam: a file in, JSON lines out.

Rows are read, predicted and written a few batches at a time, in their order. --model predicts
here. --endpoint asks TF Serving for the model --name, over gRPC (host:port) or REST
(http://host:port); the signature's inputs say how the file is read, unless --task does.
--saved_model, the directory of an exported version, runs it over files of JSON lines on Apache
Beam; --output is then a prefix, and rows that cannot be used go to files of their own.
"""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Iterator
from typing import Any

from absl import flags

from data_prep.tasks.task_data import stream_task
from official.xlnet.errors import ConfigError
from official.xlnet.inference.task_prediction import load_task, predict_examples

FLAGS = flags.FlagValues()
_MODEL = flags.DEFINE_string("model", None, "Model directory.", flag_values=FLAGS)
_ENDPOINT = flags.DEFINE_string(
    "endpoint", None, "Server: host:port, or http://host:port.", flag_values=FLAGS
)
_SAVED_MODEL = flags.DEFINE_string(
    "saved_model", None, "Exported version, for Beam.", flag_values=FLAGS
)
_INPUT = flags.DEFINE_string("input", None, "What to read.", required=True, flag_values=FLAGS)
_OUTPUT = flags.DEFINE_string("output", None, "JSON lines.", required=True, flag_values=FLAGS)
_NAME = flags.DEFINE_string("name", "model", "Model on the server.", flag_values=FLAGS)
_SIGNATURE = flags.DEFINE_string(
    "signature", "serving_default", "Signature of the model.", flag_values=FLAGS
)
_TASK = flags.DEFINE_string("task", None, "Kind of task.", flag_values=FLAGS)
_BATCH_SIZE = flags.DEFINE_integer("batch_size", 32, "Rows of a request.", 1, flag_values=FLAGS)
_TIMEOUT = flags.DEFINE_float("timeout", 60.0, "Seconds of a try.", 0.001, flag_values=FLAGS)
_RETRIES = flags.DEFINE_integer("retries", 5, "More tries of a request.", 0, flag_values=FLAGS)
_BEAM_OPTIONS = flags.DEFINE_string(
    "beam_options", "", "Options of Beam and its runner, as on a command line.", flag_values=FLAGS
)


def run() -> dict[str, Any]:
    """Returns `rows`, `rows_per_second`, and counts of what was cut."""
    if sum(map(bool, (_MODEL.value, _ENDPOINT.value, _SAVED_MODEL.value))) != 1:
        raise ConfigError("expected either --model or --endpoint, or --saved_model")
    if _SAVED_MODEL.value:
        return _in_bulk()
    predictions, counts = _local() if _MODEL.value else (_remote(), {})
    start = time.monotonic()
    rows = _write(predictions)
    seconds = max(time.monotonic() - start, 1e-9)
    return {"rows": rows, "rows_per_second": round(rows / seconds, 1), **counts}


def _local() -> tuple[Iterator[dict[str, Any]], dict[str, int]]:
    """Predictions, and counts that are complete when all of them are made."""
    model, task = load_task(_MODEL.value)
    examples = stream_task(_INPUT.value, task.config.task)
    return predict_examples(model, task, examples), task.counts


def _remote() -> Iterator[dict[str, Any]]:
    from official.xlnet.serving.client.endpoint import connect
    from official.xlnet.serving.client.prediction import predict_remotely, task_of

    endpoint = connect(
        _ENDPOINT.value, _NAME.value, _SIGNATURE.value, _TIMEOUT.value, _RETRIES.value
    )
    try:
        names = endpoint.input_names()
        examples = stream_task(_INPUT.value, task_of(names, _TASK.value))
        yield from predict_remotely(endpoint, examples, names, _BATCH_SIZE.value)
    finally:
        endpoint.close()


def _in_bulk() -> dict[str, Any]:
    from official.xlnet.serving.client.beam import predict_in_bulk

    start = time.monotonic()
    figures = predict_in_bulk(
        _SAVED_MODEL.value,
        _INPUT.value,
        _OUTPUT.value,
        _BATCH_SIZE.value,
        shlex.split(_BEAM_OPTIONS.value),
    )
    seconds = max(time.monotonic() - start, 1e-9)
    return {**figures, "rows_per_second": round(figures["rows"] / seconds, 1)}


def _write(predictions: Iterator[dict[str, Any]]) -> int:
    """Writes predictions by a temporary name and a rename; returns how many."""
    temporary = _OUTPUT.value + ".tmp"
    os.makedirs(os.path.dirname(os.path.abspath(temporary)), exist_ok=True)
    rows = 0
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            for prediction in predictions:
                file.write(json.dumps(prediction, ensure_ascii=False) + "\n")
                rows += 1
        os.replace(temporary, _OUTPUT.value)
    finally:
        if os.path.exists(temporary):
            os.unlink(temporary)
    return rows
